"""Exact match on held-out cuts, as the trainer logs it. For figures: `midfill eval`.

Goes through the engine as every client does. Knows nothing of how it fills.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from diffusion.api import EngineError, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.training.dataset import Corpus
from diffusion.training.examples import rest_of_line


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A place in a file and what stood there. The middle of a single line, without its line end."""

    language: str
    path: str
    prefix: str
    middle: str
    suffix: str


@dataclass(frozen=True, kw_only=True)
class Score:
    """`exact_match` in percent, forwards and milliseconds as means per fill."""

    n: int
    exact_match: float
    forwards: float
    ms: float


def heldout(corpus: Path, count: int, seed: int = 0) -> Iterator[Cut]:
    """`count` rest-of-line cuts in held-out files, the languages in turn, the same ones for the same seed."""
    split, rng = Corpus(corpus, "heldout"), random.Random(seed)
    for index in range(count):
        language = split.languages[index % len(split.languages)]
        while True:
            source = split.draw(rng, language)
            span = rest_of_line(source.text, rng)
            if span and source.text[span.start : span.end].strip():
                break
        yield Cut(
            language=language,
            path=source.path,
            prefix=source.text[: span.start][-8000:],
            middle=source.text[span.start : span.end],
            suffix=source.text[span.end :][:4000],
        )


def evaluate(engine: ResidentEngine, cuts: Iterable[Cut], oracle_length: bool = False) -> Score:
    """Fill every cut once, greedily, one candidate, no deadline. Middles are compared without trailing blanks."""
    hits: list[bool] = []
    forwards: list[int] = []
    times: list[float] = []
    for index, cut in enumerate(cuts):
        request = FillRequest(
            id=str(index),
            language=cut.language,
            path=cut.path,
            prefix=cut.prefix,
            suffix=cut.suffix,
            length_of=cut.middle if oracle_length else None,
        )
        (result,) = (event for event in engine.fill(request) if isinstance(event, Result))
        text = cut.prefix
        if result.candidates:
            best = result.candidates[0]
            text = cut.prefix[: len(cut.prefix) - best.replace_before] + best.text
        hits.append(text.rstrip() == (cut.prefix + cut.middle).rstrip())
        forwards.append(result.cost.forwards)
        times.append(result.cost.ms)
    if not hits:
        raise EngineError("nothing to evaluate", "the file or folder holds no cuts")
    return Score(
        n=len(hits),
        exact_match=100 * statistics.mean(hits),
        forwards=statistics.mean(forwards),
        ms=statistics.mean(times),
    )
