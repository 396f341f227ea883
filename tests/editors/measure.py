"""Measure how long ghost text takes from the last key, in a real Neovim with the embedded model:

    .venv/bin/python -m tests.editors.measure                    # both versions
    .venv/bin/python -m tests.editors.measure --neovim 0.11 --warm 40 --cold 0

A key is typed through Neovim's interface; ghost text counts as shown when Neovim has drawn it on the screen. Warm: the
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

from .neovim import VERSIONS, Neovim, executable, server_command

APP = "class A:\n    def __init__(self, value):\n        self.value = value\n\n    def all(self):\n        pass\n"
COLD_SECONDS = 30.0


def measured(neovim: Neovim, round: int, cold: bool) -> float:
    """Types a line that ends with a dot, on a new line below the others. Milliseconds from the dot to ghost text behind
    it on the screen; 0 if the model has answered and offers nothing."""
    neovim.type("<Esc>:$<CR>o")
    neovim.type(f"for value_{round} in self")
    neovim.wait(lambda: any(row.endswith(f"for value_{round} in self") for row in neovim.screen.rows()))
    if not cold:
        neovim.wait(lambda: "pending" not in neovim.requests.values())
    typed = f"for value_{round} in self."
    neovim.type(".")
    started = time.perf_counter()

    def shown() -> bool:
        return any(typed in row and not row.endswith(typed) for row in neovim.screen.rows())

    def silent() -> bool:
        answered = neovim.requests and neovim.requests[max(neovim.requests)] == "complete"
        late = time.perf_counter() - started > (COLD_SECONDS if cold else 0)
        return bool(answered and late and neovim.ghost() is None)

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
            measured(neovim, 0, cold=False)
            report(version, "warm", [measured(neovim, number, cold=False) for number in range(1, warm + 1)])
            times = []
            for number in range(cold):
                asyncio.run(engine.stop())
                state("stopped")
                times.append(measured(neovim, warm + number + 1, cold=True))
                state("ready")
            report(version, "cold", times)
            asyncio.run(engine.stop())


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
    for version in options.neovim or VERSIONS:
        if executable(version) is None:
            print(f"Neovim {version} is not installed: {VERSIONS[version]}", file=sys.stderr)
            return 1
        run(version, options.warm, options.cold)
    return 0


if __name__ == "__main__":
    sys.exit(main())
