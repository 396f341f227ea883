"""`midfill bench`: what a completion costs on this machine, measured on the real processes.

Starts an engine of its own, fills in it, then types into a 2,000-line document through the real server over stdio, with
two more windows open; kills the engine and waits for the next answer; and what a keystroke in a 10,000-line document
costs the server without the model. Knows JSON-RPC framing and the engine
interface; nothing of how either is made.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import psutil

from diffusion.api import FillRequest
from lsp_server.chosen_model import chosen_model
from lsp_server.commands import bench_keystrokes
from lsp_server.commands.server_process import ServerProcess
from lsp_server.commands.session import run_fill
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import RUNTIME_DIR_VARIABLE
from lsp_server.usage import Parser, whole_number

GPU = "diffusion.gpu_bench.command"
"""Loads torch, which nothing else here does."""

LINES = 2_000
WINDOWS = 3
LONG_LINES = 10_000
KEYSTROKES = 300
OTHER_FILES = 4
"""Open beside the long document."""
TYPED = "    result = self.value"
"""What is typed into the document, character by character, each followed by a request."""


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Times in milliseconds (p50, p95; of keystrokes p50, p99, by the clock and of the processor), start-up in seconds,
    memory (resident) in MiB. `border_ms`: what the way to the engine and back adds to a fill; `recovery_s`: from a
    killed engine to the next answer; `windows_mib`: of every window's server, with one engine for all."""

    requests: int
    cold_start_s: float
    fill_ms: tuple[float, float]
    border_ms: tuple[float, float]
    fill_forwards: float
    round_trip_ms: tuple[float, float]
    keystroke_ms: tuple[float, float]
    keystroke_cpu_ms: tuple[float, float]
    initialize_ms: float
    windows_mib: tuple[float, ...]
    engine_mib: float
    recovery_s: float


