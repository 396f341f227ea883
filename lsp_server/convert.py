"""LSP types <-> ours: positions in the client's units <-> offsets in code points, insertions <-> items.

The one place, besides the features, that knows both sides. Knows no pipeline and no engine.
"""

from __future__ import annotations

import re
from typing import get_args

from lsprotocol import types

from lsp_server.documents import Document, Encoding, Position, units
from lsp_server.insertion import Insertion

ACCEPTED = "midfill.accepted"
"""The command that clients run when an item has been accepted."""

_WORD_END = re.compile(r"\w*\Z")


def count_columns(params: types.InitializeParams) -> None:
    """Take over `positionEncoding` from the initialization options of a client that offers no encodings: such a client
    has to count UTF-16 units, and not every one does."""
    options, general = params.initialization_options, params.capabilities.general
    if isinstance(options, dict) and options.get("positionEncoding") in get_args(Encoding):
        counts = types.PositionEncodingKind(options.pop("positionEncoding"))
        if general is None or not general.position_encodings:
            params.capabilities.general = types.GeneralClientCapabilities(position_encodings=[counts])


def position(value: types.Position) -> Position:
    return value.line, value.character


def document(item: types.TextDocumentItem) -> Document:
    """A document as it is opened."""
    return Document(uri=item.uri, language=item.language_id).with_text(item.text, item.version)


def apply_change(
    document: Document, change: types.TextDocumentContentChangeEvent, version: int | None, encoding: Encoding
) -> Document:
    """The document after one change of a didChange notification."""
    if isinstance(change, types.TextDocumentContentChangePartial):
        start, end = position(change.range.start), position(change.range.end)
        return document.with_edit(start, end, change.text, encoding, version)
    return document.with_text(change.text, version)


def changed_span(
    document: Document, change: types.TextDocumentContentChangeEvent, encoding: Encoding
) -> tuple[int, int] | None:
    """The offsets that a change of `document` replaces; None: the whole text."""
    if isinstance(change, types.TextDocumentContentChangePartial):
        return offsets(document, change.range, encoding)
    return None


def offsets(document: Document, span: types.Range, encoding: Encoding) -> tuple[int, int]:
    """The offsets of a range; an end before the start counts as the start."""
    start, end = position(span.start), position(span.end)
    return document.offset_at(start, encoding), document.offset_at(max(start, end), encoding)


def line_range(document: Document, offset: int, before: int, after: int, encoding: Encoding) -> types.Range:
    """The range from `before` code points before `offset` to `after` behind it, all on one line."""
    line, column = document.position_at(offset, encoding)
    text, middle = document.text, offset
    start = column - units(text[middle - before : middle], encoding)
    end = column + units(text[middle : middle + after], encoding)
    return types.Range(types.Position(line, start), types.Position(line, end))


def inline_item(
    document: Document, offset: int, insertion: Insertion, encoding: Encoding
) -> types.InlineCompletionItem:
    """An item with an explicit single-line range: Neovim 0.12.0 fails on an item without one."""
    span = line_range(document, offset, insertion.before, insertion.after, encoding)
    return types.InlineCompletionItem(insert_text=insertion.text, range=span, command=_command(insertion))


def popup_item(document: Document, offset: int, insertion: Insertion, encoding: Encoding) -> types.CompletionItem:
    """An item for a completion menu.

    Menus compare the word before the cursor with `filterText`; so the range starts where that word starts, and the word
    is part of the new text. What stands behind the cursor already is left there where that comes to the same: some
    clients (Vim's ALE, Neovim's menu) only insert.
    """
    text = document.text
    line_start = max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
    before, after = insertion.before, insertion.after
    word = ""
    if not before and (match := _WORD_END.search(text[max(line_start, offset - 200) : offset])):
        word = match.group()
        before = len(word)
    new_text = word + insertion.text
    behind = text[offset : offset + after]
    if behind and new_text != behind and new_text.endswith(behind):
        new_text, after = new_text[: -len(behind)], 0
    lines = new_text.strip().splitlines()
    label = lines[0] if lines else new_text
    return types.CompletionItem(
        label=label if len(lines) < 2 else f"{label} …",
        kind=types.CompletionItemKind.Text,
        detail="midfill",
        documentation=new_text if len(lines) > 1 else None,
        filter_text=text[offset - before : offset] + label if insertion.before else new_text.splitlines()[0],
        insert_text_format=types.InsertTextFormat.PlainText,
        insert_text_mode=types.InsertTextMode.AsIs,
        text_edit=types.TextEdit(line_range(document, offset, before, after, encoding), new_text),
        command=_command(insertion),
    )


def workspace_edit(document: Document, offset: int, insertion: Insertion, encoding: Encoding) -> types.WorkspaceEdit:
    """The insertion as an edit of this version of the document."""
    span = line_range(document, offset, insertion.before, insertion.after, encoding)
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    change = types.TextDocumentEdit(identifier, [types.TextEdit(span, insertion.text)])
    return types.WorkspaceEdit(document_changes=[change])


def _command(insertion: Insertion) -> types.Command:
    return types.Command(title="accepted", command=ACCEPTED, arguments=[insertion.id])
