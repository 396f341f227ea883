"""Builds the training corpus of the embedded model from the packages named in `corpus.toml`.

Each package is downloaded at its exact version with the ordinary package clients (pip, npm); its licence is read from
its own metadata and must be the one in the manifest; its source files are filtered, deduplicated and decontaminated.
The result is one JSON-lines file per language and split (`python.train.jsonl`, `python.heldout.jsonl`, ...), each line
`{"package", "path", "text"}`, and `manifest.lock.json` with what was kept and why the rest was not.
Same manifest and options, same output.

Held-out packages are split off whole, and a training file that resembles a held-out file is dropped.
This module does not know tokens, windows or cuts: those belong to the tokenizer and the examples.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import platformdirs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from diffusion.training import corpus_packages, corpus_text
from diffusion.training.corpus_packages import LANGUAGES, MANIFEST, CorpusError, Package

PACKAGE_CAP = 2_500_000  # characters that one package may contribute
SEED = "midfill corpus 1"
SPLITS = ("train", "heldout")

OnProgress = Callable[[str, int, int, str], None]
"""Called with the stage, how much of it is done, its total, and a word on what was just done."""

Dropped = Counter[tuple[str, str]]
"""How many files were dropped, by (language, reason)."""


@dataclass(frozen=True, kw_only=True)
class SourceFile:
    package: Package
    path: str
    language: str
    text: str


def rank(package: Package, path: str) -> str:
    """Sorts files into a fixed pseudo-random order, in which packages are mixed."""
    return hashlib.blake2b(f"{SEED}\n{package}\n{path}".encode(), digest_size=16).hexdigest()


def default_destination() -> Path:
    return Path(platformdirs.user_state_path("midfill")) / "training" / "corpus"


def default_cache() -> Path:
    return Path(platformdirs.user_cache_path("midfill")) / "corpus"


def build(
    destination: Path,
    packages: Sequence[Package],
    *,
    languages: Sequence[str] = LANGUAGES,
    cache: Path | None = None,
    benchmarks: Sequence[Path] = (),
    keep_going: bool = False,
    threads: int = 4,
    on_progress: OnProgress = lambda *_: None,
) -> dict[str, object]:
    """Writes the corpus into `destination` and returns what it also writes to `manifest.lock.json`.

    `languages` are those of the files that are kept; packages of the other languages are not downloaded. A reader of
    `destination` sees every file either as it was or complete. Raises CorpusError for the first package that fails,
    or with `keep_going` lists the failures in the lock file.
    """
    problems = corpus_text.Benchmarks([problem for path in benchmarks for problem in read_benchmark(path)])
    wanted = [package for package in packages if package.language in languages]
    archives, failures = _download(wanted, cache or default_cache(), keep_going, threads, on_progress)
    # Held-out packages come first: of two files that resemble each other the later one is dropped.
    order = sorted(archives, key=lambda package: (not package.held_out, package.name))
    dropped: Dropped = Counter()
    files: list[SourceFile] = []
    for done, package in enumerate(order, 1):
        try:
            files += read_package(package, archives[package], languages, dropped)
        except CorpusError as error:
            if not keep_going:
                raise
            failures[str(package)] = str(error)
        on_progress("read", done, len(order), package.name)
    kept = select(files, problems, dropped, on_progress)
    lock = _lock(kept, {package: archives[package] for package in order}, dropped, failures)
    destination.mkdir(parents=True, exist_ok=True)
    for language in languages:
        for split in SPLITS:
            rows = [row for row in kept if row.language == language and row.package.held_out == (split == "heldout")]
            _write(destination / f"{language}.{split}.jsonl", (_line(row) for row in rows))
    _write(destination / "manifest.lock.json", [json.dumps(lock, indent=1, sort_keys=True) + "\n"])
    return lock


def read_package(
    package: Package, archive: Path, languages: Sequence[str], dropped: Dropped, *, cap: int = PACKAGE_CAP
) -> list[SourceFile]:
    """The files of one package that pass the filters, sorted by path; of a large package a random `cap` characters.

    Raises CorpusError if the licence is not as the manifest says.
    """
    licence, sources, paths = corpus_packages.read_archive(archive)
    if licence != package.licence or not corpus_packages.licence_allowed(licence):
        raise CorpusError(
            f"{package.name} {package.version}: its metadata says {licence or 'nothing'} about the licence, "
            f"the manifest {package.licence}; both must be the same permissive licence"
        )
    found = [(path, data, corpus_text.EXTENSIONS[path[path.rindex(".") :].lower()]) for path, data in sources]
    # Where TypeScript sources are shipped, the JavaScript files beside them are what the compiler made of them.
    count = Counter(language for _, _, language in found)
    compiled = count["typescript"] >= max(3, 0.2 * count["javascript"])
    result: list[SourceFile] = []
    size = 0
    for path, data, language in sorted(found, key=lambda item: rank(package, item[0])):
        if language not in languages or (language == "python") != (package.language == "python"):
            continue
        if size >= cap:  # saves looking at the rest
            dropped[language, "package cap"] += 1
            continue
        text = corpus_text.decode(data)
        declared = bool(re.search(r"[cm]?js$", path)) and re.sub(r"([cm]?)js$", r"d.\1ts", path) in paths
        if text is None:
            reason: str | None = "not text"
        elif compiled and language == "javascript":
            reason = "transpiled"
        else:
            reason = corpus_text.rejection(text, language, has_declarations=declared)
        if reason is None and text is not None:
            result.append(SourceFile(package=package, path=path, language=language, text=text))
            size += len(text)
        else:
            dropped[language, reason or ""] += 1
    return sorted(result, key=lambda file: file.path)


def select(
    files: Sequence[SourceFile],
    problems: corpus_text.Benchmarks,
    dropped: Dropped,
    on_progress: OnProgress = lambda *_: None,
) -> list[SourceFile]:
    """The files that stay, shuffled: no duplicates, nothing of the benchmarks.

    Of duplicates the first stays, so the order of `files` decides.
    """
    exact: set[bytes] = set()
    near = corpus_text.NearDuplicates()
    overlaps: dict[int, tuple[str, corpus_text.Overlap]] = {}
    unique: list[SourceFile] = []
    for done, file in enumerate(files, 1):
        if done % 100 == 0 or done == len(files):
            on_progress("deduplicate", done, len(files), file.package.name)
        digest = hashlib.blake2b(" ".join(file.text.split()).encode(), digest_size=16).digest()
        if digest in exact:
            dropped[file.language, "duplicate"] += 1
            continue
        exact.add(digest)
        tokens = corpus_text.token_hashes(file.text)
        if near.seen(tokens):
            dropped[file.language, "near duplicate"] += 1
            continue
        overlap = problems.overlap(file.text, tokens)
        if overlap.grams or overlap.names:
            overlaps[len(unique)] = (str(file.package), overlap)
        unique.append(file)
    contaminated = problems.contaminated(overlaps)
    for index in contaminated:
        dropped[unique[index].language, "benchmark overlap"] += 1
    kept = [file for index, file in enumerate(unique) if index not in contaminated]
    return sorted(kept, key=lambda file: rank(file.package, file.path))


def read_benchmark(path: Path) -> list[tuple[str, str]]:
    """Complete programs and function names of a benchmark file: HumanEval, its infilling variants, or MBPP.

    JSON lines, also gzipped. Raises CorpusError for anything else.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines if line.strip()]
        problems = set()
        for row in rows:
            if "code" in row:  # MBPP
                name = re.search(r"assert\W+(\w+)\s*\(", " ".join(row.get("test_list", ())))
                problems |= {(row["code"], name[1] if name else ""), (str(row.get("text", "")), "")}
            else:
                problems.add((row["prompt"] + row["canonical_solution"] + row.get("suffix", ""), row["entry_point"]))
        return sorted(problems)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(f"{path}: not a benchmark file of a known form: {error!r}") from error


