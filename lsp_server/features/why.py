"""`midfill/why` and the command `midfill.why`: why something is shown, or nothing. Knows LSP params and the journal."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.journal import last

if TYPE_CHECKING:
    from lsp_server.server import Server


def why(ls: Server, params: Any) -> dict[str, Any]:
    """`{textDocument?, position?}` -> `{sentence, full, decisions[]}`: the last request, of that document and at that
    line if they are named, in one sentence and in full, and the decisions that are left of all, newest first."""
    params = params if isinstance(params, dict) else {}
    document, position = params.get("textDocument"), params.get("position")
    uri = document.get("uri") if isinstance(document, dict) else None
    line = position.get("line") if isinstance(position, dict) else None
    journal = ls.completer.journal
    decisions = journal.decisions(uri, line + 1 if isinstance(line, int) else None)
    told = last(decisions)
    return {
        "sentence": told.sentence() if told else journal.NOTHING,
        "full": told.full() if told else journal.NOTHING,
        "decisions": [dataclasses.asdict(decision) for decision in decisions],
    }


def why_command(ls: Server, where: Any = None) -> str:
    """The same for editors that can only run commands: shown as a message. `where` as for `why`, if they can say."""
    sentence: str = why(ls, where)["sentence"]
    ls.window_show_message(types.ShowMessageParams(type=types.MessageType.Info, message=f"midfill: {sentence}"))
    return sentence
