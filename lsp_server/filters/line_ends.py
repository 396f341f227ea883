"""Gives the text the line ends of the document."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import lines_of


def line_ends(text: str, request: FillRequest) -> str:
    around = request.prefix + request.suffix
    crlf = around.count("\r\n")
    lone = len(lines_of(around)) - 1 - crlf - (around.count("\n") - crlf)
    if "\n" in around.replace("\r\n", "") and crlf * 2 < len(lines_of(around)):
        return text
    if crlf:
        return text.replace("\n", "\r\n")
    return text.replace("\n", "\r") if lone else text
