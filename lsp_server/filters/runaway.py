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
            circle = [line.strip() for line in lines[start : start + period]]
            if WORD.search(circle[0]) and _repeats(lines, start, period):
                if start == 0 and circle[0] == previous_line(request).strip():
                    return Rejected(reason="it repeats the previous line again and again")
                return "\n".join(lines[: start + period])
    found = _WORDS.search(text)
    if found and len(set(re.findall(r"[^\W\d]", found[1]))) > 1 and len(found[0]) > 30:
        return Rejected(reason="it repeats the same words again and again")
    return text


def _repeats(lines: list[str], start: int, period: int) -> bool:
    """Whether `period` lines from `start` come TIMES times in a row; the text may break off in the last time."""
    repeated = [line.strip() for line in lines[start : start + period * TIMES]]
    if len(repeated) <= period * (TIMES - 1):
        return False
    *whole, last = repeated
    first_time = repeated[(len(repeated) - 1) % period]
    broken_off = bool(last) and start + len(repeated) == len(lines) and first_time.startswith(last)
    return (last == first_time or broken_off) and all(
        line == repeated[index % period] for index, line in enumerate(whole)
    )
