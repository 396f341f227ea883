"""How long is the middle? Read from the model: end-of-middle fills the slot behind the middle, so the probability of
end-of-middle at position i estimates P(length <= i). Made monotone, its differences are the length's distribution.

Arrays in, lengths out. Knows neither model nor text. (End-of-middle as fill: DreamOn, Wu et al. 2026, without its
expansion; the posterior by differences is ours.)
"""

from __future__ import annotations

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
