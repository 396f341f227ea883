"""Takes away a beginning that only says again what stands on the cursor's line already."""

from __future__ import annotations

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected, line_before

SHORTEST = 4
"""Characters: less is no proof, since `x` may well follow `x`."""


def retypes_line(text: str, request: FillRequest) -> str | Rejected:
    typed = line_before(request).strip()
    if len(typed) < SHORTEST or not (typed[-1].isalnum() or typed[-1] in "_;):}]"):
        return text  # Behind an opening bracket or an operator, the same may come once more: f(f(x))
    again = text.lstrip(" \t")
    if not again.startswith(typed):
        return text
    rest = again[len(typed) :]
    return rest if rest.strip() else Rejected(reason="it repeats the line before the cursor")
