"""Bytes in, messages out: the framing of LSP over a stream, forgiving where clients are sloppy.

Knows headers and lengths, neither JSON nor LSP. Header names in any case and spacing, lines that end with LF only,
unknown headers and stray bytes are accepted; a length that cannot be meant is reported, and reading goes on at the
next header.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterator

MAX_BODY = 256 * 1024 * 1024
"""Bytes. No editor sends more in one message; a larger length is a mistake, and believing it would hang the server."""

MAX_HEADER = 16 * 1024

_LENGTH = re.compile(rb"content-length\s*:\s*(-?\d+)", re.IGNORECASE)


class FramingError(Exception):
    """A header that cannot be followed; the sentence says why. The framer has already moved past it."""


class Framer:
    """Cuts a stream into message bodies. `feed` takes bytes as they come and yields what has become complete."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._length: int | None = None
        self._in_body = False

    def feed(self, data: bytes) -> Iterator[bytes | FramingError]:
        self._buffer += data
        while True:
            if self._in_body:
                if self._length is None or len(self._buffer) < self._length:
                    return
                body = bytes(self._buffer[: self._length])
                del self._buffer[: self._length]
                self._length, self._in_body = None, False
                yield body
                continue
            end = self._buffer.find(b"\n")
            if end < 0:
                if len(self._buffer) > MAX_HEADER:  # Not a header; the end may be the start of one.
                    del self._buffer[:-64]
                return
            line = bytes(self._buffer[:end]).strip()
            del self._buffer[: end + 1]
            if not line:
                self._in_body = self._length is not None
            elif match := _LENGTH.search(line):
                digits = match.group(1)
                if len(digits) <= len(str(MAX_BODY)) and 0 <= int(digits) <= MAX_BODY:
                    self._length = int(digits)
                else:
                    self._length = None
                    yield FramingError(f"Content-Length {digits[:32].decode()} is out of range")


Messages = asyncio.Queue[bytes | FramingError | None]
"""Bodies as they come in; None marks the end."""


def pump(fd: int, framer: Framer, messages: Messages) -> None:
    """Read `fd` in a daemon thread until its end and put what arrives into `messages`.

    A thread, because neither files nor Windows pipes can be awaited; `os.read`, because a daemon thread that holds
    the lock of `sys.stdin` would break the interpreter's exit.
    """
    loop = asyncio.get_running_loop()

    def read() -> None:
        with contextlib.suppress(RuntimeError):  # The loop has already ended.
            with contextlib.suppress(OSError):  # The other end has gone: the same as an end of file.
                while data := os.read(fd, 1 << 16):
                    for message in framer.feed(data):
                        loop.call_soon_threadsafe(messages.put_nowait, message)
            loop.call_soon_threadsafe(messages.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()


class Writer:
    """Writes whole messages to a file descriptor. When its reader has gone, `on_broken` is called once."""

    def __init__(self, fd: int, on_broken: Callable[[], None]) -> None:
        self._fd = fd
        self._on_broken: Callable[[], None] | None = on_broken

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view and self._on_broken:
                view = view[os.write(self._fd, view) :]
        except OSError:
            if self._on_broken:
                self._on_broken()
            self._on_broken = None

    def close(self) -> None:
        os.close(self._fd)
