"""uvicorn as the engine uses it: on a socket that is bound already, without its signals, log and patience.

Knows nothing of routes, nor of what is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 20.0
"""How long a client may take from connecting to the end of its first request's head."""

OPEN_FILES = 4096


def allow_many_clients() -> None:
    """Let this process have more connections than the 256 or 1,024 files that systems allow at first."""
    if sys.platform == "win32":  # which has no such limit
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class HttpServer(uvicorn.Server):
    """Set `should_exit` to end it: requests under way have `drain` seconds to finish."""

    def __init__(self, app: ASGIApp, *, drain: float) -> None:
        config = uvicorn.Config(
            app, http=_Impatient, ws="none", lifespan="off", log_config=None, access_log=False,
            timeout_graceful_shutdown=round(drain), server_header=False, proxy_headers=False,
        )  # fmt: skip
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: uvicorn raises them again at the end, before the socket is cleaned up."""
        yield


class _Impatient(H11Protocol):
    """A connection that is given up when no request comes: uvicorn itself waits for the first one for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._patience.cancel()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        if self.cycle is None:
            self.transport.close()
