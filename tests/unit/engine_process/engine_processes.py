"""The fake engine as a command line, requests to it, and the engine processes that a test has started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from diffusion.api import Event, FillRequest, Result
from lsp_server.engine_client import EngineClient

NewClient = Callable[..., EngineClient]

over_both_transports = pytest.mark.parametrize("home", ["unix", "tcp"], indirect=True)

FAKE = (sys.executable, "-I", str(Path(__file__).with_name("fake_engine.py")))


def engines_in(folder: Path) -> list[psutil.Process]:
    """The engine processes whose socket lies below a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and "--socket" in words and str(folder) in " ".join(words):
            found.append(process)
    return found


def ask(prefix: str, suffix: str = "", **more: object) -> FillRequest:
    return FillRequest(id="1", prefix=prefix, suffix=suffix, **more)  # type: ignore[arg-type]


async def events_of(client: EngineClient, request: FillRequest) -> list[Event]:
    async with asyncio.timeout(60):
        return [event async for event in client.fill(request)]


def text_of(events: list[Event]) -> str:
    assert isinstance(events[-1], Result), events
    return events[-1].candidates[0].text
