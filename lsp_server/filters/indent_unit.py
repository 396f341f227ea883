"""Gives the lines of a text the document's indentation: tabs or spaces, so many for a level, from its own level on.

Only what is clear is changed: the line below a first line that opens a block says how the text indents. Where the
cursor's line or the document has tabs and spaces, or the cursor is in a string, nothing is clear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from diffusion.api import FillRequest
from lsp_server.filters.brackets import before_cursor
from lsp_server.filters.surroundings import at_line_start, indent_unit_of, line_before, opens_block, split_indent

STEPS = (2, 3, 4, 8)
_PART = re.compile(r"(?:else|elif|except|finally|return|yield|break|continue)\b")


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How a text indents, in columns: `step` for each level, starting from `origin`, which stands for `target`."""

    origin: int
    step: int
    target: int

    def fits(self, width: int) -> bool:
        return width < self.origin or (width - self.origin) % self.step == 0

    def applied(self, width: int, level: int) -> int:
        if width < self.origin:
            return width
        return self.target + (width - self.origin) // self.step * level


AS_IS = Scale(origin=0, step=1, target=0)


def indent_unit(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    unit, known = indent_unit_of(request)
    given = split_indent(line_before(request))[0]
    if given.strip(unit[0]) or _mixes(request) or before_cursor(request).quote:
        return text
    if at_line_start(request):
        indent, body = split_indent(_indented(first, unit, AS_IS, 1) if known else first)
        first = (indent.rstrip(" ") if unit == "\t" else indent) + body  # A few columns are no level.
        start = _columns(split_indent(first)[0])
    else:
        start = _columns(given)
    header = first if at_line_start(request) else line_before(request) + first
    widths = [_columns(split_indent(line)[0]) for line in later if line.strip()]
    opens = bool(widths) and opens_block(header, request.language)
    # `return` or `else` in column 0, and the cursor is not there: the text was written from column 0 on.
    lonely = start > 0 and at_line_start(request) and any(map(_PART.match, later))
    continues = header.rstrip().endswith(("(", "[", ","))
    scales = _scales(start, _columns(unit), widths, known, lonely, continues) if opens else iter(())
    scale = next((scale for scale in scales if all(map(scale.fits, widths))), AS_IS)
    if scale is AS_IS and not known:
        return text
    level = 1 if scale is AS_IS else _columns(unit)
    return "\n".join([first, *(_indented(line, unit, scale, level) for line in later)])


def _mixes(request: FillRequest) -> bool:
    """Whether the document indents some lines with tabs and others with spaces, on purpose or not."""
    around = f"\n{request.prefix}{request.suffix}"
    few, many = sorted((around.count("\n\t"), around.count("\n  ")))
    return few * 10 > many


def _scales(start: int, level: int, widths: list[int], known: bool, lonely: bool, continues: bool) -> Iterator[Scale]:
    """What the columns of lines may mean, below one at `start` that opens a block; the likeliest first. Where the
    document has no indentation yet, any deeper column is as good as any other; and where the cursor is at no level of
    the document's unit, as below an open bracket, the unit says nothing.
    `lonely`: what cannot stand by itself is in column 0. `continues`: arguments follow, which some indent twice."""
    below = widths[0]
    if start % level:
        return
    if continues and below == start + 2 * level:
        yield AS_IS
    if lonely and below in STEPS:
        yield Scale(origin=0, step=below, target=start)
    if below == start + level or (not known and below > start):
        yield AS_IS
    if below - start in STEPS:
        yield Scale(origin=start, step=below - start, target=start)
    # Written from column 0 on: the block's end stands there, or its first line no deeper than the one above it.
    if below in STEPS and (below <= start or 0 in widths):
        yield Scale(origin=0, step=below, target=start)
    depth = start // level + 1
    if below % depth == 0 and below // depth in STEPS:
        yield Scale(origin=0, step=below // depth, target=0)


def _columns(indent: str) -> int:
    """Width in columns. A tab counts as four: whoever mixes them up means one level."""
    return len(indent.expandtabs(4))


def _indented(line: str, unit: str, scale: Scale, level: int) -> str:
    indent, body = split_indent(line)
    if not body:
        return line
    width = scale.applied(_columns(indent), level)
    if unit != "\t":
        return " " * width + body
    return "\t" * (width // 4) + " " * (width % 4) + body
