"""One HTTP request over a Unix socket, answered in lines: what the engine's client needs of HTTP, and no more.

A connection per request and no pool: closing the generator closes the connection, which is how a fill is cancelled,
at any moment and without anything left over. Knows nothing of the engine's routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import h11

CONNECT_SECONDS = 5.0


class NobodyListens(Exception):
    """There is no connection to be had at the socket."""


class BrokenAnswer(Exception):
    """The connection ended before the answer did, or the answer is no HTTP."""


class Unanswered(BrokenAnswer):
    """The connection ended before the answer began: the request was not looked at. A process that has just been killed
    still takes connections for a moment."""


class Silence(Exception):
    """Nothing came for too long, and nobody says that more will come."""


class Refused(Exception):
    """An answer that is not 200. `body` is all of it."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self.body = body


async def request_lines(
    socket: Path,
    method: str,
    path: str,
    content: bytes | None = None,
    *,
    patience: float | None = None,
    alive: Callable[[], Awaitable[bool]] | None = None,
) -> AsyncGenerator[bytes, None]:
    """The lines of the answer, without their ends, as they come. After every `patience` seconds without a byte (None:
    no limit) `alive` is asked whether to wait on. Raises NobodyListens, BrokenAnswer, Refused, Silence."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(str(socket))
    except (OSError, TimeoutError) as error:
        raise NobodyListens from error
    status, rest = 0, b""
    try:
        connection = h11.Connection(h11.CLIENT)
        headers = [("host", "midfill"), ("connection", "close"), ("content-length", str(len(content or b"")))]
        writer.write(connection.send(h11.Request(method=method, target=path, headers=headers)) or b"")
        writer.write(connection.send(h11.Data(data=content or b"")) or b"")
        connection.send(h11.EndOfMessage())
        try:
            async with asyncio.timeout(patience):
                await writer.drain()
        except TimeoutError:
            raise Silence from None
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                connection.receive_data(await _read(reader, patience, alive))
            elif isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                rest += bytes(event.data)
                if status == 200:
                    *lines, rest = rest.split(b"\n")
                    for line in lines:
                        yield line
        if status != 200:
            raise Refused(rest)
        if rest:
            yield rest
    except (OSError, h11.RemoteProtocolError) as error:
        raise (BrokenAnswer if status else Unanswered) from error
    finally:
        writer.transport.abort()


async def _read(
    reader: asyncio.StreamReader, patience: float | None, alive: Callable[[], Awaitable[bool]] | None
) -> bytes:
    while True:
        try:
            async with asyncio.timeout(patience):
                return await reader.read(65536)
        except TimeoutError:
            if not (alive and await alive()):
                raise Silence from None
