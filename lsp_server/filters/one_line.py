"""Keeps the first line only where code follows the cursor on its line: that code must stay this line's end.

Closing tags are no such code: like closing brackets, they may end up on a line of their own. And whole lines may come
before a line, which keeps its indentation.
"""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.lines import follows
from lsp_server.filters.surroundings import at_line_start, line_before, rest_of_line

_CLOSING_TAGS = re.compile(r"\s*(?:</[\w.:-]*>\s*)+")


def one_line(text: str, request: FillRequest) -> str:
    rest = rest_of_line(request)
    if follows(rest) != "code" or _CLOSING_TAGS.fullmatch(rest):
        return text
    lines = text.split("\n")
    if len(lines) > 1 and not lines[-1].strip() and text.strip() and at_line_start(request):
        return "\n".join([*lines[:-1], line_before(request)])
    return lines[0]
