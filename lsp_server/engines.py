"""Which engine answers: the engine process of this machine, or a script. Imported late, so that starting stays quick.

Knows the two and how they are named on the command line.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Protocol

from diffusion.api import Engine, Status
from lsp_server.usage import UsageError

AUTO = "auto"
SCRIPTED = "scripted:"


class WatchedEngine(Engine, Protocol):
    """An engine that also says, unasked, how it is."""

    def events(self) -> AsyncIterator[Status]:
        """The status now and after every change, until the engine ends. Raises EngineError."""
        ...

    async def set_idle(self, seconds: float) -> None:
        """Change after how long without clients it ends. Raises EngineError."""
        ...

    async def end(self) -> None:
        """End the process, after the request that runs; the next request starts another. Raises EngineError."""
        ...


def make_engine(spec: str, idle: float | None = None, client: str = "", profile: str = "") -> WatchedEngine:
    """`auto`: the engine process of this machine for `profile` ("": the user's choice), which ends after `idle` seconds
    without clients (0: never; None: as it is) and keeps things for `client` as long as its lease lasts.
    `scripted:FILE`: answers from a file.

    Raises UsageError for any other name and EngineError for a script that cannot be used."""
    if spec.startswith(SCRIPTED):
        from lsp_server import scripted

        return scripted.load(Path(spec.removeprefix(SCRIPTED)))
    if spec != AUTO:
        raise UsageError(f"unknown engine {spec!r}", f"{AUTO}, or {SCRIPTED}FILE")
    from lsp_server.engine_client import EngineClient

    return EngineClient(profile, client=client, idle=idle)
