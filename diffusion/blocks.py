"""How deep a line between two others may stand, from the lines themselves: what opens a block above is followed by
something deeper, and what stands deeper below needs something that opens it.

Knows text and how blocks look in languages with and without braces; knows no tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

BY_INDENTATION = frozenset({"python"})
"""Languages in which a colon, and no bracket, opens a block."""

GOES_ON, GOES_ON_BY_INDENTATION = ",\\=+&|?>", ",\\([{"
"""Ends of lines that the next one continues, as deep as its author likes."""

INSIDE = tuple(",([{\\")
"""Ends of a line that put the next one inside of something, where anything may stand."""

STRINGS = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""")
UNCLEAR = re.compile(r"""#|//|/\*|^\s*\*|\*/|""\"|'''|['"`]$""")
"""Comments and strings that go on: what is in them is no code."""

LOOKED_AT = 400
"""Lines above, at most: blocks that begin further away are closed otherwise."""


def indentations(prefix: str, suffix: str, language: str) -> frozenset[str] | None:
    """The blanks that a line may begin with which stands between the last line of `prefix` and the first of `suffix`
    that are not blank. What stands before the cursor on its own line must be blank and is among them, unless there is
    nothing. None where they do not tell: where it is not blank, inside of brackets, of strings and of comments with
    a star on every line, and between tabs and spaces."""
    own = prefix[prefix.rfind("\n") + 1 :]
    if own.strip():
        return None
    above = [line for line in prefix.split("\n")[-LOOKED_AT:-1] if line.strip()]
    if not above or suffix.partition("\n")[0].strip():
        return None
    below = _below(suffix)
    near = (above[-1], below or "")
    if (
        _in_text(prefix)
        or any(line.lstrip().startswith("*") for line in near)
        or len({"\t" in blanks for blanks in map(_blanks, near) if blanks}) > 1
    ):
        return None
    above = [line for line in above if not line.lstrip().startswith("*")]
    last, end = _blanks(above[-1]), above[-1].rstrip()[-1]
    if end in (GOES_ON_BY_INDENTATION if language in BY_INDENTATION else GOES_ON):
        return None
    unit = _unit(above)
    if end in (":" if language in BY_INDENTATION else ":([{"):
        inside = last if below is None else _blanks(below)
        deeper = {last + unit if len(inside) <= len(last) or inside == last + 2 * unit else inside}
    else:
        deeper = set(_around(above))
        if below is not None:
            least = _blanks(below)
            deeper = {blanks for blanks in deeper if len(blanks) >= len(least) or blanks + unit == least}
    return frozenset(deeper | ({own} if own else set())) or None


def whole(line: str, prefix: str, suffix: str, language: str) -> bool:
    """Can a line that reads `line` stand between `prefix`, up to its start, and `suffix`, from its end? False only if
    it opens a block that does not follow, or none although one follows, or leaves a bracket open although what follows
    is not inside of it."""
    below = _below(suffix)
    code = STRINGS.sub('""', line).rstrip()
    if (
        below is None
        or not code
        or _in_text(prefix)
        or suffix.partition("\n")[0].strip()
        or UNCLEAR.search(code)
        or prefix.rstrip()[-1:] in INSIDE
    ):
        return True
    deeper = len(_blanks(below)) > len(_blanks(line))
    depth = sum(code.count(opens) for opens in "([{") - sum(code.count(closes) for closes in ")]}")
    if depth > 0:
        return deeper or below.lstrip()[0] in ")]}"
    if depth < 0 or language not in BY_INDENTATION:
        return True
    return code.endswith((":", "\\")) == deeper


def _below(suffix: str) -> str | None:
    """The first line that is not blank, behind the cursor's own."""
    return next((line for line in suffix.split("\n")[1:] if line.strip()), None)


def _in_text(prefix: str) -> bool:
    """Does a string of several lines go on?"""
    return prefix.count('"""') % 2 == 1 or prefix.count("'''") % 2 == 1


def _around(above: list[str]) -> Iterator[str]:
    """The indentation of the last line and of the blocks around it."""
    least = None
    for line in reversed(above):
        blanks = _blanks(line)
        if least is None or len(blanks) < least:
            least = len(blanks)
            yield blanks
        if not least:
            break


def _unit(above: list[str]) -> str:
    """By how much blocks are indented here: the commonest step inwards, four blanks where there is none."""
    steps = [
        _blanks(line)[len(_blanks(before)) :]
        for before, line in pairwise(above)
        if len(_blanks(line)) > len(_blanks(before))
    ]
    return max(set(steps), key=lambda step: (steps.count(step), -len(step))) if steps else "    "


def _blanks(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
