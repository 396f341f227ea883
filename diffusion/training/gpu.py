"""Ten minutes of somebody's accelerator: an order of magnitude more training than a core gives in hours.

  python -m diffusion.training.gpu pack FILE              a corpus small enough to carry
  python -m diffusion.training.gpu run FILE OUT           train on it there; OUT gets the model in parts, and the log
  python -m diffusion.training.gpu join OUT FOLDER        the parts as a model folder again

Knows files and processes; the training is train.py's.
"""

from __future__ import annotations

import argparse
import io
import lzma
import shutil
import tarfile
import tempfile
from pathlib import Path

from rich.console import Console

from diffusion.api import EngineError
from diffusion.training import corpus, train
from diffusion.training.dataset import MIX

PACKED_MEGABYTES = 56.0
PART_BYTES = 15 * 2**20
BATCH = 32
COOLDOWN = 0.4
"""Share of the time with falling rates: nobody goes on from here."""

console = Console(stderr=True)


def pack(source: Path, destination: Path, megabytes: float = PACKED_MEGABYTES) -> int:
    """Write as much of the corpus `source` as fits `megabytes` when compressed; returns the bytes of text in it.

    A corpus is shuffled, so the beginning of a file is a fair sample. Raises EngineError.
    """
    if not any(source.glob("*.train.jsonl")):
        raise EngineError(f"{source} holds no corpus", "build it: python -m diffusion.training.corpus")
    limit, taken = int(megabytes * 1e6), 0
    squeezed = len(lzma.compress(sample := b"".join(_head(p, 400_000) for p in source.glob("*.jsonl")), preset=6))
    budget = limit * 0.95 * len(sample) / squeezed
    with tarfile.open(destination, "w:xz", preset=6) as archive:
        for path in sorted(source.glob("*.jsonl")):
            language, split, _ = path.name.split(".")
            share = budget * MIX[language] * (0.97 if split == "train" else 0.03)
            text = _head(path, int(share))
            taken += len(text)
            member = tarfile.TarInfo(path.name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
            console.print(f"{path.name}: {len(text) / 1e6:.1f} MB of text")
    if destination.stat().st_size > limit:
        raise EngineError(f"{destination} became larger than {megabytes} MB", "ask for fewer: --megabytes")
    return taken


def run(packed: Path, out: Path, *, minutes: float, device: str, batch: int, workers: int, more: list[str]) -> None:
    """Train from the shipped weights on a packed corpus and put the model into `out`. Raises EngineError."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        try:
            with tarfile.open(packed) as archive:
                archive.extractall(state / "corpus", filter="data")
        except (OSError, tarfile.TarError, lzma.LZMAError) as error:
            raise EngineError(f"the packed corpus {packed} cannot be read: {error}", "pack it again") from error
        train.main(["--state", folder, "--minutes", str(minutes), "--cooldown", str(minutes * COOLDOWN),
                    "--device", device, "--batch", str(batch), "--workers", str(workers), *more])  # fmt: skip
        train.main(["--state", folder, "--export", str(state / "model")])
        shutil.copyfile(state / "run" / "log.jsonl", out / "log.jsonl")
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            archive.add(state / "model", arcname=".")
    parts = whole.getvalue()
    for number, start in enumerate(range(0, len(parts), PART_BYTES)):
        (out / f"model.{number:03}").write_bytes(parts[start : start + PART_BYTES])


def join(parts: Path, destination: Path) -> None:
    """The model folder that `run` cut into parts. Raises EngineError."""
    data = b"".join(path.read_bytes() for path in sorted(parts.glob("model.[0-9][0-9][0-9]")))
    try:
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            archive.extractall(destination, filter="data")
    except tarfile.TarError as error:
        raise EngineError(f"{parts} does not hold a whole model: {error}") from error


def _head(path: Path, size: int) -> bytes:
    """Whole lines from the beginning of a file, about `size` bytes."""
    with path.open("rb") as file:
        return b"".join(file.readlines(size))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m diffusion.training.gpu", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = parser.add_subparsers(dest="verb", required=True)
    packing = verbs.add_parser("pack", help="a corpus small enough to carry")
    packing.add_argument("file", type=Path)
    packing.add_argument("--corpus", type=Path, default=corpus.default_destination(), help="default: %(default)s")
    packing.add_argument("--megabytes", type=float, default=PACKED_MEGABYTES, help="at most (default: %(default)s)")
    running = verbs.add_parser("run", help="train on a packed corpus; further options are those of midfill train")
    running.add_argument("file", type=Path)
    running.add_argument("out", type=Path)
    running.add_argument("--minutes", type=float, default=8.0, help="default: %(default)s")
    running.add_argument("--device", default="cuda", help="default: %(default)s")
    running.add_argument("--batch", type=int, default=BATCH, help="windows per step (default: %(default)s)")
    running.add_argument("--workers", type=int, default=14, help="processes that make examples (default: %(default)s)")
    joining = verbs.add_parser("join", help="the parts as a model folder again")
    joining.add_argument("out", type=Path)
    joining.add_argument("folder", type=Path)
    options, more = parser.parse_known_args(argv)
    try:
        if options.verb == "pack":
            size = pack(options.corpus, options.file, options.megabytes)
            console.print(f"{size / 1e6:.0f} MB of text in {options.file.stat().st_size / 1e6:.1f} MB")
        elif options.verb == "run":
            run(options.file, options.out, minutes=options.minutes, device=options.device, batch=options.batch,
                workers=options.workers, more=more)  # fmt: skip
        else:
            join(options.out, options.folder)
    except EngineError as error:
        console.print(f"error: {error.message}\n{error.hint}", style="red", markup=False)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
