"""A file of JSON lines that several processes of the user append to, and that never grows beyond a limit.

A line is appended under a lock; a file that has become too large is folded under the same lock and replaced at once. So
nothing is lost. Nobody waits for the lock either: while somebody else has it, lines are kept and appended with the next
one. Knows neither what the lines mean nor LSP.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import filelock

Line = dict[str, Any]

PENDING = 1_000
"""Lines that are kept at most while the file cannot be written."""
CLOSING_SECONDS = 1.0
"""How long the last lines wait for the lock."""

logger = logging.getLogger(__name__)


class Ledger:
    """`limit`: bytes. `fold`: what is to be kept of all lines, oldest first, once there are too many of them; of what
    it returns, the newest lines that fit into half the limit stay."""

    def __init__(self, path: Path, *, limit: int, fold: Callable[[list[Line]], list[Line]]) -> None:
        self.path = path
        self._limit, self._fold = limit, fold
        self._lock = filelock.FileLock(path.with_suffix(".lock"), mode=0o600)
        self._pending: deque[Line] = deque(maxlen=PENDING)
        self._works = True

    def add(self, line: Line) -> None:
        """Append one line, now or with a later one. Where that is not possible, the log says so once."""
        self.keep(line)
        self.write()

    def keep(self, line: Line) -> None:
        """To be appended with the next `write`: taking the lock costs more than many lines."""
        self._pending.append(line)

    def write(self) -> None:
        """Append what has been kept, now or later."""
        if self._pending:
            self._write(wait=0)

    def close(self) -> None:
        """Append what is left."""
        if self._pending:
            self._write(wait=CLOSING_SECONDS)

    def lines(self) -> list[Line]:
        """All lines, oldest first; what is none is left out. Raises OSError for a file that cannot be read."""
        try:
            with self.path.open("rb") as file:
                return _parsed(file.read())
        except FileNotFoundError:
            return []

    def _write(self, wait: float) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock.acquire(timeout=wait, poll_interval=0.005):
                self._append()
        except filelock.Timeout:
            return
        except OSError as error:
            if self._works:
                logger.warning("%s cannot be written: %s", self.path, error)
            self._works = False

    def _append(self) -> None:
        body = b"".join(_dumped(line) for line in self._pending)
        fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(fd, "ab") as file:
            file.write(body)
            size = file.tell()
        self._pending.clear()
        if size > self._limit:
            self._compact()

    def _compact(self) -> None:
        kept, room = [], self._limit // 2
        for line in reversed(self._fold(self.lines())):
            dumped = _dumped(line)
            if (room := room - len(dumped)) < 0:
                break
            kept.append(dumped)
        unfinished = self.path.with_suffix(".unfinished")
        with contextlib.suppress(FileNotFoundError):
            unfinished.unlink()
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(b"".join(reversed(kept)))
        unfinished.replace(self.path)


def _dumped(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _parsed(body: bytes) -> list[Line]:
    lines = []
    for text in body.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            if isinstance(line := json.loads(text), dict):
                lines.append(line)
    return lines
