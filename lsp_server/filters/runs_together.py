"""Refuses a text whose last word would make one word with the one behind the cursor."""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.lines import splits_word
from lsp_server.filters.brackets import balance_in_place
from lsp_server.filters.surroundings import Rejected


def runs_together(text: str, request: FillRequest) -> str | Rejected:
    both = request.prefix[-1:] + request.suffix[:1]
    if splits_word(both, 1) and len(both) == 2:
        return text  # The cursor is in a word: some end of it is wanted.
    meets = splits_word(text[-1:] + request.suffix[:1], 1)
    if not meets or request.suffix[:1] == "$" or balance_in_place(text, request).quote:
        return text
    return Rejected(reason="it would make one word with what stands behind the cursor")
