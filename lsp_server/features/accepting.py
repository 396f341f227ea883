"""After an item has been accepted, the next completion is fetched ahead: it is there when the editor asks for it.

What has been accepted shows in the text, whatever a client sends besides. Knows documents and the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsp_server.documents import Document
from lsp_server.features.asking import ask_from

if TYPE_CHECKING:
    from lsp_server.server import Server


def changed(ls: Server, document: Document) -> None:
    """`document` is the new version of one that is open."""
    offset = ls.completer.shown.accepted(document.uri, document.text)
    if offset is not None:
        ls.in_background(ls.completer.complete(ask_from(ls, document, offset, id="ahead", ahead=True)))
