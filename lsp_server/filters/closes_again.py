"""Cuts a text where it closes a bracket whose closer stands on the next line already."""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.lines import indent_of
from lsp_server.filters.brackets import redundant_closers
from lsp_server.filters.surroundings import following_lines, rest_of_line


def closes_again(text: str, request: FillRequest) -> str:
    below = following_lines(request)
    if rest_of_line(request).strip() or not below:
        return text
    for at, closer in redundant_closers(text, request)[:1]:
        line = text[text.rfind("\n", 0, at) + 1 :]
        deeper = not line[: len(line) - len(text[at:])].strip() and indent_of(line) > indent_of(below[0])
        # A quote at a line's start may open as well as close.
        closes = below[0].strip() == closer or (closer in ")]}" and below[0].lstrip().startswith(closer))
        if closes and not deeper:
            return text[:at].rstrip()
    return text
