"""Training on a user's own code: a folder of sources becomes a small corpus, the result a profile to select.

Nothing leaves the machine: the corpus and the weights lie in the user's folders. Knows files and profiles; knows no
tensors.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import platformdirs

from diffusion.api import DISTRIBUTION, EngineError
from diffusion.training import corpus_text

HELD_OUT = 20
"""One file in so many is kept for the evaluation, and at least one."""
LEAST_CHARACTERS = 20_000
"""Of less code than this a model only learns to repeat it."""


def is_corpus(folder: Path) -> bool:
    """Whether corpus.py has written `folder`."""
    return any(folder.glob("*.train.jsonl"))


def collect(folder: Path, destination: Path) -> dict[str, int]:
    """Write the source files under `folder` as a corpus; returns files per language. Raises EngineError.

    Git says what belongs to a repository; elsewhere all files do. Generated, minified and data files are left out.
    """
    if not folder.is_dir():
        raise EngineError(f"there is no folder {folder}", "name a folder of source code or a built corpus")
    texts: dict[str, list[tuple[str, str]]] = {}
    for path in _files(folder):
        shown = path.relative_to(folder).as_posix()
        language = corpus_text.EXTENSIONS.get(path.suffix.lower())
        if language is None or corpus_text.skipped_path(shown):
            continue
        try:
            text = corpus_text.decode(path.read_bytes())
        except OSError:
            continue
        # Whatever the licence: it is the user's own affair.
        if text and corpus_text.rejection(text, language) in (None, "licence in header"):
            texts.setdefault(language, []).append((shown, text))
    size = sum(len(text) for files in texts.values() for _, text in files)
    if size < LEAST_CHARACTERS:
        raise EngineError(
            f"{folder} holds {size:,} characters of Python, JavaScript and TypeScript; {LEAST_CHARACTERS:,} are needed",
            "name a folder with more source code (generated, minified and very short files do not count)",
        )
    destination.mkdir(parents=True, exist_ok=True)
    for old in destination.glob("*.jsonl"):
        old.unlink()
    for language, files in texts.items():
        files.sort(key=lambda file: hashlib.blake2b(file[0].encode(), digest_size=8).digest())
        kept = max(1, len(files) // HELD_OUT)
        _write(destination / f"{language}.heldout.jsonl", folder.name, files[:kept])
        _write(destination / f"{language}.train.jsonl", folder.name, files[kept:] or files)
    return {language: len(files) for language, files in texts.items()}


def write_profile(name: str, source: Path) -> Path:
    """A profile called `name` in the user's configuration folder, like the embedded one, with the model folder
    `source`. Returns its path. Raises EngineError where it cannot be written."""
    text = (Path(str(resources.files("diffusion"))) / "profiles" / "embedded.toml").read_text(encoding="utf-8")
    for key, value in (("name", name), ("title", f"midfill embedded, trained on {name}"), ("weights", str(source))):
        text = re.sub(rf"^{key} = .*$", lambda _, k=key, v=value: f"{k} = {json.dumps(v)}", text, count=1, flags=re.M)  # type: ignore[misc]
    text = re.sub(r"^\[calibration\]\n(?:(?!\[).*\n?)*", "", text, flags=re.M)  # it was fitted for other weights
    path = platformdirs.user_config_path(DISTRIBUTION) / "profiles" / f"{name}.toml"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EngineError(f"cannot write the profile {path}: {error}", "free some disk space") from error
    return path


def profile_name(folder: Path) -> str:
    """A name for the profile of a folder: its own, as far as a file may be called that."""
    return re.sub(r"[^a-z0-9]+", "-", folder.resolve().name.lower()).strip("-") or "own"


def _files(folder: Path) -> Iterator[Path]:
    try:
        listed = subprocess.run(
            ["git", "-C", str(folder), "ls-files", "-z"], capture_output=True, check=True, timeout=60
        ).stdout
        yield from (folder / name for name in listed.decode("utf-8", "replace").split("\0") if name)
    except (OSError, subprocess.SubprocessError):
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _write(path: Path, package: str, files: list[tuple[str, str]]) -> None:
    try:
        with path.open("w", encoding="utf-8", newline="\n") as out:
            for shown, text in files:
                out.write(json.dumps({"package": package, "path": shown, "text": text}, ensure_ascii=False) + "\n")
    except OSError as error:
        raise EngineError(f"cannot write the corpus {path}: {error}", "free some disk space") from error
