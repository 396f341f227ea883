"""The network port for other tools: opened when the user asks for it, closed before another one is opened.

Knows neither leases nor what is asked through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from diffusion.api import BadRequest, Status
from diffusion.guard import Guard
from diffusion.http_server import HttpServer
from diffusion.listening import on_loopback
from diffusion.other_tools import Fill, other_tools


@dataclass(frozen=True, kw_only=True)
class _Open:
    address: str
    server: HttpServer
    serving: asyncio.Task[None]


class ToolPort:
    """At most one open port. Requests under way have `drain` seconds to finish when it is closed."""

    def __init__(self, fill: Fill, status: Callable[[], Status], *, drain: float) -> None:
        self._fill, self._status, self._drain = fill, status, drain
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
        guarded = Guard(other_tools(self._fill, self._status), port=port, key=key)
        server = HttpServer(guarded, drain=self._drain)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        self._open = _Open(address=f"{host}:{port}", server=server, serving=serving)

    async def close(self) -> None:
        """Close the port, if there is one."""
        if closing := self._open:
            self._open = None
            closing.server.should_exit = True
            await closing.serving
