"""Puts the first line of a text where the cursor is, if it is indented by a few columns, or by a level, too many."""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.lines import indent_of, style
from lsp_server.filters.surroundings import at_line_start, opens_block, previous_line, split_indent

_CONTINUES = (".", "?", ":", "&", "|", "+", "-", "*", "/", ")", "]", "}")


def first_indent(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    if not body or not at_line_start(request):
        return text
    above = previous_line(request)
    unit, _ = style(request.prefix + request.suffix, "    ")
    width, level = indent_of(first), indent_of(unit)
    deepest = indent_of(above) + (level if opens_block(above) else 0)
    if width > deepest and not body.startswith(_CONTINUES):
        wanted = deepest
    elif width % level and indent_of(above) % level == 0 and unit != "\t":
        wanted = width - width % level
    else:
        return text
    surplus = width - wanted
    if all(indent_of(line) % level == width % level for line in later if line.strip()) and width % level:
        later = [line[min(surplus, len(split_indent(line)[0])) :] for line in later]
    return "\n".join([_narrowed(indent, wanted) + body, *later])


def _narrowed(indent: str, width: int) -> str:
    """The longest part of an indentation that is no wider than `width` columns."""
    while indent_of(indent + ".") > width:
        indent = indent[:-1]
    return indent
