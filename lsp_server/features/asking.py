"""What the completion features share: the question to the pipeline. Knows positions and the server, no answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server import convert, gates
from lsp_server.completion import Ask
from lsp_server.documents import Document
from lsp_server.features import configuration

if TYPE_CHECKING:
    from lsp_server.server import Server


def ask_at(ls: Server, document: Document, position: types.Position, **details: Any) -> Ask:
    """The question for a position of the document that the request under way speaks of."""
    offset = document.offset_at(convert.position(position), ls.protocol.encoding())
    return ask_from(ls, document, offset, id=str(ls.protocol.msg_id), **details)


def ask_from(ls: Server, document: Document, offset: int, **details: Any) -> Ask:
    """The question for an offset in code points, under the settings as they are now."""
    configuration.refresh(ls)
    path, around = ls.files.shown_path(document.uri), ls.files.around(document)
    settings = ls.sources.of(document.uri)
    ls.reporter.here(gates.document(settings, document.language, path) or around.refusal)
    return Ask(document=document, offset=offset, path=path, around=around, settings=settings, **details)
