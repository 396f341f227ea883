"""Reads the corpus that corpus.py built: files drawn at random, in proportion to their size and a mix of languages.

The text stays on disk, mapped; an index of line borders is made when a file is opened. Knows no tokens.
"""

from __future__ import annotations

import json
import mmap
import random
from bisect import bisect_right
from pathlib import Path
from typing import Literal

import numpy as np

from diffusion.api import EngineError
from diffusion.training.examples import Source

MIX = {"python": 0.6, "javascript": 0.17, "typescript": 0.23}
"""Share of the windows by language."""

Split = Literal["train", "heldout"]


class Corpus:
    """One split of the corpus in `folder`. Raises EngineError if there is nothing to read."""

    def __init__(self, folder: Path, split: Split) -> None:
        self._files = {
            language: _Lines(path)
            for language in MIX
            if (path := folder / f"{language}.{split}.jsonl").is_file() and path.stat().st_size
        }
        if not self._files:
            raise EngineError(
                f"the corpus folder {folder} holds no {split} files", "build it: python -m diffusion.training.corpus"
            )

    @property
    def languages(self) -> list[str]:
        """Those of which there are files."""
        return list(self._files)

    def draw(self, rng: random.Random, language: str | None = None) -> Source:
        """One random file, of `language` if given. Raises KeyError if there is none of it."""
        if language is None:
            languages = list(self._files)
            (language,) = rng.choices(languages, weights=[MIX[name] for name in languages])
        return self._files[language].draw(rng, language)


class _Lines:
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        ends = np.flatnonzero(np.frombuffer(self._map, dtype=np.uint8) == ord("\n"))
        self._ends: list[int] = ends.tolist()

    def draw(self, rng: random.Random, language: str) -> Source:
        # A random byte picks its line: a file is drawn in proportion to its size.
        return self._read(bisect_right(self._ends, rng.randrange(self._ends[-1])), language)

    def _read(self, index: int, language: str) -> Source:
        start = self._ends[index - 1] + 1 if index else 0
        record = json.loads(self._map[start : self._ends[index]])
        return Source(language=language, path=record["path"], text=record["text"])
