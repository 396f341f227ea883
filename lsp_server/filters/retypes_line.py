"""Takes away a beginning that only says again what stands before the cursor: a line, or the word begun."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected, at_line_start, line_before, lines_of, previous_line

SHORTEST = 4
"""Characters of a line: less is no proof, since `x` may well follow `x`."""

_SAYS_SOMETHING = re.compile(r"(?:\W*\w){4}")
_DASHED = frozenset({"css", "scss", "less", "html", "clojure", "lisp", "scheme"})
_DASHED_BEGUN = re.compile(r"[^\W\d][\w-]+\Z")
_NAME_BEGUN = re.compile(r"[$@]\w+\Z")
_WORD_BEGUN = re.compile(r"[^\W\d]\w+\Z")


def retypes_line(text: str, request: FillRequest) -> str | Rejected:
    typed = line_before(request).strip()
    again = text.lstrip(" \t")
    # Behind an opening bracket or an operator, the same may come once more: f(f(x)).
    if len(typed) >= SHORTEST and (typed[-1].isalnum() or typed[-1] in "_;):}]") and again.startswith(typed):
        rest = again[len(typed) :]
        return rest if rest.strip() else Rejected(reason="it repeats the line before the cursor")
    if at_line_start(request) and _is_above(text, request):
        return Rejected(reason="it repeats the line above the cursor")
    # A body that begins with its own header once more: def f(): def f():
    header, first, *later = previous_line(request).strip(), *text.split("\n")
    if at_line_start(request) and len(header) >= SHORTEST and header.endswith((":", "{")) and first.strip() == header:
        return "\n".join(later) if later else Rejected(reason="it repeats the line above the cursor")
    for pattern in (_NAME_BEGUN, _WORD_BEGUN, *([_DASHED_BEGUN] if request.language in _DASHED else [])):
        begun = pattern.search(line_before(request))
        if begun and text.startswith(begun[0]):
            return text[len(begun[0]) :]
        # The line from its start, with its indentation.
        if begun and begun[0] == typed and re.match(rf"{re.escape(typed)}\w", again):
            return again[len(typed) :]
    return text


def _is_above(text: str, request: FillRequest) -> bool:
    """Whether the text is the line above the cursor, or the lines above, and nothing else."""
    ours = [line.rstrip() for line in text.split("\n") if line.strip()]
    above = [line.rstrip() for line in lines_of(request.prefix)[:-1] if line.strip()][-len(ours) :] if ours else []
    if len(set(ours)) == 1:
        above = above[-1:] * len(ours)
    return ours == above and any(len(line.strip()) >= 2 * SHORTEST and _SAYS_SOMETHING.search(line) for line in ours)
