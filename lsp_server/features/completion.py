"""`textDocument/completion`: the same completions in a menu, for editors without ghost text.

Offered where the client has no inline completion, or where the setting `popup` asks for it: whoever shows ghost text
does not want the same text in the menu too. A request is answered in any case. Where a client asks for both at once,
the newer request wins, as always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server import convert
from lsp_server.features import counting
from lsp_server.features.asking import ask_at
from lsp_server.settings import Settings

if TYPE_CHECKING:
    from lsp_server.server import Server

OPTIONS = types.CompletionOptions(trigger_characters=[".", "(", "[", "{", "=", ",", ":"])


def is_wanted(client: types.ClientCapabilities, settings: Settings) -> bool:
    """Whether to offer the menu to this client."""
    shows_ghost_text = client.text_document is not None and client.text_document.inline_completion is not None
    return settings.popup or not shows_ghost_text


async def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
    """Incomplete by definition: the answer belongs to this place only. It counts as automatic, since clients call
    both typing and a key press "Invoked"."""
    document = ls.protocol.snapshot()
    if document is None:
        return types.CompletionList(is_incomplete=True, items=[])
    ask = ask_at(ls, document, params.position)
    insertions = await ls.completer.complete(ask)
    counting.offered(ls, document, insertions)
    items = [convert.popup_item(document, ask.offset, item, ls.protocol.encoding()) for item in insertions]
    return types.CompletionList(is_incomplete=True, items=items)
