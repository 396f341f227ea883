"""Work-done progress while the model loads: the editor's own way of showing that something takes its time.

Knows LSP and the engine's status. A client that cannot show it, or refuses to, is not asked again.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from diffusion.api import Status

if TYPE_CHECKING:
    from lsp_server.server import Server

TITLE = "midfill"


def percent(status: Status) -> int | None:
    """How much is loaded, if that is known."""
    made = status.progress
    return min(100, max(0, 100 * made.done // made.total)) if made and made.total > 0 else None


class LoadingProgress:
    """One progress per load, from the first word of it to the first word of something else."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._news: asyncio.Queue[Status | None] | None = None

    def tell(self, status: Status) -> None:
        """The engine has said how it is."""
        if status.state == "loading":
            window = self._server.client_capabilities.window
            if self._news is None and window and window.work_done_progress:
                self._news = asyncio.Queue()
                self._server.in_background(self._show(self._news))
            if self._news is not None:
                self._news.put_nowait(status)
        elif self._news is not None:
            self._news.put_nowait(None)
            self._news = None

    async def _show(self, news: asyncio.Queue[Status | None]) -> None:
        token, progress = str(uuid.uuid4()), self._server.work_done_progress
        try:
            await progress.create_async(token)
        except JsonRpcException:
            return
        begun = False
        while status := await news.get():
            message, share = status.detail or "loading the model", percent(status)
            if begun:
                report = types.WorkDoneProgressReport(message=message, percentage=share)
                progress.report(token, report)
            else:
                begin = types.WorkDoneProgressBegin(title=TITLE, message=message, percentage=share, cancellable=False)
                progress.begin(token, begin)
                begun = True
        progress.end(token, types.WorkDoneProgressEnd())
        progress.tokens.pop(token, None)  # pygls keeps them for ever
