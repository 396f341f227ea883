"""The language server: which method is handled where, and its life from start to end.

Knows pygls and the features; what they do stands in their files.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import sys
import uuid
from collections.abc import Coroutine
from importlib.metadata import version
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from diffusion.api import DISTRIBUTION, EngineError
from lsp_server import convert
from lsp_server.chosen_model import DEFAULT_PROFILE
from lsp_server.completion import Completer
from lsp_server.documents import Document
from lsp_server.edit import Editor
from lsp_server.engines import AUTO, WatchedEngine, make_engine
from lsp_server.features import (
    accepting,
    commands,
    completion,
    configuration,
    counting,
    edit,
    edit_commands,
    inline_completion,
    notebook,
    status,
    why,
    workspace,
)
from lsp_server.journal import as_line, journal_file
from lsp_server.ledger import Ledger, Line
from lsp_server.measured import MEASURED
from lsp_server.protocol import Protocol, converter
from lsp_server.settings import Settings
from lsp_server.sources import Sources
from lsp_server.statistics import Counts, statistics_file
from lsp_server.transport import Framer, Messages, Writer, pump
from lsp_server.usage import Parser

HANDLERS: tuple[tuple[str, Any, Any], ...] = (
    (types.TEXT_DOCUMENT_INLINE_COMPLETION, inline_completion.inline_completion, types.InlineCompletionOptions()),
    (types.TEXT_DOCUMENT_COMPLETION, completion.completion, completion.OPTIONS),
    (types.INITIALIZE, configuration.initialize, None),
    (types.INITIALIZED, configuration.initialized, None),
    (types.WORKSPACE_DID_CHANGE_CONFIGURATION, configuration.did_change, None),
    (types.TEXT_DOCUMENT_DID_SAVE, workspace.did_save, None),
    (types.WORKSPACE_DID_RENAME_FILES, workspace.did_rename, workspace.RENAMES),
    (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, workspace.folders_changed, None),
    (types.TEXT_DOCUMENT_CODE_ACTION, edit_commands.code_actions, edit_commands.ACTIONS),
    (edit.EDIT, edit.edit, None),
    (edit.FILL, edit.fill, None),
    ("midfill/why", why.why, None),
    ("midfill/status", status.status, None),
    ("textDocument/didShowCompletion", counting.shown, None),
    ("textDocument/didPartiallyAcceptCompletion", counting.accepted_part, None),
)
COMMANDS: tuple[tuple[str, Any], ...] = (
    ("midfill.why", why.why_command),
    ("midfill.toggle", commands.toggle),
    ("midfill.restart", commands.restart),
    ("midfill.trigger", commands.trigger),
    (edit_commands.EDIT_SELECTION, edit_commands.edit_selection),
    (edit_commands.FILL_SELECTION, edit_commands.fill_selection),
    (convert.ACCEPTED, counting.accepted),
)

WRITE_SECONDS = 0.2
"""What happens in so short a time is written into journal and statistics together."""
PARENT_SECONDS = 1.0
"""How often to look whether the editor is still there."""

logger = logging.getLogger(__name__)


class Server(LanguageServer):
    """The server of one editor: its documents, its settings, its pipeline."""

    protocol: Protocol

    def __init__(self, engine: str, measured: str = "") -> None:
        """`measured`: one of MEASURED, if anything is to be measured."""
        super().__init__(
            DISTRIBUTION,
            version(DISTRIBUTION),
            notebook_document_sync=notebook.SYNC,
            protocol_cls=Protocol,
            converter_factory=converter,
        )
        self.files = self.protocol.files
        self.files.folders = lambda: (*self.protocol.workspace.folders, self.protocol.workspace.root_uri or "")
        self.files.max_chars = lambda: self.settings.max_file_chars
        self.files.opened = lambda uri: configuration.opened(self, uri)
        self.files.changed = lambda document: accepting.changed(self, document)
        self.files.gone = self._forget
        self.sources = Sources()
        self.unasked: list[str] = []
        self.reporter = status.Reporter(server=self)
        self._engine_spec = engine
        self._engine: WatchedEngine | None = None
        self.completer = Completer(
            engine=self.engine,
            listener=self.reporter,
            is_current=self._is_current,
            client=uuid.uuid4().hex,
            **MEASURED[measured](),
        )
        self.editor = Editor(
            engine=self.engine,
            listener=self.reporter,
            current=self.files.documents.get,
            anchors=self.protocol.anchors,
            journal=self.completer.journal,
            client=self.completer.client,
            profile=lambda: self.completer.profile,
        )
        self._records = journal_file(), statistics_file()
        self._writing: asyncio.TimerHandle | None = None
        self.completer.journal.record = lambda decision: self._record(self._records[0], as_line(decision))
        self.counts = Counts(record=lambda line: self._record(self._records[1], line))
        self._messages: Messages = asyncio.Queue()
        self._tasks: set[asyncio.Task[Any]] = set()
        for method, handler, options in HANDLERS:
            self.feature(method, options)(handler)
        for name, command in COMMANDS:
            self.command(name)(command)

    def engine(self) -> WatchedEngine:
        """Who completes. Made when it is first needed, since that takes a moment."""
        if self._engine is None:
            minutes = self.settings.engine_idle_minutes
            asked = minutes != Settings().engine_idle_minutes  # else what `midfill engine start --idle` said holds
            idle = minutes * 60 if asked else None
            self._engine = make_engine(self._engine_spec, idle, self.completer.client, self.settings.model)
            self.completer.profile = self.settings.model or DEFAULT_PROFILE
        return self._engine

    async def new_engine(self, *, stop: bool) -> None:
        """Have done with the engine, `stop` ends its process, and go on with another. Raises EngineError."""
        engine, self._engine = self._engine, None
        self.reporter.release()
        self.completer.cache.clear()
        try:
            if engine is not None and stop:
                await engine.end()
            if engine is not None:
                await engine.close()
        finally:
            self.reporter.follow_engine()

    @property
    def settings(self) -> Settings:
        return self.completer.settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        before = self.completer.settings
        if settings == before:
            return
        if self._engine and settings.engine_idle_minutes != before.engine_idle_minutes:
            self.in_background(self._engine.set_idle(settings.engine_idle_minutes * 60))
        self.completer.settings = settings
        self.completer.cache.clear()
        if self._engine and settings.model != before.model:
            self.in_background(self.new_engine(stop=False))
        if settings.enabled != before.enabled:
            self.reporter.switched()

    def hold_back(self, ours: types.ServerCapabilities, client: types.ClientCapabilities) -> None:
        """Do not announce what this client has no use for. It is answered all the same."""
        if not completion.is_wanted(client, self.settings):
            ours.completion_provider = None

    def in_background(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a coroutine beside the messages; what it raises is logged."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._background_done)
        return task

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Into the log, never in the user's face: pygls calls this for every notification that goes wrong."""
        logger.error("%s: %s", source.__name__, error)

    async def serve(self, in_fd: int, out_fd: int) -> int:
        """Answer messages until `exit`, the end of the input, or the end of the editor. Returns the exit code."""
        self.protocol.set_writer(Writer(out_fd, on_broken=self.stop))
        pump(in_fd, Framer(), self._messages)
        while not self.protocol.ended and (message := await self._messages.get()) is not None:
            self.protocol.handle_body(message)
            await asyncio.sleep(0)  # A burst of messages must not keep the first request from being worked on.
        self.protocol.cancel_requests()
        for task in self._tasks:
            task.cancel()
        if self._engine is not None:
            with contextlib.suppress(EngineError):
                await self._engine.close()
        if self._writing:
            self._writing.cancel()
        for ledger in self._records:
            ledger.close()
        return self.protocol.exit_code

    def stop(self) -> None:
        """End `serve` after the messages that are already there."""
        self._messages.put_nowait(None)

    def watch_parent(self, pid: int) -> None:
        """End with the editor, even if it was killed and something else keeps our input open."""
        import psutil

        try:
            parent = psutil.Process(pid)
        except (psutil.Error, ValueError, OverflowError):
            return  # Not of this machine: the editor runs outside our container.

        async def stop_after_parent() -> None:
            with contextlib.suppress(psutil.NoSuchProcess):
                while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110  no event
                    await asyncio.sleep(PARENT_SECONDS)
            self.stop()

        self.in_background(stop_after_parent())

    def _is_current(self, document: Document) -> bool:
        return self.files.documents.get(document.uri) is document

    def _record(self, ledger: Ledger, line: Line) -> None:
        ledger.keep(line)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().call_later(WRITE_SECONDS, self._write_records)

    def _write_records(self) -> None:
        self._writing = None
        for ledger in self._records:
            ledger.write()

    def _forget(self, uri: str) -> None:
        self.completer.forget(uri)
        self.sources.forget(uri)
        self.protocol.anchors.gone(uri)

    def _background_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("background task failed", exc_info=error)


