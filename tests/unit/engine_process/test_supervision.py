"""Engines that are killed, crash again and again, or are stopped by a signal: what clients see, and what comes next."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest
from engine_processes import NewClient, ask, engines_in, events_of, over_both_transports, text_of

from diffusion import crashes
from diffusion.api import EngineError, Failure
from lsp_server.engine_client import EngineClient


async def trace_line(home: Path) -> str:
    return await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)


async def kill(client: EngineClient) -> int:
    pid = (await client.status()).pid
    os.kill(pid, signal.SIGKILL)
    return pid


# --- killed


@over_both_transports
async def test_killed_while_idle(new_client: NewClient) -> None:
    client = new_client()
    assert text_of(await events_of(client, ask("first"))) == "first|"
    dead = await kill(client)
    assert text_of(await events_of(client, ask("next"))) == "next|"
    assert (await client.status()).pid != dead


@over_both_transports
async def test_killed_while_loading(new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    client = new_client()
    lease = client.events()
    assert (await asyncio.wait_for(anext(lease), 60)).state == "loading"
    waiting = asyncio.create_task(events_of(client, ask("x", deadline_ms=60_000)))
    while (await client.status()).requests == 0:
        pass
    await kill(client)
    (end,) = await waiting
    assert isinstance(end, Failure) and end.code == "unavailable" and str(client.paths.log) in end.hint
    with pytest.raises(EngineError):
        async for _ in lease:
            pass
    monkeypatch.delenv("FAKE_LOAD_FIFO")
    assert text_of(await events_of(client, ask("next"))) == "next|"


@over_both_transports
async def test_killed_in_mid_request_then_the_next_works(new_client: NewClient, home: Path) -> None:
    client = new_client()
    task = asyncio.create_task(events_of(client, ask("hang", drafts=True)))
    assert await trace_line(home) == "started 1\n"
    await kill(client)
    end = (await task)[-1]
    assert isinstance(end, Failure) and end.code == "unavailable" and str(client.paths.log) in end.hint
    assert text_of(await events_of(client, ask("next"))) == "next|"


# --- again and again


async def test_after_three_crashes_nobody_loads_it_again_until_somebody_says_so(new_client: NewClient) -> None:
    clients = [new_client() for _ in range(3)]
    for client in clients:
        (end,) = await events_of(client, ask("crash"))
        assert isinstance(end, Failure) and end.code == "unavailable"
    for client in (*clients, new_client()):
        (end,) = await events_of(client, ask("fine"))
        assert isinstance(end, Failure) and "3 times within 5 minutes" in end.message
        assert str(client.paths.log) in end.hint and "midfill engine start" in end.hint
    status = await clients[0].status()
    assert status.state == "errored" and "3 times" in status.detail and str(client.paths.log) in status.detail
    await clients[0].stop()  # as `midfill engine start` does with an engine in this state
    assert text_of(await events_of(clients[1], ask("fine"))) == "fine|"


async def test_an_engine_that_dies_while_loading_tells_of_memory(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    client = new_client("embedded")  # a name that has weights, though the commanded model stands in for them
    for _ in range(3):
        lease = client.events()
        while not (await asyncio.wait_for(anext(lease), 60)).progress:
            pass
        await kill(client)
        with pytest.raises(EngineError, match="ended unexpectedly"):
            async for _ in lease:
                pass
    (end,) = await events_of(client, ask("x"))
    assert isinstance(end, Failure) and "while loading the model, which needs 31 MB of memory" in end.message
    await client.stop()
    assert not client.paths.socket.with_suffix(".loading").exists()


async def test_an_end_in_order_settles_the_crashes_before(new_client: NewClient) -> None:
    client = new_client()
    for _ in range(2):
        await events_of(client, ask("crash"))
    await client.status()
    assert len(crashes.recent(client.paths.socket)) == 2
    await client.stop()
    assert crashes.recent(client.paths.socket) == []


async def test_an_engine_that_never_comes_up_is_not_tried_for_ever(new_client: NewClient, home: Path) -> None:
    program = f"open({str(home / 'starts')!r}, 'a').write('x'); raise SystemExit('no such module')"
    client = new_client(command=("/usr/bin/env", "python3", "-I", "-c", program))
    for _ in range(5):
        (end,) = await events_of(client, ask("x"))
        assert isinstance(end, Failure) and "no such module" in end.message and ".log" in end.hint
    assert (home / "starts").read_text() == "xxx"


# --- the record of crashes


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(crashes.time, "monotonic", lambda: now[0])
    return now


def test_crashes_are_forgotten_after_a_while_and_after_a_restart_of_the_machine(
    tmp_path: Path, clock: list[float]
) -> None:
    path = tmp_path / "engine.sock"
    for second in (1000.0, 1100.0, 1200.0):
        clock[0] = second
        crashes.note(path)
    assert len(crashes.recent(path)) == 3
    clock[0] = 1350.0
    assert crashes.recent(path) == [1100.0, 1200.0]
    clock[0] = 10.0
    assert crashes.recent(path) == []


@pytest.mark.parametrize("content", [b"", b"\xff", b"{}", b'["x", null, true]', b"[[[", b"7"])
def test_a_spoilt_record_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "engine.sock"
    (tmp_path / "engine.crashes").write_bytes(content)
    assert crashes.recent(path) == []
    crashes.note(path)
    assert len(json.loads((tmp_path / "engine.crashes").read_text())) == 1


def test_a_record_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "no such folder" / "engine.sock"
    crashes.note(path)
    crashes.forget(path)
    crashes.hold_back(path, None)


def test_later_starts_wait_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "engine.sock"
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    for _ in range(3):
        crashes.hold_back(path, None)
        crashes.note(path)
    assert waited == [0.0, 0.0, 0.5]
    with pytest.raises(EngineError, match="3 times"):
        crashes.hold_back(path, None)


# --- stopped by a signal


async def test_a_stopped_engine_is_an_error_that_names_its_process(new_client: NewClient, home: Path) -> None:
    client = new_client(patience=0.2)
    assert text_of(await events_of(client, ask("first"))) == "first|"
    (process,) = engines_in(home)
    process.suspend()
    for request in (ask("x", deadline_ms=50), ask("x"), ask("x" * 3_000_000)):
        (end,) = await events_of(client, request)
        assert isinstance(end, Failure) and "does not answer" in end.message
        assert f"kill -9 {process.pid}" in end.hint and str(client.paths.log) in end.hint
    for asked in (client.status(), client.running()):
        with pytest.raises(EngineError, match="does not answer"):
            await asked
    process.resume()
    assert text_of(await events_of(client, ask("next"))) == "next|"


async def test_a_stopped_engine_that_is_killed_makes_room(new_client: NewClient, home: Path) -> None:
    client = new_client(patience=0.2)
    await client.status()
    (process,) = engines_in(home)
    process.suspend()
    task = asyncio.create_task(events_of(client, ask("x", deadline_ms=60_000)))
    process.kill()
    await task
    assert text_of(await events_of(new_client(), ask("next"))) == "next|"


async def test_a_slow_model_is_no_silent_engine(new_client: NewClient, home: Path) -> None:
    client = new_client(patience=0.1)
    task = asyncio.create_task(events_of(client, ask("hang")))
    assert await trace_line(home) == "started 1\n"
    seen = (await client.status()).uptime
    while (await client.status()).uptime < seen + 0.5:
        pass
    assert not task.done()
    task.cancel()
    assert await trace_line(home) == "cancelled 1\n"
