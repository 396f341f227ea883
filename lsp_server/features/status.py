"""`midfill/status`, `midfill/draft` and `midfill/why`: what the server is doing, and why nothing is shown.

Knows what clients are told and when; not how it comes about.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from diffusion.api import EngineError, Failure, Result, Status, to_json
from lsp_server.journal import sentence

if TYPE_CHECKING:
    from lsp_server.server import Server


@dataclass(kw_only=True)
class Reporter:
    """Tells the client about changes only. Listens to the pipeline (`completion.Listener`) and to the engine."""

    server: Server
    _engine: Status = field(default_factory=lambda: Status(state="starting"))
    _running: int = 0
    _following: bool = False
    _told: dict[str, Any] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def engine(self, status: Status) -> None:
        """The engine has said how it is."""
        self._engine = status
        self._tell()

    def follow_engine(self) -> None:
        """Keep being told how the engine is, as long as it runs. Being connected also keeps it from ending."""
        if not self._following:
            self._following = True
            self.server.in_background(self._follow())

    async def _follow(self) -> None:
        try:
            async for status in self.server.engine().events():
                self.engine(status)
            self.engine(Status(state="stopped"))
        except EngineError as error:
            self.engine(Status(state="errored", detail=error.message))
            self.answered(error.as_failure())
        finally:
            self._following = False

    def working(self, change: int) -> None:
        self.follow_engine()
        self._running += change
        self._tell()

    def draft(self, ask_id: str, text: str) -> None:
        if self.server.settings.drafts:
            self.server.protocol.notify("midfill/draft", {"id": ask_id, "text": text})

    def answered(self, answer: Result | Failure) -> None:
        """An error is shown as a warning, once per cause. A model that is still loading is a state and no error."""
        if isinstance(answer, Result):
            if self._engine.state not in ("ready", "busy"):
                self.engine(dataclasses.replace(self._engine, state="ready", detail="", progress=None))
        elif answer.code == "loading":
            self.engine(dataclasses.replace(self._engine, state="loading", detail=answer.message))
        elif answer.code not in ("cancelled", "busy"):
            self.warn(sentence(answer))

    def warn(self, message: str) -> None:
        """Show a message, unless it has been shown before; it goes to the client's log in any case."""
        warning = types.MessageType.Warning
        self.server.window_log_message(types.LogMessageParams(type=warning, message=f"midfill: {message}"))
        if message not in self._warned:
            self._warned.add(message)
            self.server.window_show_message(types.ShowMessageParams(type=warning, message=f"midfill: {message}"))

    def _tell(self) -> None:
        state: str = self._engine.state
        if state in ("ready", "busy"):  # What other windows make the engine do is not this editor's business.
            state = "busy" if self._running else "ready"
        seen: dict[str, Any] = {"state": state, "detail": self._engine.detail, "model": self._engine.model}
        if self._engine.progress:
            seen["progress"] = to_json(self._engine.progress)
        if seen != self._told:
            self._told = seen
            self.server.protocol.notify("midfill/status", seen)


def why(ls: Server, params: Any) -> dict[str, Any]:
    """`{textDocument?}` -> the last request in one sentence, and the decisions behind it, newest first."""
    document = params.get("textDocument") if isinstance(params, dict) else None
    uri = document.get("uri") if isinstance(document, dict) else None
    journal = ls.completer.journal
    decisions = [dataclasses.asdict(decision) for decision in journal.decisions(uri)]
    return {"sentence": journal.why(uri), "decisions": decisions}


def why_command(ls: Server) -> str:
    """The same for editors that can only run commands: shown as a message."""
    sentence = ls.completer.journal.why()
    ls.window_show_message(types.ShowMessageParams(type=types.MessageType.Info, message=f"midfill: {sentence}"))
    return sentence
