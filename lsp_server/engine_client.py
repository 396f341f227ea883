"""Finds or starts the engine process of a profile and speaks to it: `EngineClient` is an `Engine` of diffusion.api.

Knows HTTP and how a process is started; knows neither the model nor documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cached_property
from typing import IO, Any

import psutil

from diffusion.api import (
    BadRequest,
    Draft,
    EngineError,
    Event,
    Failure,
    FillRequest,
    Status,
    parse_event,
    parse_status,
    to_json,
)
from lsp_server.engine_paths import EnginePaths, check_private, engine_paths, last_line, make_private
from lsp_server.http_lines import BrokenAnswer, NobodyListens, Refused, request_lines

DEFAULT_PROFILE = "embedded"
COMMAND = (sys.executable, "-I", "-m", "diffusion.server")
"""-I: neither the working directory nor the environment decides which code runs."""

ANSWER_SECONDS = 30.0
"""How long a process that was just started may take until it answers; the model is loaded after that."""
HEALTH_SECONDS = 5.0
STOP_SECONDS = 30.0
MAX_CRASHES, CRASH_WINDOW = 3, 300.0
"""After so many engines of ours that ended badly within so many seconds, no further one is started."""


def engine_command(paths: EnginePaths, profile: str, idle: float, command: Sequence[str] = COMMAND) -> list[str]:
    """The command line of an engine process."""
    options = {"--socket": str(paths.socket), "--profile": profile, "--idle": str(idle), "--log": str(paths.log)}
    return [*command, *(word for option in options.items() for word in option)]


class EngineClient:
    """The engine process of one profile, started when it is needed.

    `idle`: seconds until an engine started from here ends for lack of clients (0: never). `start` False: use an engine
    that runs, start none. `command` stands in for the real process in tests. Use it on one event loop.
    """

    def __init__(
        self,
        profile: str = DEFAULT_PROFILE,
        *,
        idle: float = 300.0,
        start: bool = True,
        command: Sequence[str] = COMMAND,
    ) -> None:
        self.profile = profile
        self._idle = idle
        self._may_start = start
        self._command = command
        self._starting = asyncio.Lock()
        self._children: list[tuple[float, subprocess.Popen[bytes]]] = []

    @cached_property
    def paths(self) -> EnginePaths:
        """Where the engine is. Raises EngineError when the profile's name or the runtime folder cannot be used."""
        return engine_paths(self.profile)

    async def fill(self, request: FillRequest) -> AsyncGenerator[Event, None]:
        """Drafts, then exactly one Result or Failure; it raises nothing. Closing it cancels.

        An engine that ends in mid-request gives a Failure "unavailable"; the next request starts a new one.
        """
        try:
            async with contextlib.aclosing(self._lines("POST", "/v1/fill", to_json(request))) as lines:
                async for line in lines:
                    event = parse_event(line)
                    yield event
                    if not isinstance(event, Draft):
                        return
            raise self._ended()
        except EngineError as error:
            yield error.as_failure()

    async def status(self) -> Status:
        """How the engine is now; it is started if there is none. Raises EngineError."""
        return parse_status(await self._one("GET", "/health"))

    async def running(self, patience: float = ANSWER_SECONDS) -> Status | None:
        """The status of the engine, or None if there is none; starts none. Raises EngineError for one that does
        not answer within `patience` seconds, and for paths that cannot be used."""
        check_private(self.paths.socket.parent)
        health = request_lines(self.paths.socket, "GET", "/health")
        try:
            async with asyncio.timeout(patience), contextlib.aclosing(health):
                return parse_status(json.loads(await anext(health)))
        except NobodyListens:
            return None
        except (BrokenAnswer, Refused, TimeoutError, StopAsyncIteration, ValueError) as error:
            hint = f"end its process; the number stands in the log {self.paths.log}"
            raise EngineError("an engine is running but does not answer", hint, "unavailable") from error

    async def events(self) -> AsyncGenerator[Status, None]:
        """The status now and after every change, until the engine ends. Reading it is a lease: as long as somebody
        does, the engine does not end for lack of work. Raises EngineError."""
        try:
            async with contextlib.aclosing(self._lines("GET", "/v1/events")) as lines:
                async for line in lines:
                    yield parse_status(line)
        finally:
            for _, child in self._children:
                child.poll()  # one that has ended stays a zombie until it is asked

    async def wait_ready(self, on_status: Callable[[Status], None] = lambda status: None) -> Status:
        """Wait until the model is loaded, with every status on the way. Raises EngineError, also when loading fails."""
        async with contextlib.aclosing(self.events()) as statuses:
            async for status in statuses:
                on_status(status)
                if status.state in ("ready", "busy"):
                    return status
                if status.state == "errored":
                    hint = f"when that is mended, run `midfill engine start`; the log is {status.log}"
                    raise EngineError(status.detail, hint, "model")
        raise self._ended()

    async def listen(self, address: str, key: str) -> str:
        """Open a port of 127.0.0.1 for other tools that have the key, and return its address. Raises EngineError."""
        answer = await self._one("POST", "/v1/listen", {"address": address, "key": key})
        return str(answer["address"])

    async def listening(self) -> str:
        """The address of that port, or "" if none is open. Raises EngineError."""
        return str((await self._one("GET", "/v1/listen"))["address"])

    async def stop(self) -> None:
        """End the engine, after the request that runs, and wait until it has gone. Raises EngineError."""
        status = parse_status(await self._one("POST", "/v1/stop"))
        deadline = time.monotonic() + STOP_SECONDS
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(status.pid)
            # Ended, but not yet noticed by the server that started it, is a zombie.
            while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() > deadline:
                    message, hint = f"the engine has not ended after {STOP_SECONDS:.0f} s", f"kill {status.pid}"
                    raise EngineError(message, hint, "unavailable")
                await asyncio.sleep(0.02)

    async def close(self) -> None:
        """Nothing is held between requests. The engine stays for others, and ends when it has been idle."""

    # --- HTTP

    async def _one(self, method: str, path: str, body: Any = None) -> Any:
        async with contextlib.aclosing(self._lines(method, path, body)) as lines:
            async for line in lines:
                return line
        raise self._ended()

    async def _lines(self, method: str, path: str, body: Any = None) -> AsyncGenerator[Any, None]:
        """The JSON lines of an answer, from an engine that is started if there is none. Raises EngineError.

        There is no limit of time: a request waits while the model loads, and its deadline is the engine's business.
        """
        content = None if body is None else json.dumps(body).encode()
        for attempt in (1, 2):
            check_private(self.paths.socket.parent)
            try:
                async with contextlib.aclosing(request_lines(self.paths.socket, method, path, content)) as lines:
                    async for line in lines:
                        yield json.loads(line)
                    return
            except Refused as error:
                raise _refusal(error.body) from error
            except NobodyListens as error:
                if attempt == 2:
                    raise self._ended() from error
                await self._start()
            except (BrokenAnswer, json.JSONDecodeError) as error:
                await self._settle()
                raise self._ended() from error

    def _ended(self) -> EngineError:
        return EngineError("the engine has ended unexpectedly", f"the log is {self.paths.log}", "unavailable")

    async def _answers(self) -> bool | None:
        """True: an engine answers. False: there is none. None: neither, it may be about to end."""
        try:
            return await self.running(HEALTH_SECONDS) is not None
        except EngineError:
            return None

    async def _settle(self) -> None:
        """After a broken answer: a killed process takes connections for another moment, which the next request must
        not run into."""
        for _ in range(100):
            if await self._answers() is not None:
                return
            await asyncio.sleep(0.01)

    # --- starting

    async def _start(self) -> None:
        """Start an engine process unless there is one now, and wait until it answers. Raises EngineError."""
        async with self._starting:
            if await self._answers():
                return
            if not self._may_start:
                raise EngineError("no engine is running", "start one with `midfill engine start`", "unavailable")
            self._give_up_after_crashes()
            deadline = time.monotonic() + ANSWER_SECONDS
            child = self._spawn()
            while not await self._answers():
                code = child.poll()
                if time.monotonic() > deadline:
                    child.kill()
                    raise self._failed(f"the engine did not answer within {ANSWER_SECONDS:.0f} s")
                if code:
                    raise self._failed(f"the engine did not start (exit code {code})")
                await asyncio.sleep(0.02)
                if code == 0:
                    # Another process holds the lock: it is about to answer, or about to end.
                    self._children.pop()
                    child = self._spawn()

    def _give_up_after_crashes(self) -> None:
        now = time.monotonic()
        self._children = [(at, child) for at, child in self._children if now - at < CRASH_WINDOW and child.poll() != 0]
        if len(self._children) >= MAX_CRASHES:
            raise self._failed(f"the engine ended {MAX_CRASHES} times within {CRASH_WINDOW / 60:.0f} minutes")

    def _failed(self, message: str) -> EngineError:
        said = last_line(self.paths.log)
        return EngineError(f"{message}: {said}" if said else message, f"the log is {self.paths.log}", "unavailable")

    def _spawn(self) -> subprocess.Popen[bytes]:
        """The process, in a session of its own so that it outlives us. What it says before it has a log goes there."""
        make_private(self.paths.socket.parent)
        with contextlib.ExitStack() as stack:
            output: int | IO[bytes] = subprocess.DEVNULL
            with contextlib.suppress(OSError):
                self.paths.log.parent.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(self.paths.log.open("ab"))
            command = engine_command(self.paths, self.profile, self._idle, self._command)
            try:
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                    cwd=self.paths.socket.parent,
                )  # fmt: skip
            except OSError as error:
                hint = f"does {command[0]} exist? Then see `midfill doctor`"
                raise EngineError(f"the engine did not start: {error}", hint, "unavailable") from error
        self._children.append((time.monotonic(), child))
        return child


def _refusal(body: bytes) -> EngineError:
    """The Failure in an answer that is not 200."""
    try:
        failure: Event | None = parse_event(json.loads(body))
    except (json.JSONDecodeError, BadRequest):
        failure = None
    if not isinstance(failure, Failure):
        return EngineError("the engine gave an answer that makes no sense", "restart it: midfill engine stop")
    return EngineError(failure.message, failure.hint, failure.code)
