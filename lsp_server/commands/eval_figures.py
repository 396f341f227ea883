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

from diffusion.api import Candidate, Result
from lsp_server.commands.eval_cuts import Cut

DRAWS = 2_000
BINS = 10


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One cut and what was made of it. `completed`: the file up to the end of the middle that was written.
    `similarity` from 0 to 1; `length_error` in characters; `confidence` None: no calibration, or no answer. `gate`:
    from which confidence on the model's answers are worth being shown. `choice`: what the answer was chosen from, if
    that is known."""

    cut: Cut
    completed: str
    answered: bool
    exact: bool
    similarity: float
    length_error: int
    forwards: int
    ms: float
    confidence: float | None
    gate: float | None = None
    choice: Choice | None = None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Whether the decoder's own first candidate would have been exact, the best one before the model corrected itself,
    and any of the batch; ids that were taken back, and those of them that became others."""

    first: bool
    uncorrected: bool
    uncorrected_similarity: float
    any: bool
    renoised: int
    revised: int


def judge(cut: Cut, result: Result) -> Trial:
    """Compare the best candidate with what the author wrote. Blanks at the end of a line make no difference, neither
    do newlines at the end of a middle after which the line ends. No candidate counts as an empty middle."""
    best = result.candidates[0] if result.candidates else None
    shown = best or Candidate(text="")
    kept = len(cut.prefix) - shown.replace_before
    exact, similarity, length_error = _compared(cut, shown)
    trace, choice = result.trace, None
    if trace:
        uncorrected, uncorrected_similarity, _ = _compared(cut, trace.uncorrected)
        choice = Choice(
            first=_compared(cut, trace.first)[0],
            uncorrected=uncorrected,
            uncorrected_similarity=uncorrected_similarity,
            any=any(_compared(cut, candidate)[0] for candidate in (trace.first, *trace.batch)),
            renoised=trace.renoised,
            revised=trace.revised,
        )
    return Trial(
        cut=cut,
        completed=cut.prefix[:kept] + shown.text,
        answered=best is not None,
        exact=exact,
        similarity=similarity,
        length_error=length_error,
        forwards=result.cost.forwards,
        ms=result.cost.ms,
        confidence=best.confidence if best else None,
        gate=result.gate,
        choice=choice,
    )


def _compared(cut: Cut, candidate: Candidate) -> tuple[bool, float, int]:
    """Exact or not, similarity, difference in length."""
    truth = cut.prefix[len(cut.prefix) - candidate.replace_before :] + cut.middle
    tail = cut.suffix.partition("\n")[0]
    ours, theirs = candidate.text.strip(), truth.strip()
    return (
        (candidate.text + tail).rstrip() == (truth + tail).rstrip(),
        difflib.SequenceMatcher(None, ours, theirs, autojunk=False).ratio(),
        abs(len(ours) - len(theirs)),
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
    return _gained([value(b) - value(a) for a, b in zip(first, other, strict=True)], first)


def _gained(gains: Sequence[float], trials: Sequence[Trial]) -> tuple[float, float, float]:
    low, high = interval(gains, [trial.cut.group for trial in trials])
    return percent(gains), round(100 * low, 3), round(100 * high, 3)


def gate(trials: Sequence[Trial], threshold: float) -> dict[str, float | None]:
    """How many of all trials are shown when an answer must be at least so sure, and how many of those are exact.
    Empty where no trial has a confidence."""
    if all(trial.confidence is None for trial in trials):
        return {}
    shown = [trial.exact for trial in trials if trial.confidence is not None and trial.confidence >= threshold]
    return {"shown": round(100 * len(shown) / len(trials), 3), "exact_of_shown": percent(shown) if shown else None}


def choices(trials: Sequence[Trial]) -> dict[str, Any]:
    """What the ranking and self-correction gain, in percent: exact matches of the decoder's first candidate, of the
    ranking's, after self-correction, and of the best of the batch, which no ranking can surpass; fills in which ids
    were taken back, and in which some became others; and what that gained. Empty where nothing is known of it."""
    known = [(trial, trial.choice) for trial in trials if trial.choice]
    if not known:
        return {}
    traced = [trial for trial, _ in known]
    exact, *exact_95 = _gained([trial.exact - choice.uncorrected for trial, choice in known], traced)
    similar, *similar_95 = _gained(
        [trial.similarity - choice.uncorrected_similarity for trial, choice in known], traced
    )
    return {
        "exact_first": percent(choice.first for _, choice in known),
        "exact_ranked": percent(choice.uncorrected for _, choice in known),
        "exact_corrected": percent(trial.exact for trial in traced),
        "exact_best": percent(choice.any for _, choice in known),
        "renoised": percent(choice.renoised > 0 for _, choice in known),
        "revised": percent(choice.revised > 0 for _, choice in known),
        "revised_ids": mean(choice.revised for _, choice in known),
        "correction_exact": exact,
        "correction_exact_95": exact_95,
        "correction_similarity": similar,
        "correction_similarity_95": similar_95,
    }


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
