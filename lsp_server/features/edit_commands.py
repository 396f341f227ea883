"""`midfill.editSelection`, `midfill.fillSelection` and code actions in front of them: edits for every editor.

    midfill.fillSelection {textDocument: {uri}, range, version?, seed?}
    midfill.editSelection {textDocument: {uri}, range, instruction?, version?, seed?}

Without an instruction, one that is written in the document counts: see instructions.py. A command only starts the work
and returns whether it could: the change comes as `workspace/applyEdit`, what is in its way as one message. Meanwhile
the editor shows a progress, whose button cancels. Knows LSP types; what to write is the pipeline's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams

from lsp_server import convert
from lsp_server.documents import Document
from lsp_server.edit import Refusal
from lsp_server.features.edit import wish_from, workspace_edit
from lsp_server.instructions import HOW, instruction_at
from lsp_server.wishes import Wish

if TYPE_CHECKING:
    from lsp_server.server import Server

EDIT_SELECTION, FILL_SELECTION = "midfill.editSelection", "midfill.fillSelection"
ACTIONS = types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.RefactorRewrite])
FILL_TITLE = "midfill: fill the selection anew"
EDIT_TITLE = "midfill: edit the selection as a comment in front of it says"
SHOWN = 50
"""Characters of an instruction in a title."""


def code_actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
    """Both, for a selection in a document that may be completed."""
    document, only = ls.protocol.snapshot(), params.context.only
    kind = types.CodeActionKind.RefactorRewrite
    if document is None or params.range.start == params.range.end or ls.files.refusal(document):
        return []
    if only is not None and not any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in map(_name, only)):
        return []
    start, end = convert.offsets(document, params.range, ls.protocol.encoding())
    instruction, first = instruction_at(document.text, start, end, document.language)
    edit_title = f"midfill: edit the selection: {_short(instruction)}" if instruction else EDIT_TITLE
    where = _where(ls, document, start, end)
    told = {**_where(ls, document, first, end), "instruction": instruction} if instruction and first < end else where
    commands = (
        types.Command(title=FILL_TITLE, command=FILL_SELECTION, arguments=[where]),
        types.Command(title=edit_title, command=EDIT_SELECTION, arguments=[told]),
    )
    text_document = ls.client_capabilities.text_document
    if text_document and text_document.code_action and text_document.code_action.code_action_literal_support:
        return [types.CodeAction(title=command.title, kind=kind, command=command) for command in commands]
    return list(commands)


async def fill_selection(ls: Server, where: Any = None) -> bool:
    return _begin(ls, _wish(ls, where))


async def edit_selection(ls: Server, where: Any = None) -> bool:
    instruction = where.get("instruction") if isinstance(where, dict) else None
    if instruction is not None and not isinstance(instruction, str):
        raise JsonRpcInvalidParams(f"{EDIT_SELECTION}: instruction must be a text")
    wish = _wish(ls, where)
    if isinstance(wish, Refusal):
        return _begin(ls, wish)
    if instruction is None:
        document = wish.ask.document
        instruction, start = instruction_at(document.text, wish.ask.offset, wish.end, document.language)
        wish = replace(wish, ask=replace(wish.ask, offset=start))
    if not instruction.strip() or not wish.selected:
        return _begin(ls, Refusal(message=f"there is no instruction: {HOW}"))
    return _begin(ls, replace(wish, instruction=instruction))


def _where(ls: Server, document: Document, start: int, end: int) -> dict[str, Any]:
    """The argument of a command that is to rewrite `start` to `end` of this version of the document."""
    lines = [document.position_at(at, ls.protocol.encoding()) for at in (start, end)]
    first, last = ({"line": line, "character": character} for line, character in lines)
    return {"textDocument": {"uri": document.uri}, "range": {"start": first, "end": last}, "version": document.version}


def _wish(ls: Server, where: Any) -> Wish | Refusal:
    document = where.get("textDocument") if isinstance(where, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    return wish_from(ls, ls.files.documents.get(uri) if isinstance(uri, str) else None, where, None)


def _begin(ls: Server, wish: Wish | Refusal) -> bool:
    if isinstance(wish, Refusal):
        _say(ls, wish.message)
        return False
    ls.in_background(_carry_out(ls, wish))
    return True


async def _carry_out(ls: Server, wish: Wish) -> None:
    title = "midfill: filling the selection" if wish.instruction is None else "midfill: editing the selection"
    async with _progress(ls, title) as step:
        said = await ls.editor.rewrite(wish, step)
    if isinstance(said, Refusal):
        if said.fill and await _chosen(ls, said.message, FILL_TITLE):
            await _carry_out(ls, replace(wish, instruction=None))
        elif not said.fill:
            _say(ls, said.message)
        return
    params = types.ApplyWorkspaceEditParams(edit=workspace_edit(ls, said), label="midfill")
    try:
        answer = await ls.workspace_apply_edit_async(params)
    except JsonRpcException as error:
        answer = types.ApplyWorkspaceEditResult(applied=False, failure_reason=error.message)
    if not answer.applied:
        _say(ls, f"the editor has not taken the change over: {answer.failure_reason or 'it gives no reason'}")


async def _chosen(ls: Server, message: str, title: str) -> bool:
    """Say it and offer to do something about it; whether that is wanted. Where the client can only show, it only
    shows."""
    window = ls.client_capabilities.window
    if not (window and window.show_message):
        _say(ls, message)
        return False
    action = types.MessageActionItem(title=title)
    params = types.ShowMessageRequestParams(types.MessageType.Warning, f"midfill: {message}", [action])
    with contextlib.suppress(JsonRpcException):
        return await ls.window_show_message_request_async(params) == action
    return False


@contextlib.asynccontextmanager
async def _progress(ls: Server, title: str) -> AsyncIterator[Callable[[str], None]]:
    """Work-done progress while the block runs, where the client shows such; its cancel button cancels the block. Takes
    the drafts."""
    window, token, progress = ls.client_capabilities.window, str(uuid.uuid4()), ls.work_done_progress
    if not (window and window.work_done_progress):
        yield lambda draft: None
        return
    try:
        await progress.create_async(token)
    except JsonRpcException:
        yield lambda draft: None
        return
    task, steps = asyncio.current_task(), 0

    def step(draft: str) -> None:
        nonlocal steps
        steps += 1
        progress.report(token, types.WorkDoneProgressReport(message=f"step {steps}"))

    progress.begin(token, types.WorkDoneProgressBegin(title=title, cancellable=True))
    if task is not None:
        progress.tokens[token].add_done_callback(lambda cancelled: task.cancel())
    try:
        yield step
    finally:
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)  # pygls keeps them for ever


def _say(ls: Server, message: str) -> None:
    params = types.ShowMessageParams(type=types.MessageType.Warning, message=f"midfill: {message}")
    ls.window_show_message(params)


def _short(instruction: str) -> str:
    return instruction if len(instruction) <= SHOWN else f"{instruction[:SHOWN]}…"


def _name(kind: types.CodeActionKind | str) -> str:
    return str(getattr(kind, "value", kind))
