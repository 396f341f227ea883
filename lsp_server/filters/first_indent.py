"""Puts the first line of a text where the cursor is, if it is indented too far: by a few columns, or twice; and where
the line above is, if the cursor itself stands too deep.

Only a text that starts its line is looked at.
"""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.brackets import balance
from grammars.languages import language_for
from grammars.lines import indent_of
from lsp_server.filters.brackets import before_cursor
from lsp_server.filters.surroundings import (
    at_line_start,
    goes_on,
    indent_unit_of,
    line_before,
    narrowed,
    opens_block,
    previous_line,
    shifted,
    split_indent,
)

_CONTINUES = (".", "?", ":", "&", "|", "+", "-", "*", "/")


def first_indent(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    if not body or not at_line_start(request):
        return text
    unit, _ = indent_unit_of(request)
    if unit == "\t" and " " in indent:
        return text  # Spaces of no known width; the next filter makes tabs of them.
    width, cursor, level = indent_of(first), indent_of(line_before(request)), indent_of(unit)
    below = next((indent_of(line) for line in later if line.strip()), None)
    wanted = _wanted(request, body, width, cursor, level, below if opens_block(first, request.language) else None)
    if wanted >= width:
        return text
    surplus = width - wanted
    if surplus % level and all(indent_of(line) % level == width % level for line in later if line.strip()):
        later = shifted(later, surplus)
    return "\n".join([narrowed(indent, wanted) + body, *later])


def _wanted(request: FillRequest, body: str, width: int, cursor: int, level: int, below: int | None) -> int:
    """Where the first line belongs, in columns; `below` is where the next one stands if the first opens a block."""
    added = width - cursor
    if body.startswith(_CONTINUES):
        return width
    above = previous_line(request)
    if added <= 0:
        return min(width, _level_above(request, above, cursor))
    if opens_block(above, request.language) and cursor == indent_of(above) + level:
        return cursor  # It stands where the block begins.
    deeper = goes_on(above, request.language)
    deepest = indent_of(above) + (level if deeper else 0)
    if added % level:  # A few columns.
        whole = cursor + added - added % level
        return whole if deeper or not above else min(whole, max(cursor, deepest))
    if below == added + level:  # The text has brought its indentation along: twice is too much.
        return max(added, cursor)
    if not above:
        return width
    if language_for(request.language).block_style == "indent" and width > deepest:
        return max(deepest, cursor)
    return cursor if added == cursor and not (deeper and indent_of(above) >= cursor) else width


def _level_above(request: FillRequest, above: str, cursor: int) -> int:
    """Where a line belongs if the cursor is deeper than the line above it, which is complete; else where the cursor
    is."""
    opened = before_cursor(request).opened
    if language_for(request.language).block_style == "indent":
        complete = request.language == "python" and not opened and not above.lstrip().startswith(("#", "@"))
    else:
        complete = above.rstrip().endswith((";", "}")) and (not opened or opened[-1] == "{")
    complete = complete and not balance(above, request.language).opened
    deeper = cursor > indent_of(above) and bool(above)
    return indent_of(above) if deeper and complete and not goes_on(above, request.language) else cursor
