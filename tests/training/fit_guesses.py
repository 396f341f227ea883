"""Fits how likely a line found nearby is to be right (lsp_server/context/continuations.py, Evidence.likely).

    python -m tests.training.fit_guesses CORPUS        # a training corpus: fitted on "train", checked on "heldout"

Lies here, since nothing that is shipped may know the language server and the training both.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from diffusion.training import reliability
from diffusion.training.calibrate import fit
from diffusion.training.dataset import Corpus, Split
from diffusion.training.examples import rest_of_line
from lsp_server.context.continuations import Evidence, continuations

NAMES = ("typed", "guesses", "first", "agrees", "share", "length", "found")


def guesses(texts: Iterable[str], rng: random.Random) -> Iterator[tuple[Evidence, bool]]:
    """The guesses at a random rest of a line in each text, and whether they are right."""
    for text in texts:
        span = rest_of_line(text, rng)
        middle = text[span.start : span.end].rstrip() if span else ""
        if span and middle:
            prefix, suffix = text[: span.start][-8000:], text[span.end :][:4000]
            for guess, evidence in continuations(prefix + suffix, len(prefix), (), 3).items():
                yield evidence, guess.rstrip() == middle


def inputs(evidence: Evidence) -> list[float]:
    """What the regression sees of a guess, in the order of NAMES."""
    return [
        math.log1p(evidence.typed), math.log(evidence.guesses), evidence.first, evidence.agrees, evidence.share,
        math.log1p(evidence.length), math.log1p(evidence.found),
    ]  # fmt: skip


def main(corpus: Path, count: int = 40_000) -> None:
    """Print the weights, and a table that says how well those in the code do on held-out packages."""

    def drawn(split: Split, number: int) -> Iterator[str]:
        files, rng = Corpus(corpus, split), random.Random(split)
        for index in range(number):
            yield files.draw(rng, files.languages[index % len(files.languages)]).text

    found = list(guesses(drawn("train", count), random.Random(1)))
    weights, bias = fit(np.array([inputs(one) for one, _ in found], dtype=float), np.array([hit for _, hit in found]))
    print(
        f"{len(found)} guesses: bias {bias:.2f},", *(f"{name} {w:.2f}" for name, w in zip(NAMES, weights, strict=True))
    )
    held = list(guesses(drawn("heldout", count // 4), random.Random(2)))
    print(reliability.table(reliability.bins([one.likely for one, _ in held], [hit for _, hit in held])))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
