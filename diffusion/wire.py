"""HTTP as the engine speaks it: a bounded JSON body in, lines of JSON out, every error as a `Failure`.

Knows nothing of the model, of leases and of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from diffusion.api import BadRequest, EditRequest, EngineError, Failure, FillRequest, parse_edit, parse_request, to_json

BODY_LIMIT = 4 * 1024 * 1024
"""Bytes of a request's body. A prompt is a few thousand tokens, so more is a mistake of the client."""
BODY_SECONDS = 30.0
"""How long a client may take to send it."""

T = TypeVar("T")
R = TypeVar("R", FillRequest, EditRequest)

log = logging.getLogger("midfill.engine")


class Lines(Response):
    """A stream of values as lines of JSON. The generator is closed as soon as the client has gone."""

    media_type = "application/x-ndjson"

    def __init__(self, values: AsyncGenerator[Any, None]) -> None:
        super().__init__()
        self._values = values
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with contextlib.suppress(ClientDisconnect):
            await unless_gone(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        async with contextlib.aclosing(self._values) as values:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            try:
                async for value in values:
                    await send({"type": "http.response.body", "body": _line(value), "more_body": True})
            # The status line is out, so an unforeseen fault of the model can only be told in the stream itself.
            except Exception as error:  # noqa: BLE001
                await send({"type": "http.response.body", "body": _line(as_failure(error)), "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled as soon as the client has gone. The body must have been read by then.

    Raises ClientDisconnect.
    """
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_gone(receive))
    try:
        await asyncio.wait([working, leaving], return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
        await asyncio.wait([working, leaving])
    if working.cancelled():
        raise ClientDisconnect
    return working.result()


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _line(value: Any) -> bytes:
    return json.dumps(to_json(value)).encode() + b"\n"


async def read_body(request: Request) -> bytes:
    """The body. One that is too long is read to its end and dropped: closing earlier would lose the answer."""
    body = bytearray()
    size = 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size <= BODY_LIMIT:
                    body += chunk
    except TimeoutError:
        raise HTTPException(408, f"the request was not complete after {BODY_SECONDS:.0f} s") from None
    if size > BODY_LIMIT:
        raise HTTPException(413, f"the request has {size:,} bytes, {BODY_LIMIT:,} at most are allowed")
    return bytes(body)


def parse_json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequest("the request is not valid JSON") from None


def parse_fill(body: bytes) -> FillRequest:
    return checked(parse_request(parse_json(body)))


def parse_edit_request(body: bytes) -> EditRequest:
    return checked(parse_edit(parse_json(body)))


def checked(request: R) -> R:
    """The same request. Raises BadRequest for text that no tokenizer takes."""
    try:
        json.dumps(to_json(request), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BadRequest("the request contains lone surrogates") from None
    return request


# --- errors


def _reply(status: int, failure: Failure) -> Response:
    return JSONResponse(to_json(failure), status)


async def _engine_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    return _reply(400 if error.code == "bad_request" else 503, error.as_failure())


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _reply(error.status_code, Failure(code="bad_request", message=http_message(request, error)))


def http_message(request: Request, error: HTTPException) -> str:
    return f"no such route: {request.method} {request.url.path}" if error.status_code in (404, 405) else error.detail


async def client_gone(request: Request, error: Exception) -> Response:
    return Response()


async def _internal_error(request: Request, error: Exception) -> Response:
    return _reply(500, as_failure(error))


def as_failure(error: Exception) -> Failure:
    """Log where an unforeseen error came from. Its message may quote code, so only its type is told."""
    name = type(error).__name__
    log.error("%s\n%s", name, "".join(traceback.format_tb(error.__traceback__)))
    return Failure(code="internal", message=f"the engine failed ({name})", hint="its log says where")


ERROR_HANDLERS: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
    EngineError: _engine_error,
    HTTPException: _http_error,
    ClientDisconnect: client_gone,
    Exception: _internal_error,
}
