"""Does a program pass its tests? Each one runs in a process of its own, with limits; see eval_child.py for them.

Knows processes; nothing of what the programs are about.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
import tempfile
from pathlib import Path
from typing import Literal

Verdict = Literal["passed", "failed", "out of time"]

CHILD = (sys.executable, "-I", "-S", "-B", str(Path(__file__).with_name("eval_child.py")))
"""No site packages, nothing from the environment or the working directory, and no byte code is written."""
SECONDS = 5
MEGABYTES = 1024


class Sandbox:
    """Runs programs one at a time, and no program twice."""

    def __init__(self, seconds: int = SECONDS, megabytes: int = MEGABYTES) -> None:
        self._seconds, self._megabytes = seconds, megabytes
        self._known: dict[str, Verdict] = {}

    async def run(self, program: str) -> Verdict:
        """Whether `program` comes to its end: an error, an early exit and a killed process are failures. When the
        caller is cancelled, the process is gone before this returns."""
        if program not in self._known:
            self._known[program] = await self._run(program)
        return self._known[program]

    async def _run(self, program: str) -> Verdict:
        token = secrets.token_hex(16)
        order = {"program": program, "token": token, "seconds": self._seconds, "megabytes": self._megabytes}
        with tempfile.TemporaryDirectory(prefix="midfill-", ignore_cleanup_errors=True) as folder:
            process = await asyncio.create_subprocess_exec(
                *CHILD,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=folder,
                env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},  # Windows needs it
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(self._seconds):
                    said, _ = await process.communicate(json.dumps(order).encode())
            except TimeoutError:
                return "out of time"
            finally:
                await _end(process)
        return "passed" if said == token.encode() else "failed"


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
    await process.wait()
