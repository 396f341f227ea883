"""Make the README's picture of Neovim at work, from the screen of a real Neovim:

    .venv/bin/python -m tests.editors.picture                       # the embedded model completes
    .venv/bin/python -m tests.editors.picture --engine scripted     # what the author of the file wrote, as a stand-in

It writes editors/neovim/ghost-text.svg. The file shown is one of those of `midfill demo`, with one of its spans left
out. Knows what is shown; how an editor is driven and a screen drawn stands beside this.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib import resources
from pathlib import Path

from .neovim import CLIENT, Neovim, server_command, write_script
from .svg import picture

FILE = "inventory.py"
BEFORE, AFTER = "        for sku, item in self.items.items():\n", "        return sorted(missing"
SIZE = (86, 22)
LOOK = """
vim.o.number, vim.o.scrolloff, vim.o.wrap, vim.o.laststatus = true, 8, false, 2
vim.o.statusline = " %t%=midfill: %{g:midfill_status.state}   %l:%c "
"""


def main() -> int:
    """Returns 1, and writes nothing, if there is no ghost text to be shown."""
    parser = argparse.ArgumentParser(description="Make the picture of Neovim at work.")
    parser.add_argument("--engine", default="auto", help="auto | scripted | scripted:FILE")
    parser.add_argument("--out", type=Path, default=CLIENT / "ghost-text.svg")
    options = parser.parse_args()

    marked = resources.files("lsp_server.commands").joinpath("demo_files", FILE + ".txt").read_text(encoding="utf-8")
    text = marked.replace("⟦", "").replace("⟧", "")
    before, middle = text[: text.index(BEFORE)] + BEFORE, text[text.index(BEFORE) + len(BEFORE) : text.index(AFTER)]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["MIDFILL_RUNTIME_DIR"] = str(home / "run")
        engine = options.engine
        if engine == "scripted":
            engine = write_script(home, {"after": BEFORE + " " * 12, "fill": middle.strip()})
        (home / FILE).write_text(before + text[text.index(AFTER) :], encoding="utf-8")
        with Neovim(home, server_command(engine), settings={"deadlineMs": 20_000}, size=SIZE) as neovim:
            neovim.open(home / FILE)
            neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
            neovim.lua(LOOK)
            neovim.type(f"{before.count(chr(10))}Gzzo")
            neovim.wait_answer()
            ghost = neovim.ghost()
            if not ghost:
                print("The model offers nothing here. Train it on, or take --engine scripted.", file=sys.stderr)
                return 1
            last = ghost.split("\n")[-1]
            neovim.wait(lambda: any(last in row for row in neovim.screen.rows()))
            options.out.write_text(picture(neovim.screen, f"{FILE} - Neovim"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
