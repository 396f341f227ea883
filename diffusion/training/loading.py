"""Batches of training examples: made on the spot, so that a run can be repeated exactly, or by processes beside it.

An accelerator is faster than one core can make examples. Knows examples and processes; knows no network.
"""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from diffusion.profiles import ModelProfile
from diffusion.training.dataset import Corpus
from diffusion.training.examples import Rows, make
from diffusion.vocabulary import Vocabulary


def one_by_one(
    corpus: Corpus, rng: random.Random, vocabulary: Vocabulary, profile: ModelProfile, batch: int, canvases: bool
) -> list[Rows]:
    """The next batch, drawn with `rng`."""
    return [make(corpus.draw(rng), rng, vocabulary, profile, canvases=canvases) for _ in range(batch)]


class Workers:
    """Batches from `count` processes, in no order that could be repeated. `canvases` may change between two."""

    def __init__(self, folder: Path, profile: ModelProfile, tokenizer: Path, batch: int, count: int, seed: int) -> None:
        self._canvases = multiprocessing.get_context("spawn").Value("b", 0)
        dataset = _Endless(folder, profile, tokenizer, batch, seed, self._canvases)
        loader = DataLoader(
            dataset, batch_size=None, num_workers=count, prefetch_factor=4, multiprocessing_context="spawn"
        )
        self._batches: Iterator[list[Rows]] = iter(loader)
        self._wanted = 0

    def next(self, canvases: bool) -> list[Rows]:
        """The next batch of that kind. Those of the other kind that are already made are thrown away."""
        self._canvases.value = int(canvases)
        while True:
            batch = next(self._batches)
            if any(rows.slot.any() for rows in batch) == canvases:
                return batch


class _Endless(IterableDataset[list[Rows]]):
    def __init__(
        self, folder: Path, profile: ModelProfile, tokenizer: Path, batch: int, seed: int, canvases: Any
    ) -> None:
        self._made_of = (folder, profile, tokenizer, batch, seed, canvases)

    def __iter__(self) -> Iterator[list[Rows]]:
        folder, profile, tokenizer, batch, seed, canvases = self._made_of
        worker = get_worker_info()
        rng = random.Random(f"{seed}/{worker.id if worker else 0}")
        corpus, vocabulary = Corpus(folder, "train"), Vocabulary(tokenizer, profile.specials)
        while True:
            yield one_by_one(corpus, rng, vocabulary, profile, batch, bool(canvases.value))
