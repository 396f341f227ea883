"""Leaves out the lines beyond a length that nobody reads in a suggestion, and refuses a single line of that length."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected

MAX_CHARS = 4_000


def too_long(text: str, request: FillRequest) -> str | Rejected:
    if len(text) <= MAX_CHARS:
        return text
    end = text.rfind("\n", 0, MAX_CHARS)
    if not text[: max(end, 0)].strip():
        return Rejected(reason=f"it is a line of more than {MAX_CHARS:,} characters")
    return text[:end]
