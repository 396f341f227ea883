"""`midfill/edit` and `midfill/fill`: a selection written anew, as an instruction says or as its surroundings ask.

    midfill/edit {textDocument: {uri}, range, instruction, version?, seed?, draftToken?}
    midfill/fill {textDocument: {uri}, range, version?, seed?, draftToken?}
      -> {edit: WorkspaceEdit, text, range, version}      `edit` does what putting `text` in place of `range` does
      -> {edit: null, message, offer?: "midfill/fill"}    why nothing changes; `offer`: what the model can do instead
    midfill/editDraft {token, text}                       notification: `text` as it is now, each replaces the last

An empty range stands for its line. `version`: of the document that the range belongs to; the answer's may be a later
one. The same `seed`, the same answer. Drafts come to those who give a token. Both can be cancelled. Nothing is applied
here: see edit_commands.py. Knows LSP types and what clients may send; what to write is the pipeline's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from grammars.lines import line_end, line_start
from lsp_server import convert
from lsp_server.documents import Document
from lsp_server.edit import OUTDATED, Refusal, Rewrite
from lsp_server.features.asking import ask_from
from lsp_server.wishes import Wish

if TYPE_CHECKING:
    from lsp_server.server import Server

EDIT, FILL, DRAFT = "midfill/edit", "midfill/fill", "midfill/editDraft"
MAX_SEED = 2**63 - 1


async def edit(ls: Server, params: Any) -> dict[str, Any]:
    instruction = params.get("instruction") if isinstance(params, dict) else None
    if not isinstance(instruction, str):
        raise JsonRpcInvalidParams(f"{EDIT} takes {{textDocument: {{uri}}, range, instruction}}: no instruction")
    return await _answer(ls, params, instruction)


async def fill(ls: Server, params: Any) -> dict[str, Any]:
    return await _answer(ls, params, None)


async def _answer(ls: Server, params: Any, instruction: str | None) -> dict[str, Any]:
    wish = wish_from(ls, ls.protocol.snapshot(), params, instruction)
    if isinstance(wish, Refusal):
        return _refused(wish)
    token = params.get("draftToken")

    def on_draft(text: str) -> None:
        if token is not None:
            ls.protocol.notify(DRAFT, {"token": token, "text": text})

    said = await ls.editor.rewrite(wish, on_draft)
    if isinstance(said, Refusal):
        return _refused(said)
    span = _range(ls, said.document, said.start, said.end)
    return {"edit": workspace_edit(ls, said), "text": said.text, "range": span, "version": said.document.version}


def _refused(refusal: Refusal) -> dict[str, Any]:
    return {"edit": None, "message": refusal.message} | ({"offer": FILL} if refusal.fill else {})


def wish_from(ls: Server, document: Document | None, params: Any, instruction: str | None) -> Wish | Refusal:
    """What params ask for, in a document as it was when they came. Raises JsonRpcInvalidParams."""
    span, version, seed = _checked(params)
    if document is None:
        return Refusal(message="the document is not open in this editor")
    if version is not None and version != document.version:
        return OUTDATED
    start, end = convert.offsets(document, span, ls.protocol.encoding())
    if start == end:
        start, end = line_start(document.text, start), line_end(document.text, start)
    ask = ask_from(ls, document, start, id=str(ls.protocol.msg_id), explicit=True)
    return Wish(ask=ask, end=end, instruction=instruction, seed=seed)


def workspace_edit(ls: Server, rewrite: Rewrite) -> types.WorkspaceEdit:
    """The changes, for exactly this version of the document where the client can be told so."""
    document = rewrite.document
    edits = [types.TextEdit(_range(ls, document, hunk.start, hunk.end), hunk.text) for hunk in rewrite.changes]
    workspace = ls.client_capabilities.workspace
    if not (workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes):
        return types.WorkspaceEdit(changes={document.uri: edits})
    identifier = types.OptionalVersionedTextDocumentIdentifier(uri=document.uri, version=document.version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(identifier, list(edits))])


def _range(ls: Server, document: Document, start: int, end: int) -> types.Range:
    first, last = (types.Position(*document.position_at(at, ls.protocol.encoding())) for at in (start, end))
    return types.Range(first, last)


def _checked(params: Any) -> tuple[types.Range, int | None, int]:
    """Range, version and seed."""
    params = params if isinstance(params, dict) else {}
    span, version, seed = params.get("range"), params.get("version"), params.get("seed")
    ends = [_position(span.get(end)) for end in ("start", "end")] if isinstance(span, dict) else [None, None]
    document = params.get("textDocument")
    if not (isinstance(document, dict) and isinstance(document.get("uri"), str)):
        raise JsonRpcInvalidParams("an edit needs textDocument: {uri}")
    if ends[0] is None or ends[1] is None:
        raise JsonRpcInvalidParams("an edit needs range: {start: {line, character}, end: {line, character}}")
    if version is not None and not _is_whole(version):
        raise JsonRpcInvalidParams("version must be a whole number, and not below 0")
    if seed is not None and not (_is_whole(seed) and seed <= MAX_SEED):
        raise JsonRpcInvalidParams(f"seed must be a whole number from 0 to {MAX_SEED}")
    return types.Range(ends[0], ends[1]), version, seed or 0


def _position(value: Any) -> types.Position | None:
    line, character = (value.get(key) if isinstance(value, dict) else None for key in ("line", "character"))
    return types.Position(line, character) if _is_whole(line) and _is_whole(character) else None


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
