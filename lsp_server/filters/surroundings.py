"""What stands around the cursor of a request, line by line, and the verdict of a filter. Knows no filter."""

from __future__ import annotations

import re
from dataclasses import dataclass

from diffusion.api import FillRequest

_LINE_END = re.compile(r"\r\n|\n|\r")
WORD = re.compile(r"\w")


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Nothing of the text can be offered."""

    reason: str


def lines_of(text: str) -> list[str]:
    """Lines without their ends, of a text with any line ends."""
    return _LINE_END.split(text)


def line_before(request: FillRequest) -> str:
    """What stands on the cursor's line before the cursor."""
    return lines_of(request.prefix[-10_000:])[-1]


def rest_of_line(request: FillRequest) -> str:
    """What stands on the cursor's line behind the cursor, without the line's end."""
    return lines_of(request.suffix[:10_000])[0]


def following_lines(request: FillRequest) -> list[str]:
    """The lines below the cursor's that hold anything."""
    return [line for line in lines_of(request.suffix)[1:] if line.strip()]


def previous_line(request: FillRequest) -> str:
    """The last line above the cursor's that holds anything, or an empty one."""
    return next((line for line in reversed(lines_of(request.prefix)[:-1]) if line.strip()), "")


def at_line_start(request: FillRequest) -> bool:
    """Whether the text starts a line: the request's prefix is then without that line's white space."""
    return not line_before(request)


def compact(text: str) -> str:
    """The text without any white space."""
    return "".join(text.split())


def split_indent(line: str) -> tuple[str, str]:
    """A line's indentation and the rest of it."""
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)], body


def opens_block(line: str) -> bool:
    """Whether a deeper line may follow: the line ends in an opening bracket, a colon, or in the middle of something."""
    return line.rstrip().endswith((":", "{", "(", "[", ",", "=", "=>", "->", "\\", "|", "&", "+", "do", "then"))
