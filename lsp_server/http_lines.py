"""One HTTP request to an engine, answered in lines: what the engine's client needs of HTTP, and no more.

The engine is met at a path: a Unix socket, or (ending in ".tcp") a file {port, key, pid} of a port of 127.0.0.1.
A connection per request and no pool: closing the generator closes the connection, which is how a fill is cancelled,
at any moment and without anything left over. Knows nothing of the engine's routes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import h11
import psutil

CONNECT_SECONDS = 5.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Headers = list[tuple[str, str]]


class NobodyListens(Exception):
    """There is no connection to be had at the path."""


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
    place: Path,
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
            (reader, writer), headers = await _connect(place)
    except (OSError, TimeoutError) as error:
        raise NobodyListens from error
    status, rest = 0, b""
    try:
        connection = h11.Connection(h11.CLIENT)
        headers += [("connection", "close"), ("content-length", str(len(content or b"")))]
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


async def _connect(place: Path) -> tuple[Streams, Headers]:
    """A connection and the headers that every request on it needs. Raises OSError, NobodyListens."""
    if place.suffix != ".tcp":
        return await asyncio.open_unix_connection(str(place)), [("host", "midfill")]
    port, key = _port(place)
    headers = [("host", f"127.0.0.1:{port}"), ("authorization", f"Bearer {key}"), ("content-type", "application/json")]
    return await asyncio.open_connection("127.0.0.1", port), headers


def _port(place: Path) -> tuple[int, str]:
    """The engine's port and key. Raises NobodyListens also when the file is a dead engine's: somebody else may have the
    port by now, and would be sent code."""
    try:
        content = json.loads(place.read_bytes())
        port, key, pid = int(content["port"]), str(content["key"]), int(content["pid"])
        alive = str(place) in psutil.Process(pid).cmdline()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, psutil.Error) as error:
        raise NobodyListens from error
    if not alive:
        raise NobodyListens
    return port, key


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
