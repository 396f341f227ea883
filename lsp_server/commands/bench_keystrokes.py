"""What a keystroke costs the language server, the model not counted: a server in this process, a scripted engine.

Knows messages as they come off the wire, and the server; nothing of how a completion is made.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lsp_server.server import Server

ANSWER = [{"after": "", "fill": "_never_typed(argument, another)"}]
"""What the engine says at once, to whatever it is asked; nobody types it, so nothing comes from the cache."""
WARM_UP = 5

URI = "file:///bench/document.py"


@dataclass(frozen=True, kw_only=True)
class Keystrokes:
    """Milliseconds for a change and the completion after it, in order: by the clock, and of the processor."""

    wall: list[float]
    cpu: list[float]


class _Wire:
    """Takes what the server sends and wakes up whoever waits for an answer."""

    def __init__(self) -> None:
        self.answers: dict[int, asyncio.Future[Any]] = {}

    def write(self, data: bytes) -> None:
        message = json.loads(data.split(b"\r\n\r\n", 1)[1])
        if "method" not in message and (waiting := self.answers.pop(message["id"], None)):
            waiting.set_result(message)

    def close(self) -> None:
        return None


def measure(text: str, line: int, others: list[str], typed: str, script: Path) -> Keystrokes:
    """Type `typed` before line `line` (from 0) of `text`, a Python document, with `others` open too. Writes the
    engine's answer to the file `script`."""
    script.write_text(json.dumps(ANSWER), encoding="utf-8")
    return asyncio.run(_measure(Server(f"scripted:{script}"), text, line, others, typed))


def body_line(text: str) -> int:
    """The first line in the second half of a Python text before which a function has just returned."""
    lines = text.split("\n")
    half = len(lines) // 2
    return next(number + 1 for number in range(half, len(lines)) if lines[number].startswith("    return "))


async def _measure(server: Server, text: str, line: int, others: list[str], typed: str) -> Keystrokes:
    wire = _Wire()
    server.protocol.set_writer(wire)

    def send(method: str, params: Any, number: int | None = None) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            wire.answers[number] = answer
            message["id"] = number
        bodies.append(json.dumps(message).encode())
        return answer

    def flush() -> None:
        for body in bodies:
            server.protocol.handle_body(body)
        bodies.clear()

    bodies: list[bytes] = []
    options = {"debounceMs": 0, "contextSources": ["imports", "signatures", "files", "edits", "lines"]}
    ready = send(
        "initialize", {"processId": None, "rootUri": None, "capabilities": {}, "initializationOptions": options}, 0
    )
    for number, other in enumerate((*others, text)):
        uri = URI if number == len(others) else f"file:///bench/other{number}.py"
        item = {"uri": uri, "languageId": "python", "version": 0, "text": other}
        send("textDocument/didOpen", {"textDocument": item})
    flush()
    await ready
    column = 0
    wall, cpu = [], []
    for number, char in enumerate(typed, start=1):
        place = {"line": line, "character": column}
        change = {"range": {"start": place, "end": place}, "text": char}
        send("textDocument/didChange", {"textDocument": {"uri": URI, "version": number}, "contentChanges": [change]})
        line, column = (line + 1, 0) if char == "\n" else (line, column + 1)
        asked = {"textDocument": {"uri": URI}, "position": {"line": line, "character": column}}
        answer = send("textDocument/inlineCompletion", asked | {"context": {"triggerKind": 2}}, number)
        clock, processor = time.perf_counter(), time.process_time()
        flush()
        await answer
        wall.append((time.perf_counter() - clock) * 1000)
        cpu.append((time.process_time() - processor) * 1000)
    return Keystrokes(wall=wall[WARM_UP:], cpu=cpu[WARM_UP:])
