"""The engine's HTTP routes, the leases of its clients, and when it ends.

    GET  /health      the status, at any time
    GET  /v1/events   the status after every change, a line of JSON each, until the engine stops. While a client reads
                      this it holds a lease: the engine does not end for lack of work. ?idle=SECONDS: the idle time
                      from now on. ?client=NAME: what is kept for this client is given up when nobody reads any more
    POST /v1/fill     a FillRequest as JSON; drafts and then one result or error, a line of JSON each. Closing the
                      connection cancels. While the model loads, the request waits for it, up to its deadline. If it
                      could not be loaded and its files have changed since, it is loaded anew
    POST /v1/edit     an EditRequest as JSON, answered in the same way
    POST /v1/listen   {address, key}: open a port for other tools (see other_tools); an open port is a lease, too
    GET  /v1/listen   {address} of that port, or ""
    POST /v1/stop     end: no new requests, the running one finishes

Knows no tokens and no documents, and not how the process came about.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from diffusion import crashes, model_files
from diffusion.api import (
    DISTRIBUTION,
    BadRequest,
    EditRequest,
    Event,
    FillRequest,
    Progress,
    Status,
    to_json,
)
from diffusion.guard import Guard
from diffusion.http_server import HttpServer
from diffusion.listening import Listener
from diffusion.scheduler import ModelEngine, Scheduler
from diffusion.tool_port import ToolPort
from diffusion.wire import ERROR_HANDLERS, Lines, parse_edit_request, parse_fill, parse_json, read_body

VERSION = importlib.metadata.version(DISTRIBUTION)
DRAIN_SECONDS = 10
"""How long a stopping engine lets the running request finish."""
MAX_IDLE = 1e8
"""Seconds; more than asyncio's timers have to bear."""

Load = Callable[[str, Callable[[Progress], None]], ModelEngine]

