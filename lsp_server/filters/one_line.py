"""Keeps the first line only where code follows the cursor on its line: that code must stay this line's end."""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.lines import follows
from lsp_server.filters.surroundings import rest_of_line


def one_line(text: str, request: FillRequest) -> str:
    if follows(rest_of_line(request)) != "code":
        return text
    return text.split("\n", 1)[0]
