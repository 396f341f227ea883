"""Drops what no editor shows: control characters, terminal escapes, marks that reverse the direction of text."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[@-Z\\-_])")
_LINE_END = re.compile(r"\r\n?")
# Controls but for tab and newline; zero-width and bidirectional marks; line separators; byte order mark; surrogates.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb]"
)


def control_characters(text: str, request: FillRequest) -> str | Rejected:
    if "\ufffd" in text:
        return Rejected(reason="it holds a character that could not be decoded")
    return _UNSEEN.sub("", _LINE_END.sub("\n", _ESCAPE.sub("", text)))
