"""Puts the first line of a text where the cursor is, if it is indented too far: by a few columns, or twice.

Only a text that starts its line is looked at, and only what it adds to the white space before the cursor.
"""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.languages import language_for
from grammars.lines import indent_of
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
    if added <= 0 or body.startswith(_CONTINUES):
        return width
    above = previous_line(request)
    if opens_block(above, request.language) and cursor == indent_of(above) + level:
        return cursor  # It stands where the block begins.
    if added % level:  # A few columns.
        return cursor + added - added % level
    if below == added + level:  # The text has brought its indentation along: twice is too much.
        return max(added, cursor)
    if not above:
        return width
    deeper = goes_on(above, request.language)
    deepest = indent_of(above) + (level if deeper else 0)
    if language_for(request.language).block_style == "indent" and width > deepest:
        return max(deepest, cursor)
    return cursor if added == cursor and not (deeper and indent_of(above) >= cursor) else width
