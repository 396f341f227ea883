"""`textDocument/inlineCompletion`: ghost text. Knows LSP types; what to offer is the pipeline's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from lsp_server import convert
from lsp_server.documents import Document
from lsp_server.features import counting
from lsp_server.features.asking import ask_at
from lsp_server.selected import Selected

if TYPE_CHECKING:
    from lsp_server.server import Server


async def inline_completion(ls: Server, params: types.InlineCompletionParams) -> types.InlineCompletionList:
    """An empty list wherever there is nothing to offer, and in a document that is not open."""
    document = ls.protocol.snapshot()
    if document is None:
        return types.InlineCompletionList(items=[])
    ask = ask_at(
        ls,
        document,
        params.position,
        explicit=params.context.trigger_kind == types.InlineCompletionTriggerKind.Invoked,
        selected=_selected(ls, document, params.context.selected_completion_info),
    )
    insertions = await ls.completer.complete(ask)
    counting.offered(ls, document, insertions)
    items = [convert.inline_item(document, ask.offset, item, ls.protocol.encoding()) for item in insertions]
    return types.InlineCompletionList(items=items)


def _selected(ls: Server, document: Document, info: types.SelectedCompletionInfo | None) -> Selected | None:
    if info is None:
        return None
    start, end = (
        document.offset_at(convert.position(at), ls.protocol.encoding()) for at in (info.range.start, info.range.end)
    )
    return Selected(start=start, end=end, text=info.text)
