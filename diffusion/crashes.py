"""Engines that ended without being asked to, counted for all windows of the user in a file beside the socket.

An engine removes its socket's file when it ends in order, so one that finds such a file, with the lock in its hands,
knows that its predecessor did not. Times are time.monotonic(): all processes share it and nobody sets it; it starts
anew with the machine, so a time that lies ahead is from before. Another file stands there while a model is loaded: who
dies then was often killed by the system for lack of memory. Knows nothing else of why an engine ended.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from diffusion.api import EngineError

MAX_CRASHES, WINDOW = 3, 300.0
"""After so many crashes within so many seconds no further model is loaded."""
DELAYS = (0.0, 0.0, 0.5)
"""Seconds to wait before loading, by the number of crashes."""


def note(socket: Path) -> None:
    """One more crash, now. A record that cannot be written is none: that must not stop an engine."""
    with contextlib.suppress(OSError):
        _file(socket).write_text(json.dumps([*recent(socket), time.monotonic()]), encoding="ascii")


def recent(socket: Path) -> list[float]:
    """When, within the window."""
    try:
        times = json.loads(_file(socket).read_bytes())
    except (OSError, ValueError):
        return []
    now = time.monotonic()
    numbers = [at for at in times if isinstance(at, float)] if isinstance(times, list) else []
    return [at for at in numbers if now - WINDOW < at <= now]


def forget(socket: Path) -> None:
    """An engine has ended in order: what was before is settled."""
    with contextlib.suppress(OSError):
        _file(socket).unlink(missing_ok=True)
        _loading(socket).unlink(missing_ok=True)


@contextlib.contextmanager
def loading(socket: Path) -> Iterator[None]:
    """While a model is loaded."""
    with contextlib.suppress(OSError):
        _loading(socket).touch()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            _loading(socket).unlink(missing_ok=True)


def hold_back(socket: Path, log: Path | None, memory: Callable[[], str] = lambda: "") -> None:
    """Wait as long as the crashes so far advise. Raises EngineError when there were too many; where the last one came
    while loading, with what `memory` says of the model's need."""
    crashes = len(recent(socket))
    if crashes >= MAX_CRASHES:
        message = f"the engine ended unexpectedly {crashes} times within {WINDOW / 60:.0f} minutes"
        if _loading(socket).exists():
            message += f", the last time while loading the model{memory()}"
        where = f"the log is {log}; " if log else ""
        raise EngineError(message, f"{where}`midfill engine start` tries again", "unavailable")
    time.sleep(DELAYS[crashes])


def _loading(socket: Path) -> Path:
    return socket.with_suffix(".loading")


def _file(socket: Path) -> Path:
    return socket.with_suffix(".crashes")
