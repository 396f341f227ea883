"""From single fills to figures: exact match, similarity, intervals, the gate, reliability. Percentages throughout.

Knows cuts and results; nothing of engines, files and of how figures are shown.
"""

from __future__ import annotations

import difflib
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from diffusion.api import Result
from lsp_server.commands.eval_cuts import Cut

DRAWS = 2_000
BINS = 10


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One cut and what was made of it. `completed`: the file up to the end of the middle that was written.
    `similarity` from 0 to 1; `length_error` in characters; `confidence` None: no calibration, or no answer."""

    cut: Cut
    completed: str
    answered: bool
    exact: bool
    similarity: float
    length_error: int
    forwards: int
    ms: float
    confidence: float | None


def judge(cut: Cut, result: Result) -> Trial:
    """Compare the best candidate with what the author wrote. Blanks at the end of a line make no difference, neither
    do newlines at the end of a middle after which the line ends. No candidate counts as an empty middle."""
    best = result.candidates[0] if result.candidates else None
    kept = len(cut.prefix) - (best.replace_before if best else 0)
    written = best.text if best else ""
    truth = cut.prefix[kept:] + cut.middle
    tail = cut.suffix.partition("\n")[0]
    ours, theirs = written.strip(), truth.strip()
    return Trial(
        cut=cut,
        completed=cut.prefix[:kept] + written,
        answered=best is not None,
        exact=(written + tail).rstrip() == (truth + tail).rstrip(),
        similarity=difflib.SequenceMatcher(None, ours, theirs, autojunk=False).ratio(),
        length_error=abs(len(ours) - len(theirs)),
        forwards=result.cost.forwards,
        ms=result.cost.ms,
        confidence=best.confidence if best else None,
    )


def summary(trials: Sequence[Trial]) -> dict[str, Any]:
    """The figures of at least one trial, by the names that stand in the JSON."""
    return {
        "n": len(trials),
        **share("exact_match", [trial.exact for trial in trials], trials),
        "edit_similarity": percent(trial.similarity for trial in trials),
        "length_error": mean(trial.length_error for trial in trials),
        "answered": percent(trial.answered for trial in trials),
        "forwards": mean(trial.forwards for trial in trials),
        "ms": mean(trial.ms for trial in trials),
    }


def share(name: str, hits: Sequence[bool], trials: Sequence[Trial]) -> dict[str, Any]:
    """A percentage and its 95 % interval, as two entries."""
    low, high = interval(hits, [trial.cut.group for trial in trials])
    return {name: percent(hits), f"{name}_95": [round(100 * low, 3), round(100 * high, 3)]}


def interval(values: Sequence[float], groups: Sequence[str], seed: int = 0) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean of `values`: percentiles over draws of whole groups with replacement
    (Efron 1979; by groups, since the lines of one function or file are not independent of each other)."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for value, group in zip(values, groups, strict=True):
        sums[group][0] += value
        sums[group][1] += 1
    of_groups, rng = list(sums.values()), random.Random(seed)
    means = []
    for _ in range(DRAWS):
        drawn = rng.choices(of_groups, k=len(of_groups))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    return means[round(0.025 * (DRAWS - 1))], means[round(0.975 * (DRAWS - 1))]


def difference(
    first: Sequence[Trial], other: Sequence[Trial], value: Callable[[Trial], float] = lambda trial: float(trial.exact)
) -> tuple[float, float, float]:
    """By how many points of exact match (or of another value from 0 to 1) `other` is better than `first` on the same
    cuts, and the interval of that."""
    gains = [value(b) - value(a) for a, b in zip(first, other, strict=True)]
    low, high = interval(gains, [trial.cut.group for trial in first])
    return percent(gains), round(100 * low, 3), round(100 * high, 3)


def gate(trials: Sequence[Trial], threshold: float) -> dict[str, float | None]:
    """How many of all trials are shown when an answer must be at least so sure, and how many of those are exact.
    Empty where no trial has a confidence."""
    if all(trial.confidence is None for trial in trials):
        return {}
    shown = [trial.exact for trial in trials if trial.confidence is not None and trial.confidence >= threshold]
    return {"shown": round(100 * len(shown) / len(trials), 3), "exact_of_shown": percent(shown) if shown else None}


def reliability(trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """Ten bins of confidence: how many answers, how sure they are on average, and how many are exact."""
    bins: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for trial in trials:
        if trial.confidence is not None:
            bins[min(BINS - 1, int(trial.confidence * BINS))].append((trial.confidence, trial.exact))
    return [
        {
            "from": 100 * index // BINS,
            "to": 100 * (index + 1) // BINS,
            "n": len(pairs),
            "confidence": percent(confidence for confidence, _ in pairs),
            "exact": percent(exact for _, exact in pairs),
        }
        for index, pairs in sorted(bins.items())
    ]


def percent(values: Iterable[float]) -> float:
    """The mean of at least one value from 0 to 1, times 100."""
    return round(100 * statistics.fmean(values), 3)


def mean(values: Iterable[float]) -> float:
    """The mean of at least one value."""
    return round(statistics.fmean(values), 3)
