"""Neovims of both versions for the tests, all of them ended afterwards. Also for those in tests/e2e.

Most tests share one Neovim of each version and its server, which start anew between tests: that is quicker.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .neovim import SETUP, VERSIONS, Neovim, executable, server_command, write_script

NewNeovim = Callable[..., Neovim]


@pytest.fixture(scope="package")
def shared_neovim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Neovim]]:
    """`shared_neovim(version, entries, settings)`: the Neovim of this version, as good as new."""
    running: dict[str, Neovim] = {}
    home = tmp_path_factory.mktemp("neovim")

    def get(version: str, entries: tuple[dict[str, object], ...], settings: dict[str, Any]) -> Neovim:
        folder = home / version
        folder.mkdir(exist_ok=True)
        engine = write_script(folder, *entries)
        neovim = running.get(version)
        if neovim is not None and neovim.is_usable():
            neovim.start_anew(settings)
            return neovim
        if neovim is not None:
            neovim.kill()
        running[version] = Neovim(folder, server_command(engine), settings=settings, version=version)
        return running[version]

    yield get
    for neovim in running.values():
        neovim.kill()


@pytest.fixture(params=list(VERSIONS))
def version(request: pytest.FixtureRequest) -> str:
    """The version of Neovim that the test is run with."""
    version = str(request.param)
    if executable(version) is None:
        pytest.skip(f"Neovim {version} is not installed: the package {VERSIONS[version]} is part of midfill[dev]")
    return version


@pytest.fixture
def new_neovim(tmp_path: Path, version: str, shared_neovim: Callable[..., Neovim]) -> Iterator[NewNeovim]:
    """`new_neovim(*entries, text=...)`: a Neovim that edits project/app.py with this text. The entries are the script
    that it completes from; `engine` names another engine; `settings` are midfill's; `own`: it is a process of its own,
    for this test alone, as it is with another engine or `setup`, the Lua that sets midfill up."""
    with contextlib.ExitStack() as stack:

        def make(
            *entries: dict[str, object],
            text: str | bytes,
            engine: str = "",
            settings: dict[str, Any] | None = None,
            own: bool = False,
            setup: str = SETUP,
        ) -> Neovim:
            path = tmp_path / "project" / "app.py"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            if engine or own or setup != SETUP:
                command = server_command(engine or write_script(tmp_path, *entries))
                neovim = Neovim(tmp_path, command, settings=settings, version=version, setup=setup)
                stack.enter_context(neovim)
            else:
                neovim = shared_neovim(version, entries, settings or {})
            neovim.open(path)
            return neovim

        yield make
