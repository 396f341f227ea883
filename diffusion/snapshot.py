"""A quantised model on disk: one safetensors part per shard of its checkpoint, and an index that says what they are.

The index is written anew after every part, so that an interrupted conversion goes on where it was. Every part names its
quantisation in its own metadata, too. A part is believed when its size and checksum are those of the index. Knows
files; neither tensors nor what they are for.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffusion.api import EngineError
from diffusion.quantisation import Quantisation

VERSION = 1
"""Raised when what is written below changes; another version is made anew."""

FOLDER, INDEX = "snapshot", "snapshot.json"
CHECKING_THREADS = 4


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a snapshot was made of: a checkpoint, by its fingerprint, a quantisation, and the dtype of the rest."""

    fingerprint: str
    quantisation: Quantisation
    dtype: str

    def as_json(self) -> dict[str, Any]:
        return {"version": VERSION, **dataclasses.asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A file of a snapshot; `shard` is the name of the file it was made from."""

    file: str
    shard: str
    bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What an index says. `recipe` as JSON."""

    folder: Path
    recipe: dict[str, Any]
    parts: tuple[Part, ...]
    complete: bool

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


def find(folder: Path) -> Snapshot | None:
    """The snapshot in a folder, complete or not; None where there is none. Raises EngineError for a damaged index."""
    path = folder / INDEX
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        parts = tuple(Part(**part) for part in body["parts"])
        if any(part.file != Path(part.file).name for part in parts):
            raise ValueError("a part lies elsewhere")
        return Snapshot(folder=folder, recipe=body["recipe"], parts=parts, complete=body["complete"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(f"{path} cannot be read: {error}", "make it anew with `midfill model quantize`") from error


def begin(folder: Path, recipe: Recipe) -> Snapshot:
    """What has been made already by the same recipe, or an empty folder to begin with."""
    try:
        found = find(folder)
    except EngineError:
        found = None
    if found is not None and found.recipe == recipe.as_json():
        kept = [part for part in found.parts if _size(folder / part.file) == part.bytes]
        return dataclasses.replace(found, parts=tuple(kept), complete=False)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    return Snapshot(folder=folder, recipe=recipe.as_json(), parts=(), complete=False)


def add(snapshot: Snapshot, part: Part) -> Snapshot:
    """Say that a part is there. Raises OSError."""
    return _written(dataclasses.replace(snapshot, parts=(*snapshot.parts, part)))


def finish(snapshot: Snapshot) -> Snapshot:
    """Say that nothing is missing. Raises OSError."""
    return _written(dataclasses.replace(snapshot, complete=True))


def verify(snapshot: Snapshot) -> None:
    """Raises EngineError naming the part that is missing, truncated, or not what was written."""
    hint = "make it anew with `midfill model quantize --anew`"
    for part in snapshot.parts:
        path = snapshot.folder / part.file
        size = _size(path)
        if size is None:
            raise EngineError(f"{path} is missing", hint, "model")
        if size != part.bytes:
            raise EngineError(f"{path} is truncated or foreign: {size} of {part.bytes} bytes", hint, "model")
    with ThreadPoolExecutor(CHECKING_THREADS) as pool:
        paths = [snapshot.folder / part.file for part in snapshot.parts]
        for part, checksum in zip(snapshot.parts, pool.map(_checksum, paths), strict=True):
            if checksum != part.sha256:
                raise EngineError(f"{snapshot.folder / part.file} has a wrong checksum", hint, "model")


def _written(snapshot: Snapshot) -> Snapshot:
    body = {"recipe": snapshot.recipe, "complete": snapshot.complete}
    body["parts"] = [dataclasses.asdict(part) for part in snapshot.parts]
    unfinished = snapshot.folder / f"{INDEX}.unfinished"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(body, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(snapshot.folder / INDEX)
    return snapshot


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None
