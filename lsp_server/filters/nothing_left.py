"""Refuses what has no visible character."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected


def nothing_left(text: str, request: FillRequest) -> str | Rejected:
    return text if text.strip() else Rejected(reason="nothing is left but white space")
