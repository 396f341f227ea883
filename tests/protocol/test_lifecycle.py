"""How the server starts and ends: with its editor, with the right code, without running the workspace's code."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from .client import midfill, server, within

LONG = {"fill": "late", "drafts": ["l"] * 1000, "delay_ms": 10_000_000}


async def test_initialize_says_what_the_server_can_do() -> None:
    async with server() as client:
        result = await client.initialize()
        capabilities = result["capabilities"]
        assert result["serverInfo"]["name"] == "midfill"
        assert capabilities["inlineCompletionProvider"] == {}
        assert capabilities["textDocumentSync"]["change"] == 2
        assert "triggerCharacters" in capabilities["completionProvider"]
        assert capabilities["positionEncoding"] == "utf-16"


async def test_initialized_may_come_without_params() -> None:
    async with server() as client:
        await client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
        client.notify("initialized")
        assert (await client.notification("midfill/status"))["state"] == "ready"


async def test_exit_without_shutdown_is_an_error() -> None:
    async with server() as client:
        await client.initialize()
        client.notify("exit")
        assert await client.ended() == 1


async def test_the_end_of_the_input_ends_the_server() -> None:
    async with server() as client:
        await client.initialize()
        assert client.process.stdin
        client.process.stdin.close()
        assert await client.ended() == 0


async def test_shutdown_in_the_middle_of_work_is_answered_at_once() -> None:
    async with server(LONG, LONG) as client:
        await client.initialize(initializationOptions={"drafts": True})
        uri = client.open("x = ")
        _, first = client.ask(uri, 0, 4, explicit=True)
        await client.notification("midfill/status", lambda status: status["state"] == "busy")
        assert await client.shutdown() == 0
        assert "error" in await within(first)


async def test_a_killed_editor_takes_the_server_along() -> None:
    """The pipe to the server stays open in this process: only the editor's process id can tell."""
    editor = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    async with server() as client:
        await client.initialize(processId=editor.pid)
        editor.send_signal(signal.SIGKILL)
        assert await client.ended() == 0
        await editor.wait()


async def test_a_process_id_of_another_machine_is_no_reason_to_end() -> None:
    async with server() as client:
        await client.initialize(processId=2**22 + 5)
        await client.request("midfill/why")
        assert await client.shutdown() == 0


async def test_what_is_printed_does_not_reach_the_protocol() -> None:
    source = (
        "import os, sys\n"
        "from lsp_server import server\n"
        "fds = server._take_standard_streams()\n"
        "print('from python'); sys.stdout.flush(); os.system('echo from a child')\n"
        "os.write(fds[1], b'only this'); assert os.read(0, 1) == b''\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", source, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = await within(process.communicate(b"for the protocol"))
    assert out == b"only this"
    assert b"from python" in err
    assert b"from a child" in err


@pytest.mark.parametrize("launch", ["script", "module"])
async def test_a_poisoned_workspace_runs_no_code_of_its_own(tmp_path: Path, launch: str) -> None:
    for package in ("diffusion", "grammars", "lsp_server"):
        folder = tmp_path / package
        folder.mkdir()
        names = ("__init__", "api", "server", "completion", "syntax", "languages", "__main__", "scripted")
        for name in names:
            (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'poisoned')!r}, 'w').close()\n")
    for name in ("json", "psutil", "logging", "pygls", "h11"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'poisoned')!r}, 'w').close()\n")
    program = (midfill(),) if launch == "script" else (sys.executable, "-I", "-m", "lsp_server")
    async with server({"after": "x = ", "fill": "1"}, cwd=tmp_path, program=program) as client:
        await client.initialize(rootUri=tmp_path.as_uri(), processId=os.getpid())
        uri = client.open("x = ")
        assert await client.inline(uri, 0, 4, explicit=True)
        assert await client.shutdown() == 0
    assert not (tmp_path / "poisoned").exists()


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([midfill(), *arguments], capture_output=True, text=True, cwd=cwd, timeout=60, check=False)


def test_the_command_teaches_and_reports_mistakes_in_one_line(tmp_path: Path) -> None:
    help_text = run("--help")
    assert help_text.returncode == 0
    assert "midfill lsp" in help_text.stdout
    assert "midfill demo" in help_text.stdout
    assert run("--version").stdout.startswith("midfill ")
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    for arguments, code, says in (
        (("frobnicate",), 2, "unknown command 'frobnicate'"),
        (("lsp", "--no-such"), 2, "unrecognized arguments"),
        (("lsp", "--engine", "magic"), 2, "unknown engine 'magic'"),
        (("lsp", "--engine", "scripted:no-such-file.json"), 1, "cannot read the script"),
        (("lsp", "--engine", f"scripted:{bad}"), 1, "no JSON"),
    ):
        done = run(*arguments)
        assert done.returncode == code, arguments
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
        assert done.stdout == ""


def test_a_reader_that_goes_away_is_no_traceback() -> None:
    process = subprocess.Popen([midfill(), "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.wait(60)


def test_streams_that_do_not_block_are_no_end(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text("[]")
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    process = subprocess.Popen([midfill(), "lsp", "--engine", f"scripted:{script}"], stdin=theirs, stdout=theirs)
    theirs.close()
    with process, ours:
        params = {"processId": None, "rootUri": None, "capabilities": {}}
        for number, message in enumerate(({"method": "initialize", "params": params}, {"method": "shutdown"})):
            body = json.dumps({"jsonrpc": "2.0", "id": number} | message).encode()
            ours.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            answer = b""
            while b'"id": %d' % number not in answer:
                answer += (piece := ours.recv(65536))
                assert piece, "the server has ended"
        ours.shutdown(socket.SHUT_WR)
        assert process.wait(60) == 0


def test_editors_may_pass_stdio_and_their_process_id(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([]))
    done = run("lsp", "--stdio", "--clientProcessId=1", "--engine", f"scripted:{script}")
    assert done.returncode == 0
    assert done.stderr == ""
