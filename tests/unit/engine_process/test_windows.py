"""Real language servers, as editors start them, around one engine process: what an editor sees when something dies.

After each fault the documents are untouched, and the next request works or a sentence says what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from engine_processes import FAKE, NewClient, engines_in, over_both_transports

from tests.protocol.client import Client, result_of, within

PATIENT = {"debounceMs": 0, "deadlineMs": 60_000}
SERVER = (
    "import sys, os, ctypes; from lsp_server import engine_client, engine_paths, server\n"
    f"engine_client.EngineClient.__init__.__kwdefaults__['command'] = {FAKE!r}\n"
    "if sys.argv[1:] == ['99']: engine_paths.PROTOCOL_VERSION = 99\n"
    # Root may write everywhere, unless a child of it starts without CAP_DAC_OVERRIDE (PR_CAPBSET_DROP).
    "if sys.argv[1:] == ['obey'] and os.getuid() == 0: ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)\n"
    "sys.exit(server.main([]))"
)


@contextlib.asynccontextmanager
async def window(*arguments: str, editor: int | None = None, **settings: Any) -> AsyncIterator[Client]:
    """A language server with an open document, "say 42"."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-c", SERVER, *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=1 << 26,
    )  # fmt: skip
    client = Client(process)
    try:
        await client.initialize(processId=editor, initializationOptions=PATIENT | settings)
        client.open("say 42")
        yield client
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await within(client._reader)


URI = "file:///project/a.py"


async def offered(client: Client, column: int = 6) -> list[str]:
    return [item["insertText"] for item in await client.inline(URI, 0, column, explicit=True)]


async def state(client: Client, wanted: str) -> dict[str, Any]:
    found: dict[str, Any] = await client.notification("midfill/status", lambda status: status["state"] == wanted)
    return found


async def untouched(client: Client, before: str) -> None:
    """The server's text is what the editor has, and the editor was not asked to change anything. Ends with "say 7"."""
    client.change(URI, 100, ((0, len(before) - 1), (0, len(before)), ""), ((0, 0), (0, len(before) - 1), "say 7"))
    assert await offered(client, 5) == ["7"]
    assert "workspace/applyEdit" not in [message["method"] for message in client.requests]


async def trace_line(home: Path) -> str:
    return await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)


async def gone(process: psutil.Process) -> None:
    await asyncio.to_thread(process.wait, 60)


def engine_of(home: Path) -> psutil.Process:
    (process,) = engines_in(home)
    return process


# --- windows


@over_both_transports
async def test_three_windows_that_start_at_once_share_one_engine(home: Path, new_client: NewClient) -> None:
    async with window() as first, window() as second, window() as third:
        windows = (first, second, third)
        assert await asyncio.gather(*map(offered, windows)) == [["42"]] * 3
        status = await new_client("embedded").status()
        assert (status.clients, status.requests) == (3, 3)
        others = [process for process in engines_in(home) if process.pid != status.pid]
        psutil.wait_procs(others, timeout=60)  # those that came second and are about to end
        assert engine_of(home).pid == status.pid


async def test_windows_of_two_versions_have_an_engine_each(home: Path) -> None:
    async with window() as ours, window("99") as theirs:
        assert await offered(ours) == ["42"] and await offered(theirs) == ["42"]
        assert len(engines_in(home)) == 2
        for process in engines_in(home):
            process.kill()
        assert await asyncio.gather(offered(ours), offered(theirs)) == [["42"]] * 2


# --- the editor dies


async def test_a_killed_editor_takes_its_server_along_and_the_last_one_the_engine(home: Path) -> None:
    editor = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", "input()", stdin=asyncio.subprocess.PIPE)
    settings = {"engineIdleMinutes": 0.005}
    async with window(editor=editor.pid, **settings) as killed, window(**settings) as other:
        assert await offered(killed) == await offered(other) == ["42"]
        engine = engine_of(home)
        editor.kill()
        assert await killed.ended() == 0
        assert await offered(other) == ["42"] and engine.is_running()
        other.process.kill()  # a server that is killed itself cannot say good-bye
        await gone(engine)
    await editor.wait()
    assert "stopping: idle" in next((home / "state").rglob("*.log")).read_text()


async def test_the_idle_time_can_be_changed_in_a_running_editor(home: Path, new_client: NewClient) -> None:
    async with window() as client:
        assert await offered(client) == ["42"]
        engine = engine_of(home)
        settings = {"midfill": {"engineIdleMinutes": 0.005}}
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
        while (await new_client("embedded").status()).idle == 300:
            pass
        assert await client.shutdown() == 0
        await gone(engine)


