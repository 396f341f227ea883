"""Drops empty lines and white space at the end, which the document has already or nobody wants."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.brackets import closers_taken_over
from lsp_server.filters.surroundings import rest_of_line


def trailing_blank(text: str, request: FillRequest) -> str:
    rest = rest_of_line(request)
    if rest[closers_taken_over(text, request) :].strip():
        return text  # The newline before a closing brace belongs to the body.
    return text.rstrip()