def main(argv: list[str]) -> int:
    """Measure and print it. Raises UsageError, EngineError."""
    if argv[:1] == ["gpu"]:
        return int(importlib.import_module(GPU).main(argv[1:]))
    if argv[:1] == ["replay"]:
        from lsp_server.commands import bench_replay

        return bench_replay.main(argv[1:])
    parser = Parser(
        prog="midfill bench",
        description="Measure fills in the engine and completions through the language server. An engine is started "
        "for it and ends with it. For figures that mean something, leave the machine alone meanwhile. "
        "`midfill bench replay` types files again and counts what that saves; `midfill bench gpu` measures the 26B "
        "model on a GPU, without its weights.",
    )
    parser.add_argument(
        "--requests", type=whole_number(1, 10_000), default=60, help="of each kind (default: %(default)s)"
    )
    parser.add_argument("--profile", default=chosen_model(), help="model profile (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="midfill-") as folder:
        os.environ[RUNTIME_DIR_VARIABLE] = folder
        keystrokes = _keystrokes(Path(folder))
        figures = asyncio.run(_measure(options.profile, options.requests, keystrokes))
    if options.json:
        print(json.dumps(asdict(figures)))
        return 0
    print(f"cold start of the engine     {figures.cold_start_s:8.1f} s   until the model is ready")
    for name, (p50, p95) in (("warm fill in the engine", figures.fill_ms), ("LSP round trip", figures.round_trip_ms)):
        print(f"{name:<28} {p50:8.0f} ms  p50   {p95:8.0f} ms  p95")
    p50, p95 = figures.border_ms
    print(f"{'to the engine and back':<28} {p50:8.1f} ms  p50   {p95:8.1f} ms  p95")
    (p50, p99), (cpu50, cpu99) = figures.keystroke_ms, figures.keystroke_cpu_ms
    for name, low, high in (("a keystroke in the server", p50, p99), ("  of processor time", cpu50, cpu99)):
        print(f"{name:<28} {low:8.1f} ms  p50   {high:8.1f} ms  p99   (10,000 lines, without the model)")
    print(f"decoder calls per fill       {figures.fill_forwards:8.1f}")
    print(f"initialize                   {figures.initialize_ms:8.0f} ms")
    servers = ", ".join(f"{window:.0f}" for window in figures.windows_mib)
    print(f"memory of {WINDOWS} windows          {servers} MiB servers   {figures.engine_mib:.0f} MiB their one engine")
    print(f"engine killed                {figures.recovery_s:8.1f} s   until the next answer")
    return 0


def _keystrokes(folder: Path) -> bench_keystrokes.Keystrokes:
    text = _document(LONG_LINES)
    others = [path.read_text(encoding="utf-8") for path in _sources()[:OTHER_FILES]]
    typed = (f"    {TYPED}(argument, other)\n" * KEYSTROKES)[:KEYSTROKES]
    return bench_keystrokes.measure(text, bench_keystrokes.body_line(text), others, typed, folder / "script.json")


async def _measure(profile: str, requests: int, keystrokes: bench_keystrokes.Keystrokes) -> Figures:
    engine = EngineClient(profile)
    try:
        begun = time.monotonic()
        await engine.wait_ready()
        cold = time.monotonic() - begun
        text = _document()
        fills, borders, forwards = await _fills(engine, text, requests)
        servers = [await ServerProcess.start() for _ in range(WINDOWS)]
        round_trips, initialize = await _round_trips(servers[0], text, requests)
        for server in servers[1:]:
            await _round_trips(server, text, 1)
        memory = [psutil.Process(server.process.pid).memory_info().rss / 2**20 for server in servers]
        status = await engine.status()
        for server in servers:
            await server.end()
        psutil.Process(status.pid).kill()
        begun = time.monotonic()
        await _fills(engine, text, 0)
        recovery = time.monotonic() - begun
    finally:
        if await engine.running():
            await engine.stop()
    return Figures(
        requests=requests,
        cold_start_s=cold,
        fill_ms=_percentiles(fills),
        border_ms=_percentiles(borders),
        fill_forwards=statistics.mean(forwards),
        round_trip_ms=_percentiles(round_trips),
        keystroke_ms=_percentiles(keystrokes.wall, 0.99),
        keystroke_cpu_ms=_percentiles(keystrokes.cpu, 0.99),
        initialize_ms=initialize,
        windows_mib=tuple(memory),
        engine_mib=status.memory / 2**20,
        recovery_s=recovery,
    )


def _document(count: int = LINES) -> str:
    """So many lines of real Python: the package's own sources, one after the other."""
    lines = [line for path in _sources() for line in path.read_text(encoding="utf-8").split("\n")]
    return "\n".join((lines * (count // len(lines) + 1))[:count]) + "\n"


def _sources() -> list[Path]:
    return sorted(Path(str(resources.files("lsp_server"))).rglob("*.py"))


def _places(text: str, requests: int) -> list[tuple[str, str]]:
    """What stands before and after the cursor, keystroke after keystroke, on a new line in the document's middle."""
    lines = text.split("\n")
    before, after = "\n".join(lines[: LINES // 2]), "\n" + "\n".join(lines[LINES // 2 :])
    return [(f"{before}\n{(TYPED + ' ') * 3}"[: len(before) + 6 + n % 60], after) for n in range(requests)]


async def _fills(engine: EngineClient, text: str, requests: int) -> tuple[list[float], list[float], list[int]]:
    """Times in the engine, times beyond them, decoder calls; after one fill that warms up."""
    times, borders, forwards = [], [], []
    for number, (prefix, suffix) in enumerate([*_places(text, 1), *_places(text, requests)]):
        request = FillRequest(
            id=str(number),
            client="bench",
            language="python",
            path="bench.py",
            prefix=prefix[-8000:],
            suffix=suffix[:4000],
        )
        begun = time.monotonic()
        result = await run_fill(engine, request)
        times.append(result.cost.ms)
        borders.append((time.monotonic() - begun) * 1000 - result.cost.ms)
        forwards.append(result.cost.forwards)
    return times[1:], borders[1:], forwards[1:]


async def _round_trips(server: ServerProcess, text: str, requests: int) -> tuple[list[float], float]:
    uri = "file:///bench.py"
    begun = time.monotonic()
    await server.initialize({"debounceMs": 0, "deadlineMs": 60_000})
    initialize = (time.monotonic() - begun) * 1000
    server.notify(
        "textDocument/didOpen",
        {"textDocument": {"uri": uri, "languageId": "python", "version": 0, "text": text}},
    )
    times = []
    for number, (prefix, suffix) in enumerate([_places(text, 1)[0], *_places(text, requests)]):
        line = prefix.count("\n")
        column = len(prefix) - prefix.rfind("\n") - 1
        server.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": number + 1}, "contentChanges": [{"text": prefix + suffix}]},
        )
        start = time.monotonic()
        await server.request(
            "textDocument/inlineCompletion",
            {
                "textDocument": {"uri": uri},
                "position": {"line": line, "character": column},
                "context": {"triggerKind": 2},
            },
        )
        times.append((time.monotonic() - start) * 1000)
    return times[1:], initialize


def _percentiles(times: list[float], high: float = 0.95) -> tuple[float, float]:
    """The median and a higher one."""
    ordered = sorted(times)
    return statistics.median(ordered), ordered[min(len(ordered) - 1, round(high * (len(ordered) - 1)))]
