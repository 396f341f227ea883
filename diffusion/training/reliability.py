"""What a confidence is worth: bins of it against what is true, as text and as a picture, and where to put the gate.

Knows numbers; nothing of where they come from.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

BINS = 10
RIGHT = 0.6
"""The gate is put where answers that are shown are right so often."""
LEAST_SHOWN = 10
"""A share of fewer answers says nothing."""

SIZE, MARGIN = 320, 44
"""Of the picture, in pixels."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Answers of about the same confidence: how many, how sure they are on average, which share of them is right."""

    n: int
    confidence: float
    right: float


def bins(confidences: Sequence[float], hits: Sequence[bool]) -> list[Bin]:
    """At most ten bins of equal width, those without answers left out."""
    found: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for confidence, hit in zip(confidences, hits, strict=True):
        found[min(BINS - 1, int(confidence * BINS))].append((confidence, hit))
    return [
        Bin(
            n=len(pairs),
            confidence=statistics.fmean(confidence for confidence, _ in pairs),
            right=statistics.fmean(hit for _, hit in pairs),
        )
        for _, pairs in sorted(found.items())
    ]


def gate(confidences: Sequence[float], hits: Sequence[bool]) -> float:
    """The lowest threshold from which on answers are right often enough; if there is none, the one from which on they
    are right most often. 1 where there are too few answers to tell."""
    ordered = sorted(zip(confidences, hits, strict=True), reverse=True)
    best, lowest, right = (0.0, 1.0), None, 0
    for shown, (confidence, hit) in enumerate(ordered, 1):
        right += hit
        if shown < LEAST_SHOWN or (shown < len(ordered) and ordered[shown][0] == confidence):
            continue
        best = max(best, (right / shown, confidence))
        if right >= RIGHT * shown:
            lowest = confidence
    return best[1] if lowest is None else lowest


def table(found: Sequence[Bin]) -> str:
    """The bins as a table in Markdown, in percent."""
    rows = [f"| {100 * one.confidence:.0f} | {100 * one.right:.0f} | {one.n} |" for one in found]
    return "\n".join(["| stated | right | answers |", "|---:|---:|---:|", *rows])


def svg(found: Sequence[Bin]) -> str:
    """The bins as a reliability diagram: stated confidence against the share that is right, areas by number."""
    side, total = SIZE - 2 * MARGIN, sum(one.n for one in found)

    def at(x: float, y: float) -> tuple[float, float]:
        return round(MARGIN + side * x, 1), round(SIZE - MARGIN - side * y, 1)

    (left, bottom), (right, top) = at(0, 0), at(1, 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE} {SIZE}" font-family="sans-serif" font-size="11">',
        f'<rect width="{SIZE}" height="{SIZE}" fill="white"/>',
        f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="black"/>',
        f'<path d="M{left} {bottom}L{right} {top}" stroke="gray" stroke-dasharray="4"/>',
        f'<text x="{SIZE / 2}" y="{SIZE - 10}" text-anchor="middle">stated confidence, %</text>',
        f'<text x="14" y="{SIZE / 2}" text-anchor="middle" transform="rotate(-90 14 {SIZE / 2})">right, %</text>',
    ]
    for percent in (0, 50, 100):
        x, y = at(percent / 100, percent / 100)
        parts.append(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{percent}</text>')
        parts.append(f'<text x="{left - 4}" y="{y + 4}" text-anchor="end">{percent}</text>')
    for one in found:
        x, y = at(one.confidence, one.right)
        radius = max(2.0, round(24 * (one.n / total) ** 0.5, 1))
        parts.append(f'<circle cx="{x}" cy="{y}" r="{radius}" fill="steelblue" fill-opacity="0.6"/>')
    return "\n".join([*parts, "</svg>", ""])