def _download(
    packages: Sequence[Package], cache: Path, keep_going: bool, threads: int, on_progress: OnProgress
) -> tuple[dict[Package, Path], dict[str, str]]:
    archives: dict[Package, Path] = {}
    failures: dict[str, str] = {}
    with ThreadPoolExecutor(threads) as pool:
        jobs = [(package, pool.submit(corpus_packages.fetch, package, cache)) for package in packages]
        for done, (package, job) in enumerate(jobs, 1):
            try:
                archives[package] = job.result()
            except CorpusError as error:
                if not keep_going:
                    pool.shutdown(cancel_futures=True)
                    raise
                failures[str(package)] = str(error)
            on_progress("download", done, len(jobs), package.name)
    return archives, failures


def _lock(
    kept: Sequence[SourceFile], archives: dict[Package, Path], dropped: Dropped, failures: dict[str, str]
) -> dict[str, object]:
    counts: dict[Package, Counter[str]] = defaultdict(Counter)
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    for file in kept:
        split = SPLITS[file.package.held_out]
        for counter in (counts[file.package], totals[f"{file.language}.{split}"]):
            counter["files"] += 1
            counter["bytes"] += len(file.text.encode())
    rows = {
        str(package): {
            "version": package.version,
            "licence": package.licence,
            "held_out": package.held_out,
            "archive": archive.name,
            "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
            **{unit: counts[package][unit] for unit in ("files", "bytes")},
        }
        for package, archive in archives.items()
        if str(package) not in failures
    }
    reasons: dict[str, dict[str, int]] = defaultdict(dict)
    for (language, reason), count in sorted(dropped.items()):
        reasons[language][reason] = count
    return {"packages": rows, "totals": totals, "dropped": reasons, "failed": failures}


