"""The models on this machine: fetched from the hub or a folder, checked, removed, chosen. A folder per model.

Downloads and copies go on where they were interrupted. What is fetched is the text model's: configuration, tokenizer,
safetensors; code is never. Knows profiles, folders and the hub; neither tensors nor terminals.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from diffusion import checkpoint, profiles
from diffusion.api import DISTRIBUTION, EngineError
from diffusion.profiles import ModelProfile

if TYPE_CHECKING:
    from diffusion.hub import Remote

WANTED = re.compile(r"config\.json|tokenizer\.json|model[\w.-]*\.safetensors|model\.safetensors\.index\.json")
RECORD = "pulled.json"
"""What was fetched from where, written when all of it is there and has been checked."""

Report = Callable[[str, int, int], None]
"""What is done, how many bytes of it, of how many."""


def own_folder(profile: ModelProfile) -> Path:
    """Where a model is kept that can be pulled and removed. Raises EngineError for one that ships with the package."""
    if profile.weights.parent != profiles.models_folder():
        hint = 'a profile with weights = "models:NAME" keeps them where pull puts them'
        raise EngineError(
            f"the weights of {profile.name} lie in {profile.weights} and are not midfill's to change", hint
        )
    return profile.weights


def size(folder: Path) -> int:
    """Bytes of all files below."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def pulled(folder: Path) -> dict[str, Any] | None:
    """The record of a complete pull, or None."""
    try:
        record: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record


def pull_folder(profile: ModelProfile, source: Path, report: Report) -> Path:
    """Take over a checkpoint that lies on this machine: linked where possible, else copied. Raises EngineError."""
    folder = own_folder(profile)
    checkpoint.read(source)
    found = [path for path in sorted(source.iterdir()) if WANTED.fullmatch(path.name)]
    if not (source / "tokenizer.json").is_file():
        raise EngineError(f"{source / 'tokenizer.json'} is missing", "a checkpoint comes with its tokenizer", "model")
    sizes = {path: path.stat().st_size for path in found}
    missing = [path for path in found if not _same_size(folder / path.name, sizes[path])]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if folder.stat().st_dev != source.stat().st_dev:
            check_disk(folder, sum(sizes[path] for path in missing))
        for path in missing:
            report(path.name, 0, sizes[path])
            _link_or_copy(path, folder / path.name)
            report(path.name, sizes[path], sizes[path])
    except OSError as error:
        raise EngineError(
            f"{source} cannot be copied to {folder}: {error}", "repeat it: it goes on from here"
        ) from error
    return _recorded(folder, {"source": str(source)})


def pull_repository(profile: ModelProfile, repository: str, revision: str | None, report: Report) -> Path:
    """Fetch a repository of the hub. Raises EngineError, with what has been fetched kept for the next time."""
    from diffusion import hub  # takes a moment to load

    folder = own_folder(profile)
    commit, files = hub.files(repository, revision, WANTED)
    record = {"source": repository, "commit": commit}
    if pulled(folder) == record and all(_same_size(folder / file.name, file.size) for file in files):
        return folder
    if not {"config.json", "tokenizer.json"} <= {file.name for file in files}:
        raise EngineError(f"{repository} holds no config.json and tokenizer.json", "is this the right repository?")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [file for file in files if not _same_size(folder / file.name, file.size)]
    begun = sum(path.stat().st_size for file in missing if (path := hub.partly(commit, file, folder)).is_file())
    check_disk(folder, sum(file.size for file in missing) - begun)
    for file in sorted(files, key=lambda file: file.size):  # what is small tells first whether it is of use
        if file in missing:
            hub.fetch(repository, commit, file, folder)
        if file.name == checkpoint.CONFIG:
            checkpoint.read_config(folder / file.name)
    for file in files:
        _verify(folder / file.name, file, report)
    checkpoint.read(folder)
    for path in folder.glob("*.partial"):  # of other commits
        path.unlink()
    return _recorded(folder, record)


def remove(profile: ModelProfile) -> int:
    """Delete a model's folder; the bytes that this has freed. Raises EngineError."""
    folder = own_folder(profile)
    if not folder.is_dir():
        raise EngineError(f"there is nothing of {profile.name} to remove", f"it would lie in {folder}")
    freed = size(folder)
    shutil.rmtree(folder)
    return freed


def discard_source(folder: Path) -> int:
    """Delete the shards that a snapshot was made of; the bytes freed."""
    shards = [path for path in folder.glob("model*.safetensors*") if path.is_file()]
    freed = sum(path.stat().st_size for path in shards)
    for path in shards:
        path.unlink()
    return freed


def check_disk(folder: Path, needed: int) -> None:
    """Raises EngineError where that many bytes are not free."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        message = f"{needed / 1e9:.1f} GB are needed and {free / 1e9:.1f} GB are free in {folder}"
        raise EngineError(message, "free some space there, or set XDG_DATA_HOME to a folder on another disk")


# --- which model is used


def config_file() -> Path:
    """The user's settings for all editors."""
    return platformdirs.user_config_path(DISTRIBUTION) / "config.toml"


def choose(name: str) -> Path:
    """Write the name of a profile into the user's settings; all else in there stays as it is. Raises EngineError."""
    path = config_file()
    line = f'model = "{name}"\n'
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        before: dict[str, Any] = tomllib.loads(text)
        head, bracket, tables = re.match(r"(?s)(.*?)(^\s*\[|\Z)(.*)", text, re.MULTILINE).groups()  # type: ignore[union-attr]
        head, found = re.subn(r"(?m)^[ \t]*model[ \t]*=.*\n?", line, head, count=1)
        changed = head + bracket + tables if found else line + text
        if tomllib.loads(changed) != before | {"model": name}:
            raise EngineError(f"the key model of {path} cannot be changed", f"write {line.strip()} there yourself")
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(changed, encoding="utf-8")
        unfinished.replace(path)
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be changed: {error}", "correct or remove the file") from error
    return path


def chosen() -> str:
    """The name in the user's settings, "" where there is none. Raises EngineError for a file that cannot be read."""
    path = config_file()
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8")).get("model", "")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read: {error}", "correct or remove the file") from error
    return str(name)


# --- files


def _link_or_copy(source: Path, destination: Path) -> None:
    unfinished = destination.with_name(destination.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        os.link(source.resolve(), unfinished)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, unfinished)
    unfinished.replace(destination)


def _verify(path: Path, file: Remote, report: Report) -> None:
    """Raises EngineError for another size or checksum than the hub has said; the file is then removed."""
    digest, done = hashlib.sha256(), 0
    if file.sha256:
        with path.open("rb") as opened:
            while block := opened.read(1 << 24):
                digest.update(block)
                report(f"checking {file.name}", done := done + len(block), file.size)
    found = path.stat().st_size
    if found != file.size or (file.sha256 and digest.hexdigest() != file.sha256):
        path.unlink()
        what = f"{found} of {file.size} bytes" if found != file.size else "a wrong checksum"
        raise EngineError(f"{path} has {what} and was removed", "fetch it again with `midfill model pull`", "model")


def _recorded(folder: Path, record: dict[str, str]) -> Path:
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return folder


def _same_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
