"""Neovim as users have it: with the `init.lua` of editors/README.md, in a terminal, in tmux."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .neovim import BESIDE_PYTHON, CLIENT, executable, write_script
from .terminal import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed (apt install tmux)"),
]

README = CLIENT.parent / "README.md"
TELL = """
vim.o.ruler, vim.o.laststatus = false, 2
vim.o.statusline = "%{v:lua.require'midfill'.statusline()}, %L lines"
"""
"""What is accepted looks as the ghost text does, but for the number of lines."""


@pytest.fixture
def neovim_in_tmux(tmp_path: Path, version: str) -> Iterator[Terminal]:
    """With project/app.py of one empty line."""
    (init,) = re.findall(r"## Neovim\n.*?```lua\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    engine = write_script(tmp_path, {"after": "for x in xs:\n    ", "fill": "total += x\n    print(total)"})
    midfill = tmp_path / "bin" / "midfill"
    midfill.parent.mkdir()
    midfill.write_text(f"#!/bin/sh\nexec {BESIDE_PYTHON}/midfill lsp --engine {engine}\n")
    midfill.chmod(0o755)
    (tmp_path / "nvim").mkdir()
    client = init.replace("/path/to/midfill/editors/neovim", str(CLIENT))
    (tmp_path / "nvim" / "init.lua").write_text(client + TELL)
    (tmp_path / "app.py").write_text("\n")
    tmux = ["tmux", "-L", f"midfill-{tmp_path.name}-{os.getpid()}", "-f", os.devnull]
    nvim = f"{executable(version)} -n app.py"
    environment = os.environ | {f"XDG_{name}_HOME": str(tmp_path) for name in ("CONFIG", "DATA", "STATE", "CACHE")}
    environment |= {"PATH": f"{midfill.parent}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    environment.pop("TMUX", None)
    try:
        with Terminal([*tmux, "new-session", nvim], cwd=tmp_path, env=environment, size=(80, 20)) as terminal:
            yield terminal
    finally:
        subprocess.run([*tmux, "kill-server"], capture_output=True, check=False)


def test_ghost_text_in_tmux(neovim_in_tmux: Terminal, tmp_path: Path) -> None:
    terminal = neovim_in_tmux
    terminal.wait_for("midfill: ready")
    terminal.send("ifor x in xs:\r")
    terminal.wait_for("    print(total)")
    assert (tmp_path / "app.py").read_text() == "\n"
    terminal.send("\x1by")  # Alt-y: in front of the first character Tab indents.
    terminal.wait_for(", 3 lines")
    terminal.send("\x1b")
    terminal.wait(lambda: not terminal.shows("-- INSERT --"))
    terminal.send(":wq\r")
    terminal.wait_end()
    assert (tmp_path / "app.py").read_text() == "for x in xs:\n    total += x\n    print(total)\n"
