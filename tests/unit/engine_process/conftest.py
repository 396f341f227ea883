"""Engine processes with a commanded model, in a runtime folder of the test's own, all ended afterwards."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from engine_processes import FAKE, engines_in

from lsp_server.engine_client import EngineClient


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A runtime folder and a log folder of the test's own; what was started there is killed at the end. Its parameter,
    if it has one, is the transport."""
    runtime = tmp_path / "run"
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(runtime))
    monkeypatch.setenv("MIDFILL_TRANSPORT", getattr(request, "param", "unix"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    os.mkfifo(tmp_path / "trace")
    monkeypatch.setenv("FAKE_TRACE", str(tmp_path / "trace"))
    yield tmp_path
    for process in engines_in(tmp_path):
        process.kill()
        process.wait(20)


@pytest_asyncio.fixture
async def new_client(home: Path) -> AsyncIterator[Callable[..., EngineClient]]:
    clients = []

    def make(profile: str = "fake", **more: object) -> EngineClient:
        client = EngineClient(profile, **{"command": FAKE, **more})  # type: ignore[arg-type]
        clients.append(client)
        return client

    yield make
    for client in clients:
        await client.close()
