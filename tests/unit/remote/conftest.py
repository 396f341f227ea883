"""Profiles in a configuration folder of the test's own, local servers, and engines for them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest
from local_server import Handler, LocalServer
from vllm_server import Vllm

from diffusion.remote.engine import RemoteEngine, load

NewEngine = Callable[..., RemoteEngine]
Serve = Callable[..., LocalServer]


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the user's own profiles."""
    monkeypatch.setattr(platformdirs, "user_config_path", lambda *_: tmp_path)
    folder = tmp_path / "profiles"
    folder.mkdir()
    return folder


@pytest.fixture
def serve() -> Iterator[Serve]:
    with contextlib.ExitStack() as stack:

        def start(routes: dict[str, Handler], **more: Any) -> LocalServer:
            return stack.enter_context(LocalServer(routes, **more).running())

        yield start


@pytest.fixture
def new_engine(profiles: Path) -> NewEngine:
    """An engine for a server; `fields` go into [remote]."""

    def make(url: str, backend: str = "openai", **fields: Any) -> RemoteEngine:
        write_profile(profiles, url, backend, **fields)
        return load("team")

    return make


@pytest.fixture
def vllm(serve: Serve, new_engine: NewEngine) -> Any:
    """A server with its model, and an engine for it."""

    def make(model: Vllm, **fields: Any) -> tuple[LocalServer, RemoteEngine]:
        server = serve(model.routes())
        return server, new_engine(server.url, "vllm", **fields)

    return make


def write_profile(folder: Path, url: str, backend: str = "openai", **fields: Any) -> Path:
    values = {"url": url, "timeout": 20.0, "retries": 0, **fields}
    lines = [f"{key} = {toml(value)}" for key, value in values.items()]
    path = folder / "team.toml"
    path.write_text("\n".join(['name = "team"', 'title = "ours"', f'backend = "{backend}"', "[remote]", *lines]))
    return path


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    return (
        str(value).lower() if isinstance(value, bool) else repr(value) if not isinstance(value, str) else f'"{value}"'
    )
