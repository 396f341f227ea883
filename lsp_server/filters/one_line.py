"""Keeps the first line only where code follows the cursor on its line: that code must stay this line's end.

Closing tags are no such code: like closing brackets, they may end up on a line of their own.
"""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.lines import follows
from lsp_server.filters.surroundings import rest_of_line

_CLOSING_TAGS = re.compile(r"\s*(?:</[\w.:-]*>\s*)+")


def one_line(text: str, request: FillRequest) -> str:
    rest = rest_of_line(request)
    if follows(rest) != "code" or _CLOSING_TAGS.fullmatch(rest):
        return text
    return text.split("\n", 1)[0]