log = logging.getLogger("midfill.engine")


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the process was started. `idle` in seconds, 0: never end by itself. `listen`: the address of a port for other
    tools, whose key stands in the environment variable `api_key_env`."""

    socket: Path
    profile: str
    idle: float = 300.0
    log: Path | None = None
    foreground: bool = False
    listen: str = ""
    api_key_env: str = ""


class EngineServer:
    """The routes, and when the process ends. Lives on one event loop."""

    def __init__(self, options: Options, load: Load) -> None:
        self._options = options
        self._idle = options.idle
        self._load = load
        self._scheduler = Scheduler(self._load_model, self._changed)
        self._model: asyncio.Task[None] | None = None
        self._files = model_files.fingerprint(options.profile)
        self._started = time.monotonic()
        self._watchers: dict[asyncio.Event, str] = {}
        self._answering = 0
        self._idle_timer: asyncio.TimerHandle | None = None
        self._stopping = asyncio.Event()
        self._logged_state = ""
        self._port = ToolPort(
            self._answer, self.status, record=options.socket.with_suffix(".port"), drain=DRAIN_SECONDS + 2
        )

    def _load_model(self, on_progress: Callable[[Progress], None]) -> ModelEngine:
        """In the model's thread. Raises EngineError."""
        socket, profile = self._options.socket, self._options.profile
        crashes.hold_back(socket, self._options.log, lambda: model_files.memory_sentence(profile))
        self._files = model_files.fingerprint(profile)
        with crashes.loading(socket):
            return self._load(profile, on_progress)

    async def serve(self, listener: Listener) -> None:
        """Answer on a bound socket until stopped by a request, a signal, or for lack of work."""
        app: ASGIApp = Starlette(
            routes=[
                Route("/health", self.health, methods=["GET"]),
                Route("/v1/events", self.events, methods=["GET"]),
                Route("/v1/fill", self.fill, methods=["POST"]),
                Route("/v1/edit", self.edit, methods=["POST"]),
                Route("/v1/listen", self.listen_route, methods=["GET", "POST"]),
                Route("/v1/stop", self.stop_route, methods=["POST"]),
            ],
            exception_handlers=ERROR_HANDLERS,
        )
        if listener.key:
            app = Guard(app, port=listener.port, key=listener.key)
        server = HttpServer(app, drain=DRAIN_SECONDS + 2)
        if self._options.listen:
            await self.listen(self._options.listen, os.environ.get(self._options.api_key_env, ""))
        else:
            await self._port.reopen()
        self._stop_on_signals()
        model = self._model = asyncio.create_task(self._scheduler.run())
        serving = asyncio.create_task(server.serve(sockets=[listener.socket]))
        stopping = asyncio.create_task(self._stopping.wait())
        self._reconsider_idle()
        ended: set[asyncio.Task[Any]] = set()
        while not ended & {serving, stopping, model}:
            model = self._model  # there is another one after loading anew
            ended, _ = await asyncio.wait([serving, stopping, model], return_when=asyncio.FIRST_COMPLETED)
            model = self._model
        server.should_exit = True
        await self._port.close()
        await serving
        stopping.cancel()
        model.cancel()
        await asyncio.wait([model, stopping])
        if not model.cancelled() and (error := model.exception()):
            raise error

    def _load_anew_if_mended(self) -> None:
        """After a failure to load: again, if the model's files are not the same any more."""
        error = self._scheduler.error
        if self._model is None or not error or error.code != "model":
            return
        if self._scheduler.state == "errored" and model_files.fingerprint(self._options.profile) != self._files:
            log.info("the model's files have changed")
            requests = self._scheduler.requests
            self._scheduler = Scheduler(self._load_model, self._changed)
            self._scheduler.requests = requests
            self._model.cancel()
            self._model = asyncio.create_task(self._scheduler.run())
            self._changed()

    def stop(self, reason: str) -> None:
        log.info("stopping: %s", reason)
        self._scheduler.close()
        self._stopping.set()
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._scheduler.abandon)

    def _stop_on_signals(self) -> None:
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":  # only the keyboard's, in the foreground
            signal.signal(signal.SIGINT, lambda *_: loop.call_soon_threadsafe(self.stop, "SIGINT"))
        else:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                loop.add_signal_handler(number, self.stop, number.name)

    async def listen(self, address: str, key: str) -> None:
        """Open the port for other tools. Raises EngineError."""
        await self._port.open(address, key)
        self._reconsider_idle()

    def status(self) -> Status:
        scheduler = self._scheduler
        error = scheduler.error
        note: str = getattr(scheduler.engine, "note", "")  # of an engine whose model is elsewhere
        detail = f"{error.message}: {error.hint}" if error and error.hint else error.message if error else note
        return Status(
            state=scheduler.state,
            detail=detail,
            progress=scheduler.progress,
            model=scheduler.engine.name if scheduler.engine else self._options.profile,
            device=scheduler.engine.device if scheduler.engine else "",
            version=VERSION,
            pid=os.getpid(),
            uptime=time.monotonic() - self._started,
            memory=psutil.Process().memory_info().rss,
            clients=len(self._watchers),
            requests=scheduler.requests,
            idle=self._idle,
            log=str(self._options.log or ""),
        )

    # --- routes

    async def health(self, request: Request) -> Response:
        return JSONResponse(to_json(self.status()))

    async def events(self, request: Request) -> Response:
        if (idle := request.query_params.get("idle")) is not None:
            self._idle = _seconds(idle)
        return Lines(self._statuses(request.query_params.get("client", "")))

    async def fill(self, request: Request) -> Response:
        arrived = time.monotonic()
        return Lines(self._answer(parse_fill(await read_body(request)), arrived))

    async def edit(self, request: Request) -> Response:
        arrived = time.monotonic()
        return Lines(self._answer(parse_edit_request(await read_body(request)), arrived))

    async def listen_route(self, request: Request) -> Response:
        if request.method == "POST":
            body = parse_json(await read_body(request))
            if not isinstance(body, dict) or not all(isinstance(body.get(name), str) for name in ("address", "key")):
                raise BadRequest("address and key must be texts")
            await self.listen(body["address"], body["key"])
        return JSONResponse({"address": self._port.address})

    async def stop_route(self, request: Request) -> Response:
        asyncio.get_running_loop().call_soon(self.stop, "asked to")
        return JSONResponse(to_json(self.status()))

    # --- what they stream

    async def _statuses(self, client: str) -> AsyncGenerator[Any, None]:
        """The status now and after changes. A slow reader gets fewer of them, never a backlog. With the last one that
        `client` reads ends what is kept for it."""
        changed = asyncio.Event()
        self._watchers[changed] = client
        self._reconsider_idle()
        try:
            while not self._stopping.is_set():
                yield self.status()
                await changed.wait()
                changed.clear()
            yield self.status()
        finally:
            del self._watchers[changed]
            if client and client not in self._watchers.values():
                self._scheduler.forget(client)
            self._reconsider_idle()

    async def _answer(self, request: FillRequest | EditRequest, arrived: float) -> AsyncGenerator[Event, None]:
        self._load_anew_if_mended()
        self._answering += 1
        self._reconsider_idle()
        try:
            async with contextlib.aclosing(self._scheduler.fill(request, arrived=arrived)) as events:
                async for event in events:
                    yield event
        finally:
            self._answering -= 1
            self._reconsider_idle()

    # --- leases and idleness

    def _changed(self) -> None:
        state = self._scheduler.state
        if state not in ("busy", self._logged_state):
            self._logged_state = state
            log.info("%s %s", state, self.status().detail)
        for watcher in self._watchers:
            watcher.set()

    def _reconsider_idle(self) -> None:
        """Start the idle time anew if nobody holds a lease or waits for an answer, and no port is open."""
        if self._idle_timer:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._idle > 0 and not (self._watchers or self._answering or self._port.address):
            self._idle_timer = asyncio.get_running_loop().call_later(self._idle, self.stop, "idle")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MAX_IDLE:
        raise BadRequest(f"idle must be a number of seconds from 0 to {MAX_IDLE:.0f}, not {text!r}")
    return seconds
