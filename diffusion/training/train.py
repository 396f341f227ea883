"""The command `midfill train`: from a corpus to weights, resumable, with progress on the screen and in a log.

Knows folders and options; the loop is trainer.py, the data corpus.py and dataset.py.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import platformdirs

from diffusion.api import DISTRIBUTION, BadRequest, EngineError
from diffusion.profiles import ModelProfile, load_profile
from diffusion.training import own_code

EVALUATED_CUTS = 90
"""Held-out cuts per evaluation: about half a minute of one core."""

OWN_CODE_RATE = 0.25

DESCRIPTION = """\
Trains the embedded model. The first call needs a corpus: python -m diffusion.training.corpus

  midfill train --minutes 60                  go on for an hour of active time
  midfill train --minutes 60 --cooldown 30    the same, the last half hour with falling rates (for a release)
  midfill train --corpus DIR --minutes 20     go on with the code in a folder of yours: writes a profile of its name
  midfill train --export DIR                  write the newest averaged weights as a model folder
  midfill train --pause / --continue          stop and continue the running process, by signal
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadRequest(message, "see `midfill train --help`")


def main(argv: list[str]) -> int:
    """Parse `argv` and run. Returns the exit code; raises EngineError with a sentence for the user."""
    parser = _Parser(
        prog="midfill train", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    state = platformdirs.user_state_path(DISTRIBUTION) / "training"
    parser.add_argument("--state", type=Path, default=state, help="folder of corpus and run (default: %(default)s)")
    parser.add_argument("--corpus", type=Path, help="a built corpus or any folder of code (default: STATE/corpus)")
    parser.add_argument(
        "--from", dest="origin", default="embedded", help="profile to start from (default: %(default)s)"
    )
    parser.add_argument("--run", help="name of the run, a folder in STATE, and of the profile that comes of own code")
    parser.add_argument("--minutes", type=float, default=60.0, help="active time (default: %(default)s)")
    parser.add_argument("--cooldown", type=float, default=0.0, help="minutes of it with falling rates (default: none)")
    parser.add_argument("--fresh", action="store_true", help="do not start from the shipped weights and tokenizer")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default: %(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--warm-start-tokens", type=int, help="text tokens with the next-token loss alone, at first")
    parser.add_argument("--batch", type=int, help="windows per step")
    parser.add_argument("--workers", type=int, help="processes that make examples (default: none; for a GPU)")
    parser.add_argument("--rate", type=float, default=1.0, help="factor to the learning rates (default: %(default)s)")
    parser.add_argument("--no-compile", action="store_true", help="do not compile the kernels: slower, starts at once")
    actions = parser.add_mutually_exclusive_group()
    actions.add_argument("--export", type=Path, metavar="DIR", help="write the model folder and end")
    actions.add_argument("--pause", action="store_true", help="stop the running process until --continue")
    actions.add_argument("--continue", dest="proceed", action="store_true", help="let it go on")
    options = parser.parse_args(argv)
    corpus = options.corpus or options.state / "corpus"
    own = bool(options.corpus) and not own_code.is_corpus(corpus)
    folder = options.state / (options.run or (own_code.profile_name(corpus) if own else "run"))
    if options.pause or options.proceed:
        return _signal(folder, signal.SIGSTOP if options.pause else signal.SIGCONT)
    profile = load_profile(options.origin)
    if options.export:
        return _export(folder, options.export, profile)
    if own:
        return _train_on_own_code(options, folder, corpus, profile)
    return _train(options, folder, corpus, profile)


def _train_on_own_code(options: argparse.Namespace, folder: Path, sources: Path, profile: ModelProfile) -> int:
    """Lower rates, falling to the end: the model shall keep what it knows. Ends with a profile, also if interrupted."""
    files = own_code.collect(sources, folder / "corpus")
    sys.stderr.write(", ".join(f"{count} {language} files" for language, count in files.items()) + "\n")
    options.cooldown, options.rate = options.minutes, options.rate * OWN_CODE_RATE
    try:
        _train(options, folder, folder / "corpus", profile)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was learned is kept\n")
    model = platformdirs.user_data_path(DISTRIBUTION) / "models" / folder.name
    _export(folder, model, profile)
    written = own_code.write_profile(folder.name, model)
    sys.stdout.write(f"profile {folder.name} ({written})\n")
    return 0


def _train(options: argparse.Namespace, folder: Path, corpus: Path, profile: ModelProfile) -> int:
    from rich.console import Console

    from diffusion.training import trainer
    from diffusion.training.evaluate import evaluate, heldout
    from diffusion.training.export import WEIGHTS, read, resident
    from diffusion.training.network import Size
    from diffusion.vocabulary import Vocabulary

    console = Console(stderr=True)
    trainer.use_threads(options.threads)
    tokenizer = folder / "tokenizer.json"
    shipped = profile.weights / "tokenizer.json"
    if not tokenizer.is_file() and not options.fresh and shipped.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(shipped, tokenizer)  # weights and tokenizer belong together
    if not tokenizer.is_file():
        _tokenizer(tokenizer, corpus, profile, Size().vocabulary)
    overrides = {"warm_start_tokens": options.warm_start_tokens, "batch": options.batch, "workers": options.workers}
    settings = trainer.Settings(**{name: value for name, value in overrides.items() if value is not None})
    run = trainer.Trainer(
        folder=folder,
        corpus=corpus,
        profile=profile,
        vocabulary=Vocabulary(tokenizer, profile.specials),
        size=Size(),
        settings=replace(
            settings, muon_rate=settings.muon_rate * options.rate, adam_rate=settings.adam_rate * options.rate
        ),
        device=options.device,
    )
    start = "continuing"
    if not run.load("state.pt"):
        start = "starting"
        if not options.fresh and (profile.weights / WEIGHTS).is_file():
            run.continue_from(*read(profile.weights, run.network.size))
            start = "continuing from the shipped weights"
    console.print(f"{start} at step {run.progress.step}, folder {folder}")
    if not options.no_compile:
        trainer.compile_kernels()
    pid = folder / "pid"
    pid.write_text(str(os.getpid()))
    # A polite end keeps what was learned since the last checkpoint.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    shown = trainer.Progress(**vars(run.progress))

    def report(progress: trainer.Progress, losses: dict[str, float]) -> None:
        nonlocal shown
        evaluated = any(name.startswith("heldout") for name in losses)
        if not evaluated and progress.step % 20:
            return
        rate = (progress.text_tokens - shown.text_tokens) / max(progress.seconds - shown.seconds, 1e-9)
        values = "  ".join(f"{name} {value:.3f}" for name, value in losses.items() if name != "total")
        millions = progress.text_tokens / 1e6
        console.print(f"step {progress.step}  {millions:.2f} M text tokens  {rate:,.0f}/s  {values}", highlight=False)
        shown = trainer.Progress(**vars(progress))

    def evaluated() -> dict[str, float]:
        losses = run.heldout_losses()
        if "heldout_slot" not in losses:
            return losses
        engine = resident(run.average, run.network.size, profile, run.vocabulary)
        score = evaluate(engine, heldout(corpus, EVALUATED_CUTS))
        return losses | {"exact_match": score.exact_match, "forwards": score.forwards}

    try:
        run.run(minutes=options.minutes, cooldown=options.cooldown, on_step=report, evaluate=evaluated)
    finally:
        pid.unlink(missing_ok=True)
        signal.signal(signal.SIGTERM, before)
    return 0


def _tokenizer(path: Path, corpus: Path, profile: ModelProfile, size: int) -> None:
    import random

    from diffusion.training.dataset import Corpus
    from diffusion.training.tokenizer import train

    source, rng = Corpus(corpus, "train"), random.Random(0)
    files = (source.draw(rng).text[:20_000] for _ in itertools.count())
    train(itertools.islice(files, 6_000), profile, size, path)


def _export(folder: Path, destination: Path, profile: ModelProfile) -> int:
    from diffusion.training.export import export

    newest = max(
        (folder / name for name in ("state.pt", "cooled.pt") if (folder / name).is_file()),
        key=lambda path: path.stat().st_mtime,
        default=None,
    )
    if newest is None:
        raise EngineError(f"no checkpoint in {folder}", "train first: midfill train --minutes 60")
    export(newest, folder / "tokenizer.json", destination, profile)
    return 0


def _signal(folder: Path, number: signal.Signals) -> int:
    """Send `number` to the running trainer, if there is one. Never an error: test targets call it blindly."""
    try:
        os.kill(int((folder / "pid").read_text()), number)
    except (OSError, ValueError):
        return 0
    return 0
