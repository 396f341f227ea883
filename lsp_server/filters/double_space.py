"""Makes one space of two where the text meets what stands before and behind it."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import at_line_start, line_before, rest_of_line


def double_space(text: str, request: FillRequest) -> str:
    if line_before(request).endswith((" ", "\t")) and not at_line_start(request):
        text = text.lstrip(" \t")
    if rest_of_line(request).startswith((" ", "\t")):
        text = text.rstrip(" \t")
    return text