def _line(file: SourceFile) -> str:
    row = {"package": file.package.name, "path": file.path, "text": file.text}
    return json.dumps(row, ensure_ascii=False) + "\n"


def _write(path: Path, lines: Iterable[str]) -> None:
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(lines)
    partial.replace(path)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m diffusion.training.corpus",
        description="Build the training corpus: download the packages of the manifest, check their licences, filter, "
        "deduplicate and decontaminate their sources, and write them as JSON lines.",
    )
    parser.add_argument(
        "destination",
        nargs="?",
        type=Path,
        default=default_destination(),
        help="folder to write to (default: %(default)s)",
    )
    parser.add_argument("--language", action="append", choices=LANGUAGES, help="only this language; may be repeated")
    parser.add_argument("--manifest", type=Path, default=MANIFEST, help="list of packages (default: %(default)s)")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N packages of each list: a quick corpus")
    parser.add_argument(
        "--cache", type=Path, default=default_cache(), help="folder of downloaded archives (default: %(default)s)"
    )
    parser.add_argument(
        "--decontaminate",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="benchmark files that the corpus must not overlap with: HumanEval, its infilling variants, MBPP "
        "(.jsonl or .jsonl.gz)",
    )
    parser.add_argument("--keep-going", action="store_true", help="leave out packages that fail instead of stopping")
    parser.add_argument("--threads", type=int, default=4, help="downloads at a time (default: %(default)s)")
    options = parser.parse_args(argv)
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description:12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[word]}"),
    )
    try:
        packages = corpus_packages.load_manifest(options.manifest)
        if options.first is not None:
            packages = tuple(
                p for lang in LANGUAGES for p in [q for q in packages if q.language == lang][: options.first]
            )
        with Progress(*columns, console=console) as progress:
            tasks: dict[str, TaskID] = {}

            def show(stage: str, done: int, total: int, word: str) -> None:
                if stage not in tasks:
                    tasks[stage] = progress.add_task(stage, word="")
                progress.update(tasks[stage], completed=done, total=total, word=word)

            lock = build(
                options.destination,
                packages,
                languages=options.language or LANGUAGES,
                cache=options.cache,
                benchmarks=options.decontaminate,
                keep_going=options.keep_going,
                threads=options.threads,
                on_progress=show,
            )
    except CorpusError as error:
        console.print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    failed = lock["failed"]
    for message in failed.values() if isinstance(failed, dict) else ():
        console.print(f"left out: {message}", style="yellow", markup=False, soft_wrap=True)
    console.print_json(json.dumps(lock["totals"]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
