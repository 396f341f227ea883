"""`midfill/status` and `midfill/draft`: what the server is doing, whether anything is offered here, and what is wrong.

    {state, detail, hint?, model, progress?: {done, total, percent?}}

`state`: "starting", "loading", "ready", "busy" and "stopped" are the engine's; "errored": it cannot be used; "warning":
the last request failed; "off": nothing is offered while typing, anywhere or in the file asked for last. `detail` says
why, `hint` what to do. Knows what clients are told and when; not how it comes about.
"""

from __future__ import annotations

import asyncio
import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from diffusion.api import EngineError, Failure, Result, Status, to_json
from lsp_server import gates
from lsp_server.features import configuration
from lsp_server.features.progress import LoadingProgress, percent
from lsp_server.journal import sentence

if TYPE_CHECKING:
    from lsp_server.server import Server

OFF = "completion is switched off (setting enabled)"
MEND = "see `midfill doctor`; when it is mended, run the command midfill.restart"
STARTING = Status(state="starting")
ONE_LINE = 60
"""Characters that fit beside the names of server and client into the line of messages of a narrow terminal."""


@dataclass(kw_only=True)
class Reporter:
    """Tells the client about changes only. Listens to the pipeline (`completion.Listener`) and to the engine."""

    server: Server
    _engine: Status = STARTING
    _hint: str = ""
    _failure: Failure | None = None
    _off: str = ""
    _running: int = 0
    _lease: asyncio.Task[Any] | None = None
    _told: dict[str, Any] = field(default_factory=dict)
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._loading = LoadingProgress(self.server)

    # --- the engine

    def engine(self, status: Status, hint: str = "") -> None:
        """The engine has said how it is."""
        self._engine, self._hint = status, hint or (MEND if status.state == "errored" else "")
        self._loading.tell(status)
        self.tell()

    def follow_engine(self) -> None:
        """Keep being told how the engine is, as long as it runs. Being connected also keeps it from ending: so nobody
        follows it while completion is switched off, unless a file has it switched on."""
        if self._lease is None and (self.server.settings.enabled or self._running):
            self._lease = self.server.in_background(self._follow())

    def release(self) -> None:
        """Follow it no longer, or another one from now on."""
        if self._lease is not None:
            self._lease.cancel()
        self._lease, self._failure = None, None
        self.engine(STARTING)

    def switched(self) -> None:
        """The setting `enabled` is another one now."""
        if self.server.settings.enabled:
            self.follow_engine()
        elif self._lease is not None:
            self.release()
        self.tell()

    async def _follow(self) -> None:
        me = asyncio.current_task()
        try:
            async for status in self.server.engine().events():
                self.engine(status)
            self.engine(Status(state="stopped"))
        except EngineError as error:
            self.engine(Status(state="errored", detail=error.message), error.hint)
            self.answered(error.as_failure())
        finally:
            if self._lease is me:
                self._lease = None

    # --- the pipeline

    def working(self, change: int) -> None:
        self._running += change
        if change > 0:
            self._failure = None
        self.follow_engine()
        self.tell()

    def draft(self, ask_id: str, text: str) -> None:
        if self.server.settings.drafts:
            self.server.protocol.notify("midfill/draft", {"id": ask_id, "text": text})

    def answered(self, answer: Result | Failure) -> None:
        """An error is shown as a warning, once per cause. A model that is still loading is a state and no error."""
        if isinstance(answer, Result):
            self._failure = None
            if self._engine.state not in ("ready", "busy"):
                self.engine(dataclasses.replace(self._engine, state="ready", detail="", progress=None))
        elif answer.code == "loading":
            self.engine(dataclasses.replace(self._engine, state="loading", detail=answer.message))
        elif answer.code not in ("cancelled", "busy"):
            self._failure = answer
            self.warn(sentence(answer), short=answer.message)
        self.tell()

    # --- the editor

    def here(self, reason: str) -> None:
        """Why nothing is offered while typing in the file that is being asked for, or ""."""
        self._off = reason
        self.tell()

    def warn(self, message: str, key: str = "", short: str = "") -> None:
        """Show a message, unless one with the same `key` (by default: the same one) has been shown before; it goes to
        the client's log in any case. What is too long for one line of an editor is shown as `short`, if there is that:
        some wait for a key until they have shown all of it."""
        warning = types.MessageType.Warning
        self.server.window_log_message(types.LogMessageParams(type=warning, message=f"midfill: {message}"))
        if (key or message) not in self._warned:
            self._warned.add(key or message)
            shown = short if short and len(message) > ONE_LINE else message
            self.server.window_show_message(types.ShowMessageParams(type=warning, message=f"midfill: {shown}"))

    def tell(self) -> None:
        """Send the status if it is another one than before."""
        seen = self.seen()
        if seen != self._told:
            self._told = seen
            self.server.protocol.notify("midfill/status", seen)

    def seen(self, off: str | None = None) -> dict[str, Any]:
        """The status where `off` says why nothing is offered; None: in the file that was asked for last."""
        engine, failure, off = self._engine, self._failure, self._off if off is None else off
        if not self.server.settings.enabled:
            return {"state": "off", "detail": OFF, "model": engine.model, "hint": "run the command midfill.toggle"}
        seen: dict[str, Any] = {"state": engine.state, "detail": engine.detail, "model": engine.model}
        if engine.progress:
            share = percent(engine)
            seen["progress"] = to_json(engine.progress) | ({} if share is None else {"percent": share})
        if self._hint:
            seen["hint"] = self._hint
        if engine.state not in ("ready", "busy"):
            return seen
        # What other windows make the engine do is not this editor's business.
        seen["state"] = "busy" if self._running else "ready"
        if off:
            return seen | {"state": "off", "detail": off}
        if failure and not self._running:
            return seen | {"state": "warning", "detail": failure.message, "hint": failure.hint}
        return seen


def status(ls: Server, params: Any) -> dict[str, Any]:
    """`{textDocument?}` -> the status as it is for that document, or for the one asked for last."""
    configuration.refresh(ls)
    document = ls.protocol.snapshot()
    if document is None:
        return ls.reporter.seen()
    path = ls.files.shown_path(document.uri)
    off = gates.document(ls.sources.of(document.uri), document.language, path) or ls.files.refusal(document)
    return ls.reporter.seen(off)
