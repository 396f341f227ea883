"""What editors were offered last, to notice when it has been accepted: then the next completion can be fetched ahead.

The text says it, whatever the client sends besides. Knows texts and insertions; no LSP, no model.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from lsp_server.insertion import Insertion

DOCUMENTS = 8
LENGTH = 8
"""Offers that are remembered of each document: a client may show an item while its text is being typed."""


@dataclass(frozen=True, kw_only=True)
class _Offered:
    text: str
    offset: int
    insertions: tuple[Insertion, ...]


class Shown:
    """The last offers, by document."""

    def __init__(self) -> None:
        self._offered: OrderedDict[str, list[_Offered]] = OrderedDict()

    def add(self, uri: str, text: str, offset: int, insertions: tuple[Insertion, ...]) -> None:
        """`insertions` were offered at `offset` (code points) of a document whose text was `text`."""
        offers = self._offered.pop(uri, [])
        self._offered[uri] = [*offers[1 - LENGTH :], _Offered(text=text, offset=offset, insertions=insertions)]
        if len(self._offered) > DOCUMENTS:
            self._offered.popitem(last=False)

    def accepted(self, uri: str, text: str) -> int | None:
        """Where the cursor stands if `text` is what the document is with one of its offers in it; else None."""
        for offered in self._offered.get(uri, []):
            for item in offered.insertions:
                grown = len(item.text) - item.before - item.after
                if len(text) != len(offered.text) + grown:
                    continue
                before, after = offered.text[: offered.offset], offered.text[offered.offset :]
                if text == item.applied(before, after):
                    self.forget(uri)
                    return offered.offset - item.before + len(item.text)
        return None

    def forget(self, uri: str) -> None:
        self._offered.pop(uri, None)
