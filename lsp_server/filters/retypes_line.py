"""Takes away a beginning that only says again what stands before the cursor: a line, or the word begun."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected, at_line_start, line_before, previous_line

SHORTEST = 4
"""Characters of a line: less is no proof, since `x` may well follow `x`."""

_WORD_BEGUN = re.compile(r"[^\W\d]\w+\Z")


def retypes_line(text: str, request: FillRequest) -> str | Rejected:
    typed = line_before(request).strip()
    again = text.lstrip(" \t")
    # Behind an opening bracket or an operator, the same may come once more: f(f(x)).
    if len(typed) >= SHORTEST and (typed[-1].isalnum() or typed[-1] in "_;):}]") and again.startswith(typed):
        rest = again[len(typed) :]
        return rest if rest.strip() else Rejected(reason="it repeats the line before the cursor")
    # A body that begins with its own header once more: def f(): def f():
    header, first, *later = previous_line(request).strip(), *text.split("\n")
    if at_line_start(request) and len(header) >= SHORTEST and header.endswith((":", "{")) and first.strip() == header:
        return "\n".join(later) if later else Rejected(reason="it repeats the line above the cursor")
    begun = _WORD_BEGUN.search(line_before(request))
    if begun and text.startswith(begun[0]):
        return text[len(begun[0]) :]
    return text
