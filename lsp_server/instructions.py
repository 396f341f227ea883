"""An instruction that is written in the document, for editors that cannot ask for one: a comment in front of the
selection, or at its beginning.

    # sort by name, then by age                    def f(a):
    people = [...]     <- selected                     # midfill: add a docstring   <- selected from here
                                                       return a + 1

Knows texts and comment signs.
"""

from __future__ import annotations

import re

from grammars.languages import language_for
from grammars.lines import line_end, line_start

HOW = "select below a comment that says what to change, or begin the selection with one like `midfill: sort by name`"
_MARK = re.compile(r"midfill:\s*", re.IGNORECASE)
_UNKNOWN = ("#", "//", "--", ";", "%")


def instruction_at(text: str, start: int, end: int, language: str) -> tuple[str, int]:
    """The instruction of the selection `start` to `end`, "" if there is none, and where the rest of it begins.

    A comment with which the selection begins counts only with the mark `midfill:`; one that is alone on the line above
    needs none.
    """
    first = line_end(text, start)
    inside = _comment(text[start:first], language)
    if (mark := _MARK.match(inside)) and first < end:
        below = first + (2 if text.startswith("\r\n", first) else 1)
        return inside[mark.end() :], min(below, end)
    here = line_start(text, start)
    if here == 0 or text[here:start].strip():
        return "", start
    above = text[line_start(text, here - 1) : here].strip("\r\n")
    return _MARK.sub("", _comment(above, language), count=1), start


def _comment(line: str, language: str) -> str:
    """What the comment says that a line consists of, or ""."""
    row, line = language_for(language), line.strip()
    for opening, closing in row.block_comments:
        if line.startswith(opening) and line.endswith(closing) and len(line) >= len(opening) + len(closing):
            return line[len(opening) : len(line) - len(closing)].strip()
    signs = (row.line_comment,) if row.line_comment else () if row.block_comments else _UNKNOWN
    sign = next((sign for sign in signs if line.startswith(sign)), None)
    return line[len(sign) :].strip() if sign else ""
