"""Lines and white space of a text, without any syntax. Lines end as LSP says: at \\r\\n, \\n or \\r, nowhere else."""

import functools
import re
from collections import Counter
from typing import Literal

Follows = Literal["nothing", "closers", "code"]

# What a file looks like shows in its beginning; reading all of a large one at every keystroke would not tell more.
STYLE_SAMPLE = 65_536
# How much of the cursor's line is looked at, either side: lines written by hand are shorter.
LINE_REACH = 10_000

CLOSERS = ")]}>\"'`;,"
INDENT_WIDTHS = (2, 3, 4, 8)
_TAB_STOP = 8

LINE_END = re.compile(r"\r\n|\n|\r")
_INDENTED = re.compile(r"^([ \t]*)[^ \t\r\n]", re.MULTILINE)


def line_start(text: str, offset: int) -> int:
    """Where the line of `offset` starts, at most LINE_REACH before it. Between \\r and \\n is the line they end."""
    if text[offset - 1 : offset + 1] == "\r\n":
        offset -= 1
    low = max(0, offset - LINE_REACH)
    return max(text.rfind("\n", low, offset), text.rfind("\r", low, offset), low - 1) + 1


def line_end(text: str, offset: int) -> int:
    """Where the line of `offset` ends, its line end not counted, at most LINE_REACH behind."""
    high = min(len(text), offset + LINE_REACH)
    newline = text.find("\n", offset, high)
    end = high if newline < 0 else newline
    carriage_return = text.find("\r", offset, end)
    return end if carriage_return < 0 else carriage_return


def indent_of(line: str) -> int:
    """The width of the white space that `line` starts with, tabs to the next multiple of 8."""
    white = line[: len(line) - len(line.lstrip(" \t"))]
    return len(white.expandtabs(_TAB_STOP))


def follows(rest: str) -> Follows:
    """What `rest`, the text between cursor and line end, consists of."""
    if not rest.strip():
        return "nothing"
    return "code" if rest.strip(CLOSERS + " \t\f") else "closers"


def splits_word(text: str, offset: int) -> bool:
    """Whether the cursor has a letter, digit, `_` or `$` on both sides."""
    return 0 < offset < len(text) and _in_word(text[offset - 1]) and _in_word(text[offset])


def _in_word(char: str) -> bool:
    return char == "$" or ("a" + char).isidentifier()


@functools.lru_cache(maxsize=16)
def _style(sample: str, default: str) -> tuple[str, str]:
    crlf = sample.count("\r\n")
    line_ending = "\r\n" if crlf > sample.count("\n") - crlf else "\n"
    tabs = 0
    steps: Counter[int] = Counter()
    widths: Counter[int] = Counter()
    previous = 0
    for white in _INDENTED.findall(sample):
        if white.startswith("\t"):
            tabs += 1
        elif len(white) - previous in INDENT_WIDTHS:
            steps[len(white) - previous] += 1
        previous = 0 if "\t" in white else len(white)
        widths[len(white)] += 1
    best = max(steps.values(), default=0)
    spaced = sum(steps.values())
    if tabs > spaced:
        return "\t", line_ending
    likely = [width for width, count in steps.items() if count == best]
    if not likely or len(default) in likely:
        return default if spaced or not tabs else "\t", line_ending
    unit = min(likely)
    # Steps of two levels at once are no unit: other lines stand between.
    while unit > 2 and unit % 2 == 0 and _share(widths, unit) > 0.2:
        unit //= 2
    return " " * unit, line_ending


def _share(widths: Counter[int], unit: int) -> float:
    """The share of the indented lines that stand half a unit off."""
    halves = sum(count for width, count in widths.items() if width % unit == unit // 2)
    return halves / max(1, widths.total() - widths[0])


def style(text: str, default_unit: str) -> tuple[str, str]:
    """The unit of indentation (a tab, or 2, 3, 4 or 8 spaces) and the line end ("\\n" or "\\r\\n") of a file.

    The unit is the most frequent step to the right between neighbouring lines, halved where many lines stand half of it
    off, and `default_unit` where no line shows one; the line end is that of most lines, "\\n" in doubt.
    """
    return _style(text[:STYLE_SAMPLE], default_unit)
