"""A program in a terminal of its own: what it shows, keys for it, and the processes that it starts.

Knows pseudo-terminals; nothing of editors and nothing of midfill.
"""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pyte

SAFETY = 60.0
"""Seconds after which it is an error that what a test waits for has not come: a net, never a measure."""
POLL = 0.05


class Terminal:
    """One program, started in `cwd`, on a screen of `size` (columns, rows). It is killed with all its children when the
    context ends."""

    def __init__(
        self, command: list[str], *, cwd: Path, env: dict[str, str], size: tuple[int, int] = (100, 30)
    ) -> None:
        self._fd, program_end = pty.openpty()
        self._screen = _Screen(self._fd, *size)
        self._stream = pyte.ByteStream(self._screen)
        environment = env | {"TERM": "xterm-256color", "COLUMNS": str(size[0]), "LINES": str(size[1])}
        take_over = lambda: os.login_tty(program_end)  # noqa: E731
        started = subprocess.Popen(command, cwd=cwd, env=environment, preexec_fn=take_over)
        os.close(program_end)
        self._started, self.process = started, psutil.Process(started.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for process in [*self.process.children(recursive=True), self.process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self._started.wait()
        os.close(self._fd)

    def rows(self) -> list[str]:
        """What is on the screen, without blanks at the ends of rows."""
        return [row.rstrip() for row in self._screen.display]

    def shows(self, text: str) -> bool:
        return any(text in row for row in self.rows())

    def send(self, keys: str) -> None:
        """Type characters; control characters and escape sequences are those of an xterm."""
        os.write(self._fd, keys.encode())

    def wait(self, condition: Callable[[], Any]) -> Any:
        """What `condition` returns as soon as that is true. It is tried after everything that the program shows, and
        every now and then: it may be about files."""
        until = time.monotonic() + SAFETY
        while not (value := condition()):
            ready, _, _ = select.select([self._fd], [], [], POLL)
            ended = ready and not self._read()
            if ended or time.monotonic() > until:
                shown = "\n".join(filter(None, self.rows()))
                why = "ended" if ended else f"did not do in {SAFETY:.0f} s what was waited for"
                raise AssertionError(f"the program {why}; the screen:\n{shown}")
        return value

    def wait_for(self, text: str) -> None:
        """Until the text is on the screen."""
        self.wait(lambda: self.shows(text))

    def wait_end(self) -> None:
        """Until the program has ended by itself."""
        with contextlib.suppress(AssertionError):
            self.wait(lambda: False)
        self._started.wait(SAFETY)

    def _read(self) -> bool:
        """Take over what has been written; False at the end."""
        try:
            written = os.read(self._fd, 65536)
        except OSError:  # Linux says so when nobody has the other end open any more.
            return False
        self._stream.feed(written)
        return bool(written)


class _Screen(pyte.Screen):
    """Answers when the program asks who the terminal is: Helix and Vim wait for that."""

    def __init__(self, fd: int, columns: int, lines: int) -> None:
        super().__init__(columns, lines)
        self._fd = fd

    def write_process_input(self, data: str) -> None:
        os.write(self._fd, data.encode())

    def report_device_status(self, mode: int = 0, private: bool = False) -> None:
        """What is private to other terminals is not answered; pyte fails on it."""
        if not private:
            super().report_device_status(mode)

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attributes)
