"""The figures of a replay as an SVG picture: a row of bars per way, a column per figure. The same for the same figures.

Knows figures by name; nothing of how they arose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

COLUMNS = (
    ("keys saved, %", ("saved",), "#2a7f62"),
    ("wrong items shown, % of keys", ("wrong",), "#b5473c"),
    ("model calls per key", ("decoder_calls", "encoder_calls"), "#3b6ea5"),
)
"""Heading, the figures that are stacked, and the colour of the first; those behind it are paler."""

LABEL, COLUMN, BAR, ROW, TOP = 150, 190, 130, 26, 56
"""In pixels: the width of labels, columns and the longest bar; the height of a row and of what stands above."""


def chart(ways: Sequence[Mapping[str, Any]], title: str) -> str:
    """An SVG document of `ways`, the figures of each by name."""
    width, height = LABEL + COLUMN * len(COLUMNS), TOP + ROW * len(ways) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="20" font-weight="bold">{escape(title)}</text>',
    ]
    for row, way in enumerate(ways):
        label = f"{way['way']}, {way['min_confidence']:g}" if way["min_confidence"] >= 0 else way["way"]
        parts.append(f'<text x="8" y="{TOP + ROW * row + 16}">{escape(label)}</text>')
    for column, (heading, names, colour) in enumerate(COLUMNS):
        x = LABEL + COLUMN * column
        parts.append(f'<text x="{x}" y="44" fill="#555">{escape(heading)}</text>')
        longest = max((sum(way[name] for name in names) for way in ways), default=0.0)
        for row, way in enumerate(ways):
            y, at = TOP + ROW * row, float(x)
            for number, name in enumerate(names):
                length = BAR * max(0.0, way[name]) / longest if longest > 0 else 0.0
                parts.append(
                    f'<rect x="{at:.1f}" y="{y}" width="{length:.1f}" height="{ROW - 6}" fill="{colour}"'
                    f' opacity="{1 - 0.5 * number:g}"/>'
                )
                at += length
            said = " + ".join(f"{way[name]:.2f}" if len(names) > 1 else f"{way[name]:.1f}" for name in names)
            parts.append(f'<text x="{at + 4:.1f}" y="{y + 15}" font-size="11">{said}</text>')
    return "\n".join([*parts, "</svg>", ""])
