"""How long is the middle? Read from the model: end-of-middle fills the slot behind the middle, so the probability of
end-of-middle at position i estimates P(length <= i). Made monotone, its differences are the length's distribution.

Arrays in, lengths out. Knows neither model nor text. (End-of-middle as fill: DreamOn, Wu et al. 2026, without its
expansion; the posterior by differences is ours.)

A model that was not trained to say it is asked how sure it is of its best ids with each of several lengths. It is surer
of fewer, whatever the text is: that bias is divided out. (Calibrated Adaptive Length, arXiv 2602.00476.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def distribution(end: Floats) -> Floats:
    """end (W,): probability of end-of-middle at each slot position. Returns (W + 1,): P(length = l) for l < W, and at
    the end the probability that the middle is not over within the slot. Sums to 1."""
    at_most = np.clip(monotone(end), 0.0, 1.0)
    edges = np.concatenate(([0.0], at_most, [1.0]))
    return np.diff(edges)


def monotone(values: Floats) -> Floats:
    """The nearest non-decreasing sequence in the least-squares sense (pool adjacent violators)."""
    blocks: list[tuple[float, int]] = []
    for value in values:
        mean, count = float(value), 1
        while blocks and blocks[-1][0] > mean:
            before, size = blocks.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        blocks.append((mean, count))
    return np.concatenate([np.full(count, mean) for mean, count in blocks]) if blocks else np.zeros(0)


def likeliest(probabilities: Floats, most: int, least: int = 1, mass: float = 1.0, shortest: int = 0) -> list[int]:
    """The most likely lengths of at least `shortest`, most likely first; ties go to the shorter one.

    At most `most` of them, and no more than it takes to hold `mass` of the probability, but at least `least`.
    """
    order = sorted(range(shortest, len(probabilities)), key=lambda length: (-probabilities[length], length))
    needed = int(np.searchsorted(np.cumsum(probabilities[order]), mass - 1e-9)) + 1
    return order[: max(least, min(most, needed))]


def bias(length: int, curve: tuple[float, float, float, float, float]) -> float:
    """What to expect of the mean probability of the best ids at `length` positions: a*exp(-b*L) + c*exp(-d*L) + e."""
    a, b, c, d, e = curve
    return float(a * np.exp(-b * length) + c * np.exp(-d * length) + e)


def surest(
    lengths: Sequence[int], sure: Sequence[float], curve: tuple[float, float, float, float, float], most: int
) -> list[int]:
    """The `most` best of `lengths`, best first, by how `sure` the model is with each, its bias divided out."""
    quality = {length: value / bias(length, curve) for length, value in zip(lengths, sure, strict=True)}
    return sorted(quality, key=lambda length: (-quality[length], length))[:most]
