"""Real engine processes and real sockets: starting, answering, cancelling, ending, and every way in which it fails."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import filelock
import httpx
import psutil
import pytest
from engine_processes import FAKE, engines_in

from diffusion.api import Draft, EngineError, Event, Failure, FillRequest, Result, Status
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import engine_paths

NewClient = Callable[..., EngineClient]


def ask(prefix: str, suffix: str = "", **more: object) -> FillRequest:
    return FillRequest(id="1", prefix=prefix, suffix=suffix, **more)  # type: ignore[arg-type]


async def events_of(client: EngineClient, request: FillRequest) -> list[Event]:
    async with asyncio.timeout(60):
        return [event async for event in client.fill(request)]


def text_of(events: list[Event]) -> str:
    assert isinstance(events[-1], Result), events
    return events[-1].candidates[0].text


async def trace_line(home: Path) -> str:
    return await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)


def raw(client: EngineClient) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(client.paths.socket))
    return httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=60)


# --- answering


async def test_a_fill_starts_the_engine_and_streams(new_client: NewClient, home: Path) -> None:
    client = new_client()
    events = await events_of(client, ask("drafts 3", "é\u2028\x85", drafts=True))
    assert [type(event) for event in events] == [Draft, Draft, Draft, Result]
    assert text_of(events) == "drafts 3|é\u2028\x85"
    status = await client.status()
    assert (status.state, status.model, status.device, status.requests) == ("ready", "fake", "cpu", 1)
    assert status.pid and status.memory > 1_000_000 and status.version and client.paths.log.exists()
    assert status.log == str(client.paths.log)
    assert client.paths.socket.stat().st_mode & 0o777 == 0o600
    assert client.paths.socket.parent.stat().st_mode & 0o777 == 0o700


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


async def stop_after_first(client: EngineClient):  # type: ignore[no-untyped-def]
    async for status in client.events():
        if status.state == "ready":
            await client.stop()
        yield status


async def test_idle_engine_ends_only_when_the_lease_is_given_up(new_client: NewClient, home: Path) -> None:
    client = new_client(idle=0.3)
    lease = client.events()
    await asyncio.wait_for(anext(lease), 60)
    process = psutil.Process((await client.status()).pid)
    with pytest.raises(psutil.TimeoutExpired):
        await asyncio.to_thread(process.wait, 1.0)
    await lease.aclose()
    await asyncio.to_thread(process.wait, 60)
    assert not client.paths.socket.exists()
    assert "stopping: idle" in client.paths.log.read_text()
    assert text_of(await events_of(client, ask("again"))) == "again|"


async def test_killed_in_mid_request_then_the_next_works(new_client: NewClient, home: Path) -> None:
    client = new_client()
    task = asyncio.create_task(events_of(client, ask("hang", drafts=True)))
    assert await trace_line(home) == "started 1\n"
    os.kill((await client.status()).pid, signal.SIGKILL)
    end = (await task)[-1]
    assert isinstance(end, Failure) and end.code == "unavailable" and str(client.paths.log) in end.hint
    assert text_of(await events_of(client, ask("next"))) == "next|"


async def test_after_three_crashes_it_gives_up_with_the_logs_path(new_client: NewClient) -> None:
    client = new_client()
    for _ in range(3):
        (end,) = await events_of(client, ask("crash"))
        assert isinstance(end, Failure) and end.code == "unavailable"
    (end,) = await events_of(client, ask("fine"))
    assert isinstance(end, Failure) and "3 times within 5 minutes" in end.message and ".log" in end.hint
    assert text_of(await events_of(new_client(), ask("another client"))) == "another client|"


async def test_sigterm_ends_in_order(new_client: NewClient, home: Path) -> None:
    client = new_client()
    await events_of(client, ask("x"))
    (process,) = engines_in(home)
    process.terminate()
    await asyncio.to_thread(process.wait, 60)
    assert not client.paths.socket.exists()


# --- leftovers and obstacles


async def test_stale_socket_and_lock_are_cleared(new_client: NewClient, home: Path) -> None:
    client = new_client()
    client.paths.socket.parent.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(client.paths.socket))
    listener.close()
    client.paths.lock.write_text("99999")
    assert text_of(await events_of(client, ask("x"))) == "x|"


def test_a_second_process_for_the_socket_ends_quietly(home: Path) -> None:
    paths = engine_paths("fake")
    paths.socket.parent.mkdir(mode=0o700)
    with filelock.FileLock(paths.lock):
        command = [*FAKE, "--socket", str(paths.socket), "--profile", "fake"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not paths.socket.exists()


async def test_runtime_folder_that_is_a_file_or_open_to_others(new_client: NewClient, home: Path) -> None:
    (home / "run").write_text("")
    (end,) = await events_of(new_client(), ask("x"))
    assert isinstance(end, Failure) and str(home / "run") in end.message and "MIDFILL_RUNTIME_DIR" in end.hint
    (home / "run").unlink()
    (home / "run").mkdir()
    (home / "run").chmod(0o777)
    (end,) = await events_of(new_client(), ask("x"))
    assert isinstance(end, Failure) and "not a private folder" in end.message
    assert engines_in(home) == []


async def test_runtime_folder_that_cannot_be_made(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(home / "file" / "run"))
    (end,) = await events_of(new_client(), ask("x"))
    assert isinstance(end, Failure) and end.code == "unavailable" and "MIDFILL_RUNTIME_DIR" in end.hint


async def test_a_path_too_long_for_a_socket_is_replaced(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(home / ("long" * 30)))
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setattr(tempfile, "tempdir", short)
        client = new_client()
        assert client.paths.socket.is_relative_to(short)
        assert text_of(await events_of(client, ask("x"))) == "x|"
        await client.stop()
        monkeypatch.setattr(tempfile, "tempdir", str(home / ("long" * 30)))
        (end,) = await events_of(new_client(), ask("x"))
    assert isinstance(end, Failure) and "too long" in end.message and "MIDFILL_RUNTIME_DIR" in end.hint


async def test_a_child_that_dies_at_once_is_explained(new_client: NewClient) -> None:
    code = "import sys; sys.exit('the reason it died')"
    client = new_client(command=(sys.executable, "-I", "-c", code))
    (end,) = await events_of(client, ask("x"))
    assert isinstance(end, Failure) and "the reason it died" in end.message and str(client.paths.log) in end.hint
    (end,) = await events_of(new_client(command=("/does/not/exist",)), ask("x"))
    assert isinstance(end, Failure) and "/does/not/exist" in end.message


async def test_a_model_that_cannot_be_loaded(new_client: NewClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LOAD_ERROR", "the weights are truncated")
    client = new_client()
    (end,) = await events_of(client, ask("x"))
    assert end == Failure(code="model", message="the weights are truncated", hint="run midfill doctor")
    with pytest.raises(EngineError, match="truncated"):
        await client.wait_ready()
    status = await client.status()
    assert status.state == "errored" and "truncated" in status.detail and "midfill doctor" in status.detail


async def test_log_folder_that_cannot_be_written(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    assert text_of(await events_of(new_client(), ask("x"))) == "x|"


async def test_a_poisoned_folder_never_runs(new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = home / "workspace"
    for package in ("diffusion", "grammars", "lsp_server", "httpx"):
        (workspace / package).mkdir(parents=True)
        (workspace / package / "__init__.py").write_text(f"open({str(home / 'poisoned')!r}, 'w')")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    client = new_client()
    assert text_of(await events_of(client, ask("x"))) == "x|"
    assert psutil.Process((await client.status()).pid).cwd() == str(client.paths.socket.parent)
    assert not (home / "poisoned").exists()


# --- bad requests


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"id": "1", "prefix": "' + b"x" * 5_000_000 + b'"}', 413, "at most"),
        (b"\xff\xfe\x00garbage", 400, "JSON"),
        (b"[" * 100_000, 400, "JSON"),
        (b"{}", 400, "request.id"),
        (b'{"id": "1", "prefix": "\\ud800", "suffix": ""}', 400, "surrogates"),
        (b'{"id": "1", "prefix": "", "suffix": "", "n": 99}', 400, "n must lie"),
        (b"", 400, "JSON"),
    ],
)
async def test_bad_bodies_are_refused_with_a_reason(new_client: NewClient, body: bytes, status: int, said: str) -> None:
    client = new_client()
    await client.status()
    async with raw(client) as http:
        answer = await http.post("/v1/fill", content=body)
        assert answer.status_code == status
        assert answer.json()["event"] == "error" and said in answer.json()["message"]
        assert (await http.get("/nowhere")).status_code == 404
        assert (await http.get("/v1/fill")).status_code == 405
        assert (await http.get("/health")).json()["state"] == "ready"
    with pytest.raises(EngineError, match="no such route"):
        await client._one("GET", "/nowhere")


async def test_bytes_that_are_no_http_and_a_silent_client(new_client: NewClient) -> None:
    client = new_client()
    await client.status()
    _, silent = await asyncio.open_unix_connection(str(client.paths.socket))
    reader, writer = await asyncio.open_unix_connection(str(client.paths.socket))
    writer.write(bytes(range(256)) * 100)
    assert (await asyncio.wait_for(reader.read(), 60)).startswith(b"HTTP/1.1 400")
    assert text_of(await events_of(client, ask("x"))) == "x|"
    for stream in (silent, writer):
        stream.close()


async def test_a_fault_of_the_model_is_told_without_its_code(new_client: NewClient) -> None:
    client = new_client()
    (end,) = await events_of(client, ask("raise", "password = 1"))
    assert isinstance(end, Failure) and end.code == "internal" and "ValueError" in end.message
    log = client.paths.log.read_text()
    assert "ValueError" in log and "fake_engine.py" in log and "password" not in log
    assert text_of(await events_of(client, ask("next"))) == "next|"
