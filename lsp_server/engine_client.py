"""Finds or starts the engine process of a profile and speaks to it: `EngineClient` is an `Engine` of diffusion.api.

Knows HTTP and how a process is started; knows neither the model nor documents.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

import psutil

from diffusion.api import (
    BadRequest,
    Draft,
    EditRequest,
    EngineError,
    Event,
    Failure,
    FillRequest,
    Status,
    parse_event,
    parse_status,
    to_json,
)
from lsp_server.chosen_model import chosen_model
from lsp_server.engine_paths import EnginePaths, check_private, engine_paths
from lsp_server.engine_start import COMMAND, Starter, not_answering
from lsp_server.http_lines import BrokenAnswer, NobodyListens, Refused, Silence, Unanswered, request_lines

PATIENCE = 5.0
"""Seconds without a word, beyond a request's deadline, after which an engine is asked whether it is still there; and
how long it may take to say so."""
LEASE_PATIENCE = 60.0
"""The same for the event stream, where silence is the rule."""
STOP_SECONDS = 30.0
ATTEMPTS = 3
"""To reach an engine: one may just be dying, then one has to be started."""


class EngineClient:
    """The engine process of one profile ("": the one that the user has chosen), started when it is needed.

    `client`: the name in the requests; what the engine keeps for it is given up when the last lease of it ends.
    `idle`: seconds without clients after which the engine ends (0: never; None: as it is). `start` False: use an engine
    that runs, start none. `command` stands in for the real process in tests. An engine that says nothing for `patience`
    seconds (plus a request's deadline) is asked whether it is there, and given up after as many. Use it on one event
    loop.
    """

    def __init__(
        self,
        profile: str = "",
        *,
        client: str = "",
        idle: float | None = None,
        start: bool = True,
        command: Sequence[str] = COMMAND,
        patience: float = PATIENCE,
    ) -> None:
        self._named, self._patience = profile, patience
        self._client, self._idle = client, idle
        self._start, self._command = start, command

    @cached_property
    def profile(self) -> str:
        """Its name. Raises EngineError when the user's choice cannot be read."""
        return self._named or chosen_model()

    @cached_property
    def _starter(self) -> Starter | None:
        return Starter(self.profile, self._command) if self._start else None

    @cached_property
    def paths(self) -> EnginePaths:
        """Where the engine is. Raises EngineError when the profile's name or the runtime folder cannot be used."""
        return engine_paths(self.profile)

    async def fill(self, request: FillRequest) -> AsyncGenerator[Event, None]:
        """Drafts, then exactly one Result or Failure; it raises nothing. Closing it cancels.

        An engine that ends in mid-request gives a Failure "unavailable"; the next request starts a new one. So does an
        engine that neither keeps the deadline nor answers otherwise.
        """
        async with contextlib.aclosing(self._ask("/v1/fill", request)) as events:
            async for event in events:
                yield event

    async def edit(self, request: EditRequest) -> AsyncGenerator[Event, None]:
        """The same for an edit."""
        async with contextlib.aclosing(self._ask("/v1/edit", request)) as events:
            async for event in events:
                yield event

    async def _ask(self, path: str, request: FillRequest | EditRequest) -> AsyncGenerator[Event, None]:
        patience = self._patience + (request.deadline_ms or 0) / 1000
        try:
            async with contextlib.aclosing(self._lines("POST", path, to_json(request), patience)) as lines:
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

    async def running(self, patience: float | None = None) -> Status | None:
        """The status of the engine, or None if there is none; starts none. Raises EngineError for one that does
        not answer within `patience` seconds (None: twice the client's), and for paths that cannot be used."""
        check_private(self.paths.socket.parent)
        health = request_lines(self.paths.socket, "GET", "/health")
        try:
            async with asyncio.timeout(patience or 2 * self._patience), contextlib.aclosing(health):
                return parse_status(json.loads(await anext(health)))
        except NobodyListens:
            return None
        except (BrokenAnswer, Refused, TimeoutError, StopAsyncIteration, ValueError) as error:
            raise not_answering(self.paths) from error

    async def events(self) -> AsyncGenerator[Status, None]:
        """The status now and after every change, until the engine ends. Reading it is a lease: as long as somebody
        does, the engine does not end for lack of work. Raises EngineError."""
        asked = {"client": self._client, "idle": "" if self._idle is None else str(self._idle)}
        route = f"/v1/events?{urlencode({name: value for name, value in asked.items() if value})}"
        try:
            async with contextlib.aclosing(self._lines("GET", route, patience=LEASE_PATIENCE)) as lines:
                async for line in lines:
                    yield parse_status(line)
        finally:
            if self._starter:
                self._starter.reap()

    async def set_idle(self, seconds: float) -> None:
        """Change the idle time, also that of an engine that runs. Raises EngineError."""
        self._idle = seconds
        if await self.running():
            async with contextlib.aclosing(self.events()) as lease:
                await anext(lease, None)

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

    async def end(self) -> None:
        """The same, where there is one. Raises EngineError."""
        if await self.running():
            await self.stop()

    async def close(self) -> None:
        """Nothing is held between requests. The engine stays for others, and ends when it has been idle."""

    # --- HTTP

    async def _one(self, method: str, path: str, body: Any = None) -> Any:
        async with contextlib.aclosing(self._lines(method, path, body)) as lines:
            async for line in lines:
                return line
        raise self._ended()

    async def _lines(
        self, method: str, path: str, body: Any = None, patience: float | None = None
    ) -> AsyncGenerator[Any, None]:
        """The JSON lines of an answer, from an engine that is started if there is none. Raises EngineError.

        There is no limit of time as long as the engine is alive: a request waits while the model loads, and its
        deadline is the engine's business.
        """
        content = None if body is None else json.dumps(body).encode()
        for attempt in range(ATTEMPTS):
            check_private(self.paths.socket.parent)
            try:
                answer = request_lines(
                    self.paths.socket, method, path, content, patience=patience or self._patience, alive=self._is_alive
                )
                async with contextlib.aclosing(answer) as lines:
                    async for line in lines:
                        yield json.loads(line)
                    return
            except Refused as error:
                raise _refusal(error.body) from error
            except NobodyListens as error:
                if attempt == ATTEMPTS - 1:
                    raise self._ended() from error
                if not self._starter:
                    hint = "start one with `midfill engine start`"
                    raise EngineError("no engine is running", hint, "unavailable") from error
                await self._starter.start(self.paths, self._answers, self._idle)
            except Silence as error:
                raise not_answering(self.paths) from error
            except (BrokenAnswer, json.JSONDecodeError) as error:
                await self._settle()
                if not isinstance(error, Unanswered) or attempt == ATTEMPTS - 1:
                    raise self._ended() from error

    def _ended(self) -> EngineError:
        return EngineError("the engine has ended unexpectedly", f"the log is {self.paths.log}", "unavailable")

    async def _answers(self) -> bool | None:
        """True: an engine answers. False: there is none. None: neither, it may be about to end."""
        try:
            return await self.running(self._patience) is not None
        except EngineError:
            return None

    async def _is_alive(self) -> bool:
        return await self._answers() is True

    async def _settle(self) -> None:
        """After a broken answer: a killed process takes connections for another moment, which the next request must
        not run into."""
        for _ in range(100):
            if await self._answers() is not None:
                return
            await asyncio.sleep(0.01)


def _refusal(body: bytes) -> EngineError:
    """The Failure in an answer that is not 200."""
    try:
        failure: Event | None = parse_event(json.loads(body))
    except (json.JSONDecodeError, BadRequest):
        failure = None
    if not isinstance(failure, Failure):
        return EngineError("the engine gave an answer that makes no sense", "restart it: midfill engine stop")
    return EngineError(failure.message, failure.hint, failure.code)
