"""Drops what no editor shows: control characters, terminal escapes, marks that reverse the direction of text; in code,
an odd space becomes a space."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.brackets import balance_in_place, before_cursor
from lsp_server.filters.surroundings import MARKUP, PROSE, Rejected

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_LINE_END = re.compile(r"\r\n?")
# What looks like a space or like nothing, and may well stand in a string: a joined emoji.
_ODD = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]|[\u00ad\u180e\u200c\u200d\ufe00-\ufe0f]")
# Controls but for tab and newline; zero-width and bidirectional marks; line separators; byte order mark; surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def control_characters(text: str, request: FillRequest) -> str | Rejected:
    if "\ufffd" in text:
        return Rejected(reason="it holds a character that could not be decoded")
    text = _UNSEEN.sub("", _LINE_END.sub("\n", _ESCAPE.sub("", text)))
    if not _ODD.search(text) or request.language in PROSE or request.language in MARKUP:
        return text

    def plain(found: re.Match[str]) -> str:
        before = balance_in_place(text[: found.start()], request)
        in_code = not before.quote and before.comment is None and before_cursor(request).comment is None
        return (" " if found[0].isspace() else "") if in_code else found[0]

    return _ODD.sub(plain, text)