# --- the engine dies


@over_both_transports
async def test_the_engine_is_killed_while_idle(home: Path) -> None:
    async with window() as client:
        assert await offered(client) == ["42"]
        engine_of(home).kill()
        await untouched(client, "say 42")


@over_both_transports
async def test_the_engine_is_killed_in_mid_request(home: Path) -> None:
    async with window() as client:
        client.change(URI, 2, "hang")
        _, answer = client.ask(URI, 0, 4, explicit=True)
        assert (await trace_line(home)).startswith("started")
        engine_of(home).kill()
        assert result_of(await within(answer)) == {"items": []}
        warning = await client.notification("window/showMessage")
        assert "ended unexpectedly" in warning["message"]
        sentence = (await client.request("midfill/why"))["sentence"]
        assert "ended unexpectedly" in sentence and ".log" in sentence
        await untouched(client, "hang")
        assert len(client.all("window/showMessage")) == 1


async def test_the_engine_is_killed_while_loading(
    home: Path, new_client: NewClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    async with window() as client:
        await client.notification("midfill/status", lambda status: "progress" in status)
        _, answer = client.ask(URI, 0, 6, explicit=True)
        observer = new_client("embedded")
        while (await observer.status()).requests == 0:
            pass
        engine_of(home).kill()
        assert result_of(await within(answer)) == {"items": []}
        _, answer = client.ask(URI, 0, 6, explicit=True)
        await asyncio.wait_for(asyncio.to_thread((home / "gate").write_text, ""), 60)
        assert [item["insertText"] for item in result_of(await within(answer))["items"]] == ["42"]


async def test_the_engine_crashes_again_and_again(home: Path, new_client: NewClient) -> None:
    async with window() as client:
        for version in range(3):
            client.change(URI, 2 + version, "crash")
            assert await offered(client, 5) == []
        client.change(URI, 9, "say 42")
        assert await offered(client) == []
        why = (await client.request("midfill/why"))["sentence"]
        assert "3 times within 5 minutes" in why and ".log" in why and "midfill engine start" in why
        await client.notification("midfill/status", lambda status: "3 times" in status["detail"])
        await new_client("embedded").stop()  # as `midfill engine start` does before it starts another one
        await untouched(client, "say 42")


# --- the request ends


async def test_shutdown_in_the_middle_of_a_generation(home: Path) -> None:
    async with window() as client:
        client.change(URI, 2, "hang")
        _, answer = client.ask(URI, 0, 4, explicit=True)
        assert (await trace_line(home)).startswith("started")
        assert await client.shutdown() == 0
        assert "error" in await within(answer)
        assert (await trace_line(home)).startswith("cancelled")
        assert engine_of(home).is_running()


async def test_the_first_request_is_cancelled_while_the_model_loads(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    async with window() as client:
        await client.notification("midfill/status", lambda status: "progress" in status)
        number, answer = client.ask(URI, 0, 6, explicit=True)
        client.notify("$/cancelRequest", {"id": number})
        reply = await within(answer)
        assert reply.get("result") in (None, {"items": []})
        progress = (await state(client, "loading"))["progress"]
        assert (progress["done"], progress["total"]) == (1, 2)
        await asyncio.wait_for(asyncio.to_thread((home / "gate").write_text, ""), 60)
        await state(client, "ready")
        assert await offered(client) == ["42"]
        assert client.all("window/showMessage") == []


# --- the folder


async def test_a_runtime_folder_that_cannot_be_used_and_then_can(home: Path) -> None:
    (home / "run").write_text("")
    async with window() as client:
        assert await offered(client) == []
        (warning,) = client.all("window/showMessage")
        assert str(home / "run") in warning["message"]
        assert "MIDFILL_RUNTIME_DIR" in (await client.request("midfill/why"))["sentence"]
        (home / "run").unlink()
        await untouched(client, "say 42")


@over_both_transports
async def test_a_runtime_folder_that_cannot_be_written_and_then_can(home: Path) -> None:
    (home / "run").mkdir(mode=0o500)
    async with window("obey") as client:
        assert await offered(client) == []
        (warning,) = client.all("window/showMessage")
        assert "Permission denied" in warning["message"] and "MIDFILL_RUNTIME_DIR" in warning["message"]
        (home / "run").chmod(0o700)
        await untouched(client, "say 42")
