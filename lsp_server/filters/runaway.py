"""Stops a text that has run into a circle: the same lines, or the same words, again and again."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import WORD, Rejected, previous_line

TIMES = 3
"""So often in a row is a circle, if there is a letter or digit in it."""

LONGEST = 4
"""Lines of a circle."""

_WORDS = re.compile(r"([^\n]{3,60}?)\1{4,}")


def runaway(text: str, request: FillRequest) -> str | Rejected:
    lines = text.split("\n")
    for start in range(len(lines)):
        for period in range(1, LONGEST + 1):
            if WORD.search(lines[start]) and _repeats(lines, start, period):
                if start == 0 and lines[0].strip() == previous_line(request).strip():
                    return Rejected(reason="it repeats the previous line again and again")
                return "\n".join(lines[: start + period])
    found = _WORDS.search(text)
    if found and len(set(re.findall(r"[^\W\d]", found[1]))) > 1 and len(found[0]) > 30:
        return Rejected(reason="it repeats the same words again and again")
    return text


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
