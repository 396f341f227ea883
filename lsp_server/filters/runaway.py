"""Stops a text that has run into a circle: the same lines, or the same words, again and again."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import WORD, Rejected, opens_block, previous_line

TIMES = 3
"""So often in a row is a circle, if there is a letter or digit in it."""

LONGEST = 4
"""Lines of a circle."""

COUNTED = 5
"""So often in a row is a circle if only numbers change; TIMES of them are kept."""

_LETTERS = re.compile(r"([^\W\d_])\1{39}")
_LETTER = re.compile(r"[^\W\d_]")
_NUMBER = re.compile(r"\d+")
_WORDS = re.compile(r"([^\n]{3,60}?)\1{4,}")


def runaway(text: str, request: FillRequest) -> str | Rejected:
    lines = text.split("\n")
    for start in range(len(lines)):
        for period in range(1, LONGEST + 1):
            if WORD.search(lines[start]) and _repeats(lines, start, period):
                if start == 0 and lines[0].strip() == previous_line(request).strip():
                    return Rejected(reason="it repeats the previous line again and again")
                end = start + period
                while end < min(len(lines), start + 2 * period) and opens_block(lines[end - 1], request.language):
                    end += 1  # Not without its body.
                return "\n".join(lines[:end])
    lines = _counted(lines)
    text = "\n".join(lines)
    if _LETTERS.search(text):
        return Rejected(reason="it repeats the same letter again and again")
    found = _WORDS.search(text)
    if found and len(set(re.findall(r"[^\W\d]", found[1]))) > 1 and len(found[0]) > 30:
        return Rejected(reason="it repeats the same words again and again")
    return text


def _counted(lines: list[str]) -> list[str]:
    """The lines without the rest of a circle in which only numbers change: x1 = 1, x2 = 2 ..."""
    shapes = [_NUMBER.sub("0", line.strip()) for line in lines]
    for start in range(len(shapes)):
        for period in range(1, LONGEST + 1):
            end = start + period * COUNTED
            same = all(shapes[at] == shapes[at - period] for at in range(start + period, min(end, len(shapes))))
            if end <= len(shapes) and same and all(_LETTER.search(shape) for shape in shapes[start : start + period]):
                return lines[: start + period * TIMES]
    return lines


def _repeats(lines: list[str], start: int, period: int) -> bool:
    """Whether `period` lines from `start` come TIMES times in a row; the text may break off in the last time."""
    end = min(len(lines), start + period * TIMES)
    if end - start <= period * (TIMES - 1):
        return False
    return all(
        _same(lines[at], lines[at - period], first=at == period, broken_off=at == len(lines) - 1)
        for at in range(start + period, end)
    )


def _same(line: str, earlier: str, *, first: bool, broken_off: bool) -> bool:
    """Also in indentation, but for the text's first line: that starts where the cursor is."""
    if first:
        line, earlier = line.lstrip(), earlier.lstrip()
    line, earlier = line.rstrip(), earlier.rstrip()
    return line == earlier or (broken_off and bool(line.strip()) and earlier.startswith(line))
