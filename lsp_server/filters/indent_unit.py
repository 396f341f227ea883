"""Gives the lines of the text the document's indentation: tabs or spaces, and how many of them make a level."""

from __future__ import annotations

import math

from diffusion.api import FillRequest
from grammars.lines import style
from lsp_server.filters.surroundings import opens_block, split_indent


def indent_unit(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    unit, _ = style(request.prefix + request.suffix, "")
    if not unit or not any(line.strip() for line in later):
        return text
    start = split_indent(first)[0] or split_indent(_cursor_line(request))[0]
    widths = [_columns(split_indent(line)[0]) for line in later if line.strip()]
    step = _step(widths, level=_level(start, unit), unit=unit, opens=opens_block(first))
    if step is None:
        return text
    return "\n".join([first, *(_indented(line, unit, step) for line in later)])


def _cursor_line(request: FillRequest) -> str:
    return request.prefix[request.prefix.rfind("\n") + 1 :]


def _columns(indent: str) -> int:
    """Width in columns; a tab is as wide as four spaces, which is what a text means that mixes them."""
    return len(indent.expandtabs(4))


def _level(indent: str, unit: str) -> int:
    return _columns(indent) // _columns(unit)


def _step(widths: list[int], *, level: int, unit: str, opens: bool) -> int | None:
    """Columns of a level in the text, if that is another than the document's; None if the text fits as it is."""
    own = _columns(unit)
    expected = (level + 1) * own
    if unit != "\t" and (not opens or widths[0] == expected):
        return None if all(width % own == 0 for width in widths) or not opens else None
    if opens and widths[0] and widths[0] % (level + 1) == 0:
        step = widths[0] // (level + 1)
        if all(width % step == 0 for width in widths):
            return step
    common = math.gcd(*widths)
    return min(common, 4) if common and unit == "\t" else None


def _indented(line: str, unit: str, step: int) -> str:
    indent, body = split_indent(line)
    if not body:
        return line
    levels, more = divmod(_columns(indent), step)
    return unit * levels + " " * more + body
