"""The network port for other tools: opened when the user asks for it, closed before another one is opened, and opened
again after a crash. For that its address and key are kept in a file that only the user can read, while it is open.

Knows neither leases nor what is asked through it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diffusion.api import BadRequest, EngineError, Status
from diffusion.guard import Guard
from diffusion.http_server import HttpServer
from diffusion.listening import on_loopback
from diffusion.other_tools import Fill, other_tools

log = logging.getLogger("midfill.engine")


WITHOUT_KEY = ("/health",)
"""It says whether the model is loaded, and nothing else."""


@dataclass(frozen=True, kw_only=True)
class _Open:
    address: str
    server: HttpServer
    serving: asyncio.Task[None]


class ToolPort:
    """At most one open port. Requests under way have `drain` seconds to finish when it is closed. `record` is the file
    that outlives a crash."""

    def __init__(self, fill: Fill, status: Callable[[], Status], *, record: Path, drain: float) -> None:
        self._fill, self._status, self._record, self._drain = fill, status, record, drain
        self._open: _Open | None = None

    @property
    def address(self) -> str:
        """ "127.0.0.1:PORT", or nothing while none is open."""
        return self._open.address if self._open else ""

    async def open(self, address: str, key: str) -> None:
        """Open a port in the place of the one that is open. Raises EngineError."""
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise BadRequest("the API key must be printable ASCII without blanks", "choose another one")
        await self.close()
        listener = on_loopback(address)
        host, port = listener.getsockname()
        app = other_tools(self._fill, self._status)
        guarded = Guard(app, port=port, key=key, without_key=WITHOUT_KEY)
        server = HttpServer(guarded, drain=self._drain)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        self._open = _Open(address=f"{host}:{port}", server=server, serving=serving)
        log.info("listening on %s for other tools", self.address)
        with contextlib.suppress(OSError), os.fdopen(os.open(self._record, _NEW, 0o600), "w") as file:
            json.dump({"address": self.address, "key": key}, file)

    async def reopen(self) -> None:
        """Open the port that was open when the engine before this one crashed, if that is so and can be."""
        try:
            before = json.loads(self._record.read_bytes())
            await self.open(str(before["address"]), str(before["key"]))
        except (OSError, ValueError, TypeError, KeyError, EngineError) as error:
            if not isinstance(error, FileNotFoundError):
                log.warning("the port for other tools is not open again: %s", type(error).__name__)

    async def close(self) -> None:
        """Close the port, if there is one."""
        if closing := self._open:
            self._open = None
            with contextlib.suppress(OSError):
                self._record.unlink(missing_ok=True)
            closing.server.should_exit = True
            await closing.serving


_NEW = os.O_CREAT | os.O_TRUNC | os.O_WRONLY