def main(argv: list[str]) -> int:
    """`midfill lsp`: serve one editor on standard input and output."""
    parser = Parser(prog="midfill lsp", description="The language server, on standard input and output.")
    parser.add_argument(
        "--engine",
        default=AUTO,
        metavar="auto|scripted:FILE",
        help="who completes: the model, or a JSON list of answers",
    )
    parser.add_argument(
        "--stdio", action="store_true", help="accepted because editors pass it; it is the only transport"
    )
    parser.add_argument("--measure", choices=MEASURED, default="", help=argparse.SUPPRESS)
    parser.add_argument("--clientProcessId", type=int, help="process to end with, for editors that pass it here")
    options = parser.parse_args(argv)
    if options.engine != AUTO:
        make_engine(options.engine)  # What cannot be used is said before an editor waits for it.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("pygls").setLevel(logging.ERROR)  # It warns of every cancelled request.
    in_fd, out_fd = _take_standard_streams()

    async def run() -> int:
        server = Server(options.engine, options.measure)
        if options.clientProcessId:
            server.watch_parent(options.clientProcessId)
        return await server.serve(in_fd, out_fd)

    return asyncio.run(run())


def _take_standard_streams() -> tuple[int, int]:
    """Keep standard input and output for the protocol: a `print`, here or in a child, goes to standard error."""
    in_fd, out_fd = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    for fd in (in_fd, out_fd):
        os.set_blocking(fd, True)  # Whoever starts us may have it otherwise, and that reads as an end.
    sys.stdout = sys.stderr
    return in_fd, out_fd
