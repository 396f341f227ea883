"""Drops empty lines before a body, and white space on an empty first line."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import at_line_start, opens_block, previous_line


def leading_blank(text: str, request: FillRequest) -> str:
    lines = text.split("\n")
    filled = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not filled or not at_line_start(request):
        return text
    if opens_block(previous_line(request), request.language):
        return "\n".join(lines[filled:])
    return "\n".join(["", *lines[1:]])
