"""Measure how long ghost text takes from the last key, in a real Neovim with the embedded model:

    .venv/bin/python -m tests.editors.measure                    # both versions
    .venv/bin/python -m tests.editors.measure --neovim 0.11 --warm 40 --cold 0

Keys are typed through Neovim's interface; ghost text counts as shown when Neovim has drawn it on the screen. Warm: the
engine runs, and has answered once. Cold: it does not run; the key has to start it and to wait for its model. Places
where the model offers nothing are counted as silent. Everything runs in a folder of its own, with its own engine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from lsp_server.engine_client import EngineClient

from . import neovim as driver
from .neovim import VERSIONS, Neovim, executable, server_command

METHOD = "    def get_{0}(self):\n        return self.{0}\n\n"
APP = "class A:\n" + METHOD.format("name") + METHOD.format("size").rstrip() + "\n"
WORDS = ("color", "width", "height", "title", "value", "owner", "label", "price", "level", "count", "index", "state")
"""One after the other makes a method, and then again."""
WHY = "return vim.lsp.get_clients()[1]:request_sync('midfill/why', vim.empty_dict()).result"


def measured(neovim: Neovim, number: int) -> float:
    """Types a method below the others, up to a dot. Milliseconds from the dot to ghost text behind it on the
    screen; 0 if the model has answered and offers nothing."""
    head = f"    def get_{WORDS[number % len(WORDS)]}(self):"
    neovim.type("<Esc>:$<CR>")
    # In one go: what is offered on the way is not there before the last key.
    neovim.type(f"o<CR><C-u>{head}<CR>return self.")
    started = time.perf_counter()

    def shown() -> bool:
        rows, (row, _) = neovim.screen.rows(), neovim.screen.cursor
        return rows[row - 1] == head and "return self." in rows[row] and not rows[row].endswith(".")

    def silent() -> bool:
        if not neovim.requests or neovim.requests[max(neovim.requests)] != "complete":
            return False
        last = neovim.lua(WHY)["decisions"][0]
        return bool(last["outcome"] == "nothing" and last["line"] == len(neovim.lines()))

    neovim.wait(lambda: shown() or silent())
    return (time.perf_counter() - started) * 1000 if shown() else 0.0


def run(version: str, warm: int, cold: int) -> None:
    """Measure with one version of Neovim, and print."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["MIDFILL_RUNTIME_DIR"] = str(home / "run")
        engine = EngineClient(start=False)
        (home / "app.py").write_text(APP)
        with Neovim(home, server_command(), settings={"minConfidence": 0}, version=version) as neovim:
            neovim.open(home / "app.py")

            def state(*wanted: str) -> None:
                neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") in wanted)

            state("ready")
            measured(neovim, 0)
            report(version, "warm", [measured(neovim, number) for number in range(1, warm + 1)])
            times = []
            for number in range(cold):
                asyncio.run(engine.stop())
                state("stopped")
                times.append(measured(neovim, warm + number + 1))
                state("ready")
            report(version, "cold", times)
            asyncio.run(engine.stop())
            neovim.quit()


def report(version: str, name: str, times: list[float]) -> None:
    shown = sorted(time for time in times if time)
    if shown:
        print(
            f"Neovim {version}, {name}: last key to ghost text {statistics.median(shown):.0f} ms in the median, from "
            f"{shown[0]:.0f} to {shown[-1]:.0f} ms; {len(shown)} shown, {len(times) - len(shown)} silent; load "
            f"{os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main() -> int:
    """Returns 1 if that Neovim is not installed."""
    parser = argparse.ArgumentParser(description="Measure how long ghost text takes from the last key.")
    parser.add_argument("--neovim", choices=VERSIONS, action="append", help="only this version")
    parser.add_argument("--warm", type=int, default=30, help="rounds with the engine running (default: 30)")
    parser.add_argument("--cold", type=int, default=10, help="rounds without (default: 10)")
    options = parser.parse_args()
    driver.SAFETY = 120  # Loading the model beside other work takes its time.
    for version in options.neovim or VERSIONS:
        if executable(version) is None:
            print(f"Neovim {version} is not installed: {VERSIONS[version]}", file=sys.stderr)
            return 1
        run(version, options.warm, options.cold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
