"""Drops a comment at the end of the text where something follows on the line, which the comment would swallow."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.brackets import balance_in_place, before_cursor
from lsp_server.filters.surroundings import rest_of_line


def comment_before_rest(text: str, request: FillRequest) -> str:
    if not rest_of_line(request).strip() or before_cursor(request).comment is not None:
        return text
    comment = balance_in_place(text, request).comment
    return text if comment is None else text[:comment].rstrip(" \t")
