"""Real engine processes over both transports: starting, answering, cancelling, ending."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import random
from pathlib import Path

import psutil
import pytest
from engine_processes import NewClient, ask, engines_in, events_of, over_both_transports, text_of

from diffusion.api import Draft, EditRequest, EngineError, Failure, Result, Status
from lsp_server.engine_client import EngineClient
from tests.at_rest import at_rest

pytestmark = over_both_transports


async def trace_line(home: Path) -> str:
    return await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)


# --- answering


async def test_a_fill_starts_the_engine_and_streams(new_client: NewClient, home: Path) -> None:
    client = new_client()
    events = await events_of(client, ask("drafts 3", "é\u2028\x85", drafts=True))
    assert [type(event) for event in events] == [Draft, Draft, Draft, Result]
    assert text_of(events) == "drafts 3|é\u2028\x85"
    status = await at_rest(client)
    assert (status.state, status.model, status.device, status.requests) == ("ready", "fake", "cpu", 1)
    assert status.pid and status.memory > 1_000_000 and status.version and client.paths.log.exists()
    assert status.log == str(client.paths.log)
    assert client.paths.socket.stat().st_mode & 0o777 == 0o600
    assert client.paths.socket.parent.stat().st_mode & 0o777 == 0o700
    listening = [c.laddr for c in psutil.Process(status.pid).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert [host for host, _ in listening] == (["127.0.0.1"] if client.paths.socket.suffix == ".tcp" else [])


async def test_edits_are_answered_like_fills(new_client: NewClient, home: Path) -> None:
    client = new_client()
    request = EditRequest(id="1", before="a", selected="b", after="c", instruction="drafts 2", drafts=True)
    events = [event async for event in client.edit(request)]
    assert [type(event) for event in events] == [Draft, Draft, Result] and text_of(events) == "drafts 2|b"
    hanging = client.edit(dataclasses.replace(request, instruction="hang"))
    first = asyncio.ensure_future(anext(hanging))
    assert await trace_line(home) == "started 1\n"
    await asyncio.wait_for(first, 60)
    await hanging.aclose()
    assert await trace_line(home) == "cancelled 1\n"
    for wrong, said in (({"selected": "\ud800"}, "surrogates"), ({"path": 7}, "path must be str")):
        (end,) = [event async for event in client.edit(dataclasses.replace(request, **wrong))]  # type: ignore[arg-type]
        assert isinstance(end, Failure) and end.code == "bad_request" and said in end.message


async def test_two_starts_at_once_give_one_engine(new_client: NewClient, home: Path) -> None:
    clients = [new_client() for _ in range(3)]
    answers = await asyncio.gather(*(events_of(client, ask(f"echo {i}")) for i, client in enumerate(clients)))
    assert [text_of(events) for events in answers] == ["echo 0|", "echo 1|", "echo 2|"]
    assert len({(await client.status()).pid for client in clients}) == 1
    winner = (await clients[0].status()).pid
    losers = [process for process in engines_in(home) if process.pid != winner]
    assert psutil.wait_procs(losers, timeout=60)[1] == []
    assert [process.pid for process in engines_in(home)] == [winner]


async def test_closing_the_stream_cancels_the_model(new_client: NewClient, home: Path) -> None:
    client = new_client()
    stream = client.fill(ask("hang", drafts=True))
    first = asyncio.ensure_future(anext(stream))
    assert await trace_line(home) == "started 1\n"
    await asyncio.wait_for(first, 60)
    await stream.aclose()
    assert await trace_line(home) == "cancelled 1\n"
    assert text_of(await events_of(client, ask("next"))) == "next|"


async def test_a_client_that_waits_without_drafts_cancels_too(new_client: NewClient, home: Path) -> None:
    client = new_client()
    task = asyncio.create_task(events_of(client, ask("hang")))
    assert await trace_line(home) == "started 1\n"
    task.cancel()
    assert await trace_line(home) == "cancelled 1\n"


async def test_statuses_are_pushed_and_loading_is_answered(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    client = new_client()
    seen: list[Status] = []
    loading = asyncio.Event()

    def on_status(status: Status) -> None:
        seen.append(status)
        if status.progress:
            loading.set()

    ready = asyncio.create_task(client.wait_ready(on_status))
    await asyncio.wait_for(loading.wait(), 60)
    (hasty,) = await events_of(client, ask("x", deadline_ms=10))
    assert isinstance(hasty, Failure) and hasty.code == "loading"
    patient = asyncio.create_task(events_of(client, ask("patient", deadline_ms=60_000)))
    (home / "gate").write_text("")
    assert (await asyncio.wait_for(ready, 60)).state in ("ready", "busy")
    assert seen[0].state == "loading" and seen[0].clients == 1
    assert text_of(await patient) == "patient|"


@pytest.mark.slow
async def test_random_cancellation_loses_no_answer_and_leaves_nothing_behind(new_client: NewClient) -> None:
    client = new_client()
    await client.wait_ready()
    chance = random.Random(0)

    async def type_on(name: str) -> None:
        for _ in range(80):
            task = asyncio.create_task(events_of(client, ask("drafts 20", client=name, drafts=True)))
            if chance.random() < 0.5:
                await asyncio.sleep(chance.random() / 100)  # anywhere in the life of the request
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                assert [isinstance(event, Result) for event in await task] == [False] * 20 + [True]

    async with asyncio.timeout(120):
        await asyncio.gather(*(type_on(name) for name in "abcde"))
        assert text_of(await events_of(client, ask("next"))) == "next|"
        while (status := await client.status()).state != "ready":
            pass
    assert psutil.Process(status.pid).num_fds() < 30


# --- ending


async def test_stop_ends_the_process_and_its_socket(new_client: NewClient, home: Path) -> None:
    client = new_client()
    statuses = [status async for status in stop_after_first(client)]
    assert statuses[-1].state == "stopped"
    for process in engines_in(home):
        process.wait(60)
    assert not client.paths.socket.exists()
    with pytest.raises(EngineError, match="no engine is running"):
        await new_client(start=False).status()
    assert text_of(await events_of(client, ask("again"))) == "again|"


async def test_stop_lets_the_running_request_finish(new_client: NewClient, home: Path) -> None:
    os.mkfifo(home / "gate")
    client = new_client()
    running = asyncio.create_task(events_of(client, ask(f"gate {home / 'gate'}")))
    assert await trace_line(home) == "started 1\n"
    lease = client.events()
    assert (await asyncio.wait_for(anext(lease), 60)).state == "busy"
    stopping = asyncio.create_task(client.stop())
    while (await asyncio.wait_for(anext(lease), 60)).state != "stopped":
        pass
    assert not running.done() and not stopping.done()
    await asyncio.to_thread((home / "gate").write_text, "")
    assert text_of(await running).startswith("gate")
    await asyncio.wait_for(stopping, 60)
    await lease.aclose()
    assert engines_in(home) == []


async def test_stop_does_not_wait_for_a_model_that_loads(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))  # which nobody opens
    client = new_client()
    lease = client.events()
    while not (await asyncio.wait_for(anext(lease), 60)).progress:
        pass
    waiting = asyncio.create_task(events_of(client, ask("x")))
    while (await client.status()).requests == 0:
        pass
    await asyncio.wait_for(client.stop(), 60)
    (end,) = await waiting
    assert isinstance(end, Failure) and end.code == "unavailable" and "next request" in end.hint
    await lease.aclose()
    assert engines_in(home) == [] and not client.paths.socket.exists()


async def stop_after_first(client: EngineClient):  # type: ignore[no-untyped-def]
    async for status in client.events():
        if status.state == "ready":
            await client.stop()
        yield status


@pytest.mark.slow
async def test_idle_engine_ends_only_when_the_lease_is_given_up(new_client: NewClient, home: Path) -> None:
    client = new_client(idle=1)
    lease = client.events()
    await asyncio.wait_for(anext(lease), 60)
    process = psutil.Process((await client.status()).pid)
    with pytest.raises(psutil.TimeoutExpired):
        await asyncio.to_thread(process.wait, 1.5)
    await lease.aclose()
    await asyncio.to_thread(process.wait, 60)
    assert not client.paths.socket.exists()
    assert "stopping: idle" in client.paths.log.read_text()
    assert text_of(await events_of(client, ask("again"))) == "again|"


async def test_the_idle_time_is_told_by_leases_and_can_be_changed(new_client: NewClient, home: Path) -> None:
    client = new_client(idle=700)
    assert (await client.status()).idle == 700
    lease = new_client(idle=0).events()
    assert (await asyncio.wait_for(anext(lease), 60)).idle == 0
    await client.set_idle(800)
    await new_client().wait_ready()  # which has no wish
    assert (await client.status()).idle == 800
    for wrong in ("-1", "nan", "inf", "x", "1e9"):
        with pytest.raises(EngineError, match="idle must be"):
            await client._one("GET", f"/v1/events?idle={wrong}")
    assert (await client.status()).idle == 800
    await lease.aclose()
    await client.stop()
    await client.set_idle(900)
    assert engines_in(home) == []  # which starts none
    assert (await client.status()).idle == 900


async def test_sigterm_ends_in_order(new_client: NewClient, home: Path) -> None:
    client = new_client()
    await events_of(client, ask("x"))
    (process,) = engines_in(home)
    process.terminate()
    await asyncio.to_thread(process.wait, 60)
    assert not client.paths.socket.exists()
