"""From one text to another by as few and small changes as can be, and unchanged lines kept as they are, ends included.

Knows lines; neither LSP nor where the texts come from. The alignment is difflib's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lsp_server.documents import split_lines, without_surrogates

MOST = 2_000_000
"""Pairs of lines to compare at most: beyond that, all between the first and the last difference is one change."""

Block = tuple[int, int, int, int]
"""Lines [0]:[1] of the old text, which have become lines [2]:[3] of the new one."""


@dataclass(frozen=True, kw_only=True)
class Hunk:
    """`text` takes the place of the code points `start` to `end` of the old text."""

    start: int
    end: int
    text: str


def hunks(old: str, new: str) -> tuple[Hunk, ...]:
    """The changes from `old` to `new`, in order; none overlap, none cuts a `\\r\\n` in two."""
    before, after = split_lines(old), split_lines(new)
    found = []
    start = at = 0
    for first, last, low, high in _differing(before, after):
        start += sum(map(len, before[at:first]))
        text = "".join(before[first:last])
        found.append(_trimmed(start, text, "".join(after[low:high])))
        start, at = start + len(text), last
    return tuple(found)


def with_ends_of(old: str, new: str, end: str) -> str:
    """`new`, whose lines end in "\\n", with old lines where it has the same ones, and `end` behind the others."""
    before, after = split_lines(old), new.split("\n")
    contents = [line.rstrip("\r\n") for line in before]
    lines, ends = list(after), [end] * (len(after) - 1) + [""]
    for number, origin in _same([without_surrogates(line) for line in contents], after):
        lines[number] = contents[origin]
        if number < len(after) - 1:
            ends[number] = before[origin][len(contents[origin]) :] or end
    return "".join(map("".join, zip(lines, ends, strict=True)))


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines, or characters, two texts have in common at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == other[low:middle] else (low, middle - 1)
    return low


def _same(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The lines of `after` that are lines of `before`, with their numbers there."""
    at = kept = 0
    for first, last, low, high in (*_differing(before, after), (len(before), 0, len(after), 0)):
        yield from zip(range(kept, low), range(at, first), strict=True)
        at, kept = last, high


def _differing(before: Sequence[str], after: Sequence[str]) -> list[Block]:
    """The blocks of lines that are not the same."""
    head = common(before, after)
    tail = common(before[head:][::-1], after[head:][::-1])
    inner = before[head : len(before) - tail], after[head : len(after) - tail]
    if len(inner[0]) * len(inner[1]) > MOST:
        return [(head, head + len(inner[0]), head, head + len(inner[1]))]
    matcher = SequenceMatcher(None, *inner, autojunk=False)
    return [
        (head + first, head + last, head + low, head + high)
        for tag, first, last, low, high in matcher.get_opcodes()
        if tag != "equal"
    ]


def _trimmed(start: int, old: str, new: str) -> Hunk:
    """The change from `old`, which begins at `start`, to `new`, without what both begin and end with."""
    head = common(old, new)
    head -= _inside_line_end(old, head) or _inside_line_end(new, head)
    most = min(len(old), len(new)) - head
    tail = min(most, common(old[::-1], new[::-1]))
    tail -= _inside_line_end(old, len(old) - tail) or _inside_line_end(new, len(new) - tail)
    return Hunk(start=start + head, end=start + len(old) - tail, text=new[head : len(new) - tail])


def _inside_line_end(text: str, offset: int) -> bool:
    return text[offset - 1 : offset + 1] == "\r\n" if offset else False
