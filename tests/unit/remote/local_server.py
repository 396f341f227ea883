"""A server on this machine whose routes the test writes: what it is asked it remembers, and it sees clients go.

Served by uvicorn in a thread of its own, over TLS if wanted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import queue
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

Handler = Callable[["Asked"], Response | Awaitable[Response]]


@dataclass(frozen=True)
class Asked:
    """A request that has come. `body`: its JSON, None without one."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class LocalServer:
    """`routes` maps "GET /path" to who answers there; a test may change it at any time."""

    def __init__(self, routes: dict[str, Handler], certificate: tuple[Path, Path] | None = None, port: int = 0) -> None:
        self.routes = routes
        self.asked: list[Asked] = []
        self.came: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Paths of requests, as they come."""
        self.gone: queue.SimpleQueue[str] = queue.SimpleQueue()
        """Paths of streams whose client went before their end."""
        # asyncio sends small packets at once only on sockets whose protocol is named.
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self._listener.listen()
        scheme = "https" if certificate else "http"
        self.url = f"{scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        files = {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]} if certificate else {}
        config = uvicorn.Config(
            self._app,
            log_config=None,
            lifespan="off",
            ws="none",
            interface="asgi3",
            timeout_graceful_shutdown=1,
            **files,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True)

    def bodies(self, path: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.path == path]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        text = await request.body()
        asked = Asked(request.method, request.url.path, dict(request.headers), json.loads(text) if text else None)
        self.asked.append(asked)
        self.came.put(asked.path)
        handler = self.routes.get(f"{asked.method} {asked.path}")
        if handler is None:
            await JSONResponse({"detail": "Not Found"}, 404)(scope, receive, send)
            return
        answer = handler(asked)
        answer = await answer if isinstance(answer, Awaitable) else answer
        ended = False

        async def watched_send(message: Any) -> None:
            nonlocal ended
            await send(message)
            ended = ended or (message["type"] == "http.response.body" and not message.get("more_body"))

        try:
            await answer(scope, receive, watched_send)
        finally:
            if not ended:
                self.gone.put(asked.path)

    @contextlib.contextmanager
    def running(self) -> Iterator[LocalServer]:
        self._thread.start()
        try:
            yield self
        finally:
            self.stop()

    def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(20)
        self._listener.close()


def says(value: Any, status: int = 200, **headers: str) -> Handler:
    return lambda asked: JSONResponse(value, status, headers)


def text(body: str, status: int = 200) -> Handler:
    return lambda asked: Response(body, status)


def in_turn(*handlers: Handler) -> Handler:
    """One handler for each request, the last one for all that follow."""
    left = list(handlers)
    return lambda asked: (left.pop(0) if len(left) > 1 else left[0])(asked)


def events(*values: Any, then_hangs: bool = False) -> Handler:
    """A stream of server-sent events; with `then_hangs` it does not end."""

    async def parts() -> AsyncIterator[bytes]:
        for value in values:
            yield f"data: {value if isinstance(value, str) else json.dumps(value)}\n\n".encode()
        if then_hangs:
            await asyncio.Event().wait()

    return lambda asked: StreamingResponse(parts(), media_type="text/event-stream")


def json_lines(*values: Any) -> Handler:
    body = "".join(json.dumps(value) + "\n" for value in values)
    return lambda asked: Response(body, media_type="application/x-ndjson")


class BreaksOff(Response):
    """Promises more than it sends."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        length = (b"content-length", str(len(self.body) + 100).encode())
        await send(
            {"type": "http.response.start", "status": 200, "headers": [length, (b"content-type", b"text/plain")]}
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def breaks_off(body: str) -> Handler:
    return lambda asked: BreaksOff(body)


async def _hang(asked: Asked) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


hangs: Handler = _hang
