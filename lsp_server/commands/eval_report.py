"""The figures of an evaluation as tables for people. Knows figures by name, and rich; nothing of how they arose."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

Figures = Mapping[str, Any]

UNITS = {
    "pass@1": "%", "exact_match": "%", "edit_similarity": "%", "parse_rate": "%", "answered": "%", "shown": "%",
    "exact_of_shown": "%", "length_error": "characters", "forwards": "per fill", "ms": "per fill",
}  # fmt: skip
INTERVAL = "_95"
WIDTH = 160
"""Columns of a table that goes to a file or a pipe."""


def single(out: Console, figures: Figures) -> None:
    """A figure per line, with its interval where it has one."""
    for name, value in figures.items():
        if name.endswith(INTERVAL):
            continue
        unit = UNITS.get(name, "")
        out.print(f"{name:<16} {_shown(value):>10} {unit:<10} {_interval(figures, name)}".rstrip())


def rows(out: Console, labels: Sequence[str], body: Sequence[Figures]) -> None:
    """A line per group: the values of `labels` first, then its figures."""
    columns = list(dict.fromkeys(name for row in body for name in row if not name.endswith(INTERVAL)))
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "), justify="left" if name in labels else "right")
    for row in body:
        table.add_row(*(f"{_shown(row.get(name))} {_interval(row, name)}".rstrip() for name in columns))
    out.print(table)


def side_by_side(out: Console, profiles: Sequence[str], body: Sequence[tuple[str, Sequence[Figures]]]) -> None:
    """A line per kind of cut; for each profile exact match, edit similarity and milliseconds."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    table.add_column("n", justify="right")
    for profile in profiles:
        for heading in ("exact match %", "edit similarity %", "ms"):
            table.add_column(f"{profile}\n{heading}", justify="right")
    for kind, figures in body:
        cells = [kind, str(figures[0]["n"])]
        for one in figures:
            exact = f"{_shown(one['exact_match'])} {_interval(one, 'exact_match')}"
            cells += [exact, _shown(one["edit_similarity"]), _shown(one["ms"])]
        table.add_row(*cells)
    out.print(table)


def _interval(figures: Figures, name: str) -> str:
    if name + INTERVAL not in figures:
        return ""
    low, high = figures[name + INTERVAL]
    return f"[{low:.1f}, {high:.1f}]"


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
