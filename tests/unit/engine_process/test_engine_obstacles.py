"""Engine processes that meet stale files, folders that cannot be used, failing loads, and requests that are wrong."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import filelock
import httpx
import psutil
import pytest
from engine_processes import FAKE, NewClient, ask, engines_in, events_of, text_of

from diffusion.api import EngineError, Failure
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import engine_paths

# --- leftovers and obstacles


async def test_stale_socket_and_lock_are_cleared(new_client: NewClient, home: Path) -> None:
    client = new_client()
    client.paths.socket.parent.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(client.paths.socket))
    listener.close()
    client.paths.lock.write_text("99999")
    assert text_of(await events_of(client, ask("x"))) == "x|"


async def test_an_engine_that_does_not_answer_is_told_from_none(new_client: NewClient, home: Path) -> None:
    client = new_client()
    assert await client.running() is None
    client.paths.socket.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(client.paths.socket))
        listener.listen()
        with pytest.raises(EngineError, match="does not answer") as raised:
            await client.running(patience=0.01)
    assert str(client.paths.log) in raised.value.hint


def test_two_versions_never_meet(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = engine_paths("fake")
    monkeypatch.setattr("lsp_server.engine_paths.PROTOCOL_VERSION", 99)
    theirs = engine_paths("fake")
    assert not {ours.socket, ours.lock, ours.log} & {theirs.socket, theirs.lock, theirs.log}


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


async def test_log_folder_that_cannot_be_written(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "file"))
    assert text_of(await events_of(new_client(), ask("x"))) == "x|"


async def test_a_poisoned_folder_never_runs(new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = home / "workspace"
    for package in ("diffusion", "grammars", "lsp_server", "h11"):
        (workspace / package).mkdir(parents=True)
        (workspace / package / "__init__.py").write_text(f"open({str(home / 'poisoned')!r}, 'w')")
    monkeypatch.chdir(workspace)
    monkeypatch.setenv("PYTHONPATH", str(workspace))
    client = new_client()
    assert text_of(await events_of(client, ask("x"))) == "x|"
    assert psutil.Process((await client.status()).pid).cwd() == str(client.paths.socket.parent)
    assert not (home / "poisoned").exists()


def raw(client: EngineClient) -> httpx.AsyncClient:
    transport = httpx.AsyncHTTPTransport(uds=str(client.paths.socket))
    return httpx.AsyncClient(transport=transport, base_url="http://engine", timeout=60)


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
