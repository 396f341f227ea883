"""The syntax trees of the documents used last, brought up to date when a request needs one.

Knows documents and the parser; no requests, no model.
"""

from __future__ import annotations

from grammars.parser import ParsedDocument
from lsp_server.context import parse

DOCUMENTS = 8


class Syntaxes:
    """A tree per document, the least recently used one makes room."""

    def __init__(self) -> None:
        self._trees: dict[str, tuple[str, ParsedDocument]] = {}

    def of(self, uri: str, text: str, language: str, path: str) -> ParsedDocument:
        """The tree of `text`. What the document was the last time is reused."""
        kept = self._trees.pop(uri, None)
        if kept is None or kept[0] != language:
            kept = (language, parse(text, language, path))
        kept[1].update(text)
        self._trees[uri] = kept
        while len(self._trees) > DOCUMENTS:
            del self._trees[next(iter(self._trees))]
        return kept[1]

    def forget(self, uri: str) -> None:
        self._trees.pop(uri, None)
