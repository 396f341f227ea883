"""Starts engine processes, and says what went wrong with those that do not come up.

An engine that crashes later is counted by its successor, for all windows; here only those count that never answered.
Knows neither HTTP nor requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import IO

import psutil

from diffusion.api import EngineError
from lsp_server.engine_paths import EnginePaths, last_line, make_private

COMMAND = (sys.executable, "-I", "-m", "diffusion.server")
"""-I: neither the working directory nor the environment decides which code runs."""

ANSWER_SECONDS = 30.0
"""How long a process that was just started may take until it answers; the model is loaded after that."""
MAX_FAILURES, FAILURE_WINDOW = 3, 300.0
"""After so many processes of ours that never answered, within so many seconds, no further one is started."""
DELAYS = (0.0, 0.0, 0.5)
"""Seconds to wait before a start, by the number of those failures."""


_OWN_SESSION = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)
"""What `start_new_session` is on Windows."""


def engine_command(
    paths: EnginePaths, profile: str, idle: float | None = None, command: Sequence[str] = COMMAND
) -> list[str]:
    """The command line of an engine process. `idle` in seconds, None: the engine's own."""
    options = {"--socket": str(paths.socket), "--profile": profile, "--log": str(paths.log)}
    if idle is not None:
        options["--idle"] = str(idle)
    return [*command, *(word for option in options.items() for word in option)]


def not_answering(paths: EnginePaths) -> EngineError:
    """The error for an engine that is there and silent: stopped by a signal, or stuck."""
    pids = [
        str(process.pid)
        for process in psutil.process_iter(["cmdline"])
        if str(paths.socket) in (process.info["cmdline"] or [])
    ]
    kill = f"end it with `kill -9 {' '.join(pids)}`" if pids else "end its process"
    hint = f"{kill}, and the next request starts a new one; the log is {paths.log}"
    return EngineError("an engine is running but does not answer", hint, "unavailable")


class Starter:
    """Starts the engine of one profile on one event loop; remembers its children and what failed."""

    def __init__(self, profile: str, command: Sequence[str]) -> None:
        self._profile, self._command = profile, command
        self._starting = asyncio.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        self._failures: list[float] = []

    async def start(
        self, paths: EnginePaths, answers: Callable[[], Awaitable[bool | None]], idle: float | None = None
    ) -> None:
        """Start a process unless an engine answers now, and wait until it does. Raises EngineError."""
        async with self._starting:
            if await answers():
                return
            self._failures = [at for at in self._failures if time.monotonic() - at < FAILURE_WINDOW]
            if len(self._failures) >= MAX_FAILURES:
                raise _failed(paths, f"the engine did not start {MAX_FAILURES} times")
            await asyncio.sleep(DELAYS[len(self._failures)])
            deadline = time.monotonic() + ANSWER_SECONDS
            child = self._spawn(paths, idle)
            while not await answers():
                code = child.poll()
                if code or time.monotonic() > deadline:
                    child.kill()
                    self._failures.append(time.monotonic())
                    how = f"did not start (exit code {code})" if code else f"did not answer for {ANSWER_SECONDS:.0f} s"
                    raise _failed(paths, f"the engine {how}")
                await asyncio.sleep(0.02)
                if code == 0:
                    # Another process holds the lock: it is about to answer, or about to end.
                    child = self._spawn(paths, idle)

    def reap(self) -> None:
        """A child that has ended stays a zombie until it is asked."""
        self._children = [child for child in self._children if child.poll() is None]

    def _spawn(self, paths: EnginePaths, idle: float | None) -> subprocess.Popen[bytes]:
        """The process, in a session of its own so that it outlives us. What it says before it has a log goes there."""
        self.reap()
        make_private(paths.socket.parent)
        with contextlib.ExitStack() as stack:
            output: int | IO[bytes] = subprocess.DEVNULL
            with contextlib.suppress(OSError):
                paths.log.parent.mkdir(parents=True, exist_ok=True)
                output = stack.enter_context(paths.log.open("ab"))
            command = engine_command(paths, self._profile, idle, self._command)
            try:
                child = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                    cwd=paths.socket.parent, creationflags=_OWN_SESSION,
                )  # fmt: skip
            except OSError as error:
                hint = f"does {command[0]} exist? Then see `midfill doctor`"
                raise EngineError(f"the engine did not start: {error}", hint, "unavailable") from error
        self._children.append(child)
        return child


def _failed(paths: EnginePaths, message: str) -> EngineError:
    said = last_line(paths.log)
    return EngineError(f"{message}: {said}" if said else message, f"the log is {paths.log}", "unavailable")
