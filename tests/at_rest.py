"""Waiting for an engine to be done with what it has answered: it tells the answer first. Knows no tests."""

from __future__ import annotations

import asyncio

from diffusion.api import Status
from lsp_server.engine_client import EngineClient


async def at_rest(client: EngineClient) -> Status:
    """How the engine is, as soon as it is not busy."""
    async with asyncio.timeout(60):
        while (status := await client.status()).state == "busy":
            pass
    return status
