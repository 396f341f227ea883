"""The engine process over thousands of requests: none lost, none answered twice, and no memory gone at the end.

A real process with the real server and a tiny random model, told by a profile of the user's own. Two hundred requests
as they are; MIDFILL_LONG_RUN=1 makes it 10,000 with random cancellation, and an hour of typing from five clients, as
fast as it goes, 0.3 three tenths of that.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from safetensors.torch import save_file

from diffusion.api import FillRequest, to_json
from diffusion.profiles import profile_file
from lsp_server.engine_client import EngineClient

from .conftest import TEXTS, Tiny

pytestmark = pytest.mark.slow

LONG = float(os.environ.get("MIDFILL_LONG_RUN", 0))
CLIENTS = 5
REQUESTS = round(10_000 * LONG) or 200
KEYS = round(3_000 * LONG) or 60
"""Per client: 250 a minute for 12 minutes of an hour; in the others its user reads and thinks."""
PAUSE = 0.25
"""Share of the keys after which the user waits for the answer."""


@dataclass
class Counted:
    """What became of the requests, and the engine's memory (bytes) after each tenth of them."""

    finishes: dict[str, int] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)

    def add(self, finish: str) -> None:
        self.finishes[finish] = self.finishes.get(finish, 0) + 1


@pytest_asyncio.fixture
async def engine(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineClient]:
    """An engine process of the tiny model."""
    text = profile_file("embedded").read_text(encoding="utf-8")
    profiles = tmp_path / "config" / "midfill" / "profiles"
    profiles.mkdir(parents=True)
    here = text.replace('"embedded"', '"tiny"').replace('"package:weights"', f'"{tmp_path / "weights"}"')
    here = here.replace("cache_mb = 64", "cache_mb = 4")  # full within the first tenth: growing until then is no leak
    assert "cache_mb = 4 " in here
    (profiles / "tiny.toml").write_text(here, encoding="utf-8")
    weights = tmp_path / "weights"
    weights.mkdir()
    (weights / "tokenizer.json").write_bytes((tiny.profile.weights / "tokenizer.json").read_bytes())
    (weights / "config.json").write_text(tiny.library.config.to_json_string(use_diff=False), encoding="utf-8")
    state = tiny.library.state_dict()
    save_file({name: state[name].contiguous() for name in tiny_names(state)}, weights / "model.safetensors")
    for name in ("XDG_CONFIG_HOME", "MIDFILL_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / ("config" if "CONFIG" in name else name[-5:])))
    client = EngineClient("tiny")
    await asyncio.wait_for(client.wait_ready(), 120)
    yield client
    await client.stop()


def tiny_names(state: dict[str, Any]) -> list[str]:
    """The names of the decoder; the encoder and the head share its weights."""
    return [name for name in state if ".decoder." in name]


async def answer(engine: EngineClient, request: FillRequest, leave_after: int | None = None) -> str:
    """How a request ended, from all that the engine says; or "left" after so many lines."""
    ends: list[dict[str, Any]] = []
    async with contextlib.aclosing(engine._lines("POST", "/v1/fill", to_json(request))) as lines:
        seen = 0
        async for line in lines:
            if seen == leave_after:
                return "left"
            seen += 1
            if line["event"] == "draft":
                assert not ends, "a draft after the end"
            else:
                ends.append(line)
    (end,) = ends
    assert end["event"] == "result", end
    return str(end["finish"])


async def watched(engine: EngineClient, counted: Counted, total: int) -> None:
    """Note the memory after each tenth of the requests."""
    if sum(counted.finishes.values()) >= total * (len(counted.memory) + 1) / 10:
        counted.memory.append((await engine.status()).memory)


def check(counted: Counted, total: int, process: psutil.Process, capfd: pytest.CaptureFixture[str]) -> None:
    with capfd.disabled():
        megabytes = ", ".join(f"{memory / 1e6:.0f}" for memory in counted.memory)
        print(f"\n{total} requests: {counted.finishes}; MB after each tenth: {megabytes}; {process.num_fds()} files")
    assert sum(counted.finishes.values()) == total
    assert process.num_fds() < 40
    if LONG:
        assert max(counted.memory[1:]) <= 1.05 * counted.memory[0]


async def test_random_cancellation(engine: EngineClient, capfd: pytest.CaptureFixture[str]) -> None:
    counted, process = Counted(), psutil.Process((await engine.status()).pid)

    async def ask_on(number: int) -> None:
        chance = random.Random(number)
        for index in range(REQUESTS // CLIENTS):
            request = some_request(chance, f"{number}-{index}", f"client{number}" if number else "")
            leave = chance.choice((None, None, 0, 1, 2, 4))
            task = asyncio.create_task(answer(engine, request, leave))
            if chance.random() < 0.2:
                for _ in range(chance.randrange(40)):  # anywhere on its way
                    await asyncio.sleep(0)
                task.cancel()
            try:
                counted.add(await task)
            except asyncio.CancelledError:
                counted.add("cancelled")
            await watched(engine, counted, REQUESTS)

    await asyncio.gather(*(ask_on(number) for number in range(CLIENTS)))
    assert await answer(engine, replace(some_request(random.Random(0), "last", "last"), deadline_ms=None)) != "left"
    check(counted, REQUESTS, process, capfd)
    assert {"left", "cancelled", "stop"} < set(counted.finishes)


def some_request(chance: random.Random, name: str, client: str) -> FillRequest:
    text = chance.choice(TEXTS)
    cut = chance.randrange(len(text) + 1)
    return FillRequest(
        id=name,
        client=client,
        language="python",
        path=f"{chance.randrange(4)}.py",
        prefix=text[max(0, cut - chance.choice((40, 400, 400, 4000))) : cut],
        suffix=text[cut : cut + 400],
        mode=chance.choice(("line", "line", "line", "block")),
        max_lines=4,
        n=chance.choice((1, 1, 3)),
        steps=2,
        drafts=True,
        deadline_ms=chance.choice((None, 50.0, 5000.0)),
    )


async def test_typing(engine: EngineClient, capfd: pytest.CaptureFixture[str]) -> None:
    counted, process = Counted(), psutil.Process((await engine.status()).pid)

    async def type_on(number: int) -> None:
        chance, pending = random.Random(number), set()
        client, typed = f"client{number}", 0
        while typed < KEYS:
            path, text = chance.choice([*enumerate(TEXTS)])
            start = chance.randrange(len(text))
            for cut in range(start, min(len(text), start + 300, start + KEYS - typed)):
                request = FillRequest(
                    id=str(cut),
                    client=client,
                    language="python",
                    path=f"{path}.py",
                    prefix=text[max(0, start - 600) : cut],
                    suffix=text[start : start + 400],
                    steps=2,
                    deadline_ms=5000.0,
                )
                typed += 1
                task = asyncio.create_task(answer(engine, request))
                pending.add(task)
                if chance.random() < PAUSE:
                    await task
                    await watched(engine, counted, CLIENTS * KEYS)
                else:
                    await asyncio.sleep(0.001)
                for done in [task for task in pending if task.done()]:
                    pending.remove(done)
                    counted.add(await done)
        for task in pending:
            counted.add(await task)

    await asyncio.gather(*(type_on(number) for number in range(CLIENTS)))
    await watched(engine, counted, CLIENTS * KEYS)
    check(counted, CLIENTS * KEYS, process, capfd)
    # A key overtakes another now and then, since each comes on a connection of its own.
    assert counted.finishes["superseded"] <= 1.1 * (1 - PAUSE) * CLIENTS * KEYS
    assert set(counted.finishes) <= {"superseded", "stop", "length", "deadline"}
