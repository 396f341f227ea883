"""Many clients, slow and silent and dying ones, huge requests, a full disk, a clock that jumps. After each the next
request works."""

from __future__ import annotations

import ast
import asyncio
import json
import random
import socket
import sys
from collections import Counter
from pathlib import Path

import httpx
import psutil
import pytest
from engine_processes import NewClient, ask, engines_in, events_of, text_of
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from diffusion import http_server, wire
from diffusion.api import Failure, Result, to_json
from diffusion.http_server import HttpServer
from lsp_server.engine_client import EngineClient

ROOT = Path(__file__).parents[3]


def raw_fill(request: object, body: bytes = b"") -> bytes:
    body = body or json.dumps(to_json(request)).encode()
    return b"POST /v1/fill HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def clients_are(client: EngineClient, number: int) -> None:
    async with asyncio.timeout(60):
        while (await client.status()).clients != number:
            pass


@pytest.mark.slow
async def test_two_hundred_clients(new_client: NewClient, home: Path) -> None:
    clients = [new_client() for _ in range(200)]
    await clients[0].status()
    leases = [client.events() for client in clients]
    await asyncio.wait_for(asyncio.gather(*(anext(lease) for lease in leases)), 60)
    await clients_are(clients[0], 200)
    requests = [ask(f"echo {i}", client=f"c{i}") for i in range(200)]
    ends = [events[-1] for events in await asyncio.gather(*map(events_of, clients, requests))]
    for number, end in enumerate(ends):
        if isinstance(end, Result):
            assert end.candidates[0].text == f"echo {number}|"
        else:
            assert isinstance(end, Failure) and end.code == "busy" and end.hint
    kinds = Counter(type(end) for end in ends)
    assert kinds[Result] >= 64, kinds
    for lease in leases:
        await lease.aclose()
    await clients_are(clients[0], 0)
    assert text_of(await events_of(clients[7], ask("next"))) == "next|"
    (process,) = engines_in(home)
    assert process.num_fds() < 30


async def test_a_slow_reader_costs_no_memory_and_holds_up_nobody(new_client: NewClient, home: Path) -> None:
    client = new_client()
    assert text_of(await events_of(client, ask("first"))) == "first|"
    (process,) = engines_in(home)
    before = process.memory_info().rss
    reader, writer = await asyncio.open_unix_connection(str(client.paths.socket), limit=1024)
    writer.write(raw_fill(ask("flood 3000")))
    assert text_of(await events_of(client, ask("next"))) == "next|"  # comes after the 60 MB of drafts
    assert process.memory_info().rss - before < 30e6
    received = b""
    while b'"result"' not in received[-30_000:]:
        chunk = await asyncio.wait_for(reader.read(65536), 60)
        assert chunk
        received += chunk
    assert b"flood 3000|" in received and f"{3000:020000}".encode() in received
    assert len(received) < 10e6
    writer.close()


async def test_a_request_of_50_mb(new_client: NewClient, home: Path) -> None:
    client = new_client()
    await events_of(client, ask("first"))
    (process,) = engines_in(home)
    before = process.memory_info().rss
    (end,) = await events_of(client, ask("x" * 50_000_000))
    assert isinstance(end, Failure) and end.code == "bad_request" and "at most" in end.message
    assert process.memory_info().rss - before < 30e6
    assert text_of(await events_of(client, ask("next"))) == "next|"


async def test_an_editor_that_is_killed_gives_up_its_lease(new_client: NewClient) -> None:
    client = new_client()
    await client.status()
    program = (
        "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
        "s.sendall(b'GET /v1/events HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); time.sleep(1000)"
    )
    editor = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", program, str(client.paths.socket))
    await clients_are(client, 1)
    editor.kill()
    await clients_are(client, 0)
    await editor.wait()


async def test_garbage_of_all_kinds_on_both_sockets(new_client: NewClient, home: Path) -> None:
    client = new_client()
    address = await client.listen("127.0.0.1:0", "secret")
    chance = random.Random(0)
    pieces = [
        b"GET / HTTP/1.1\r\n", b"Host: x\r\n", b"\r\n", b"Content-Length: -1\r\n", b"zz\r\n", b"\x00\xff",
        b"Transfer-Encoding: chunked\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"Content-Length: 99999999999\r\n",
    ]  # fmt: skip
    for number in range(60):
        bytes_sent = b"".join(chance.choices(pieces, k=5)) + chance.randbytes(50)
        if number % 2:
            reader, writer = await asyncio.open_unix_connection(str(client.paths.socket))
        else:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.split(":")[1]))
        writer.write(bytes_sent)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 60)
        assert b"200 OK" not in answer and b"Traceback" not in answer
        writer.close()
    assert text_of(await events_of(client, ask("next"))) == "next|"


@pytest.mark.parametrize("sent", [b"", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Le"])
async def test_a_client_that_says_nothing_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    async with served(tmp_path / "s") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()


async def test_a_body_that_does_not_come_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(wire, "BODY_SECONDS", 0.2)
    async with served(tmp_path / "s") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n123")
        assert (await asyncio.wait_for(reader.readline(), 60)).startswith(b"HTTP/1.1 408")
        writer.close()


class served:
    """The engine's HTTP server in this process, around a route that reads a body."""

    def __init__(self, path: Path) -> None:
        async def read(request: Request) -> Response:
            return Response(await wire.read_body(request))

        self._path = path
        self._server = HttpServer(Starlette(routes=[Route("/", read, methods=["POST"])]), drain=1)

    async def __aenter__(self) -> str:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self._path))
        listener.listen()
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))
        return str(self._path)

    async def __aexit__(self, *error: object) -> None:
        self._server.should_exit = True
        await self._serving


# --- the machine


async def test_a_full_disk_for_the_log(new_client: NewClient, home: Path) -> None:
    client = new_client()
    client.paths.log.parent.mkdir(parents=True)
    client.paths.log.symlink_to("/dev/full")
    assert text_of(await events_of(client, ask("first"))) == "first|"
    (end,) = await events_of(client, ask("raise"))
    assert isinstance(end, Failure) and end.code == "internal"
    assert text_of(await events_of(client, ask("next"))) == "next|"
    await client.stop()
    assert text_of(await events_of(client, ask("again"))) == "again|"


async def test_the_log_is_rotated(new_client: NewClient) -> None:
    client = new_client()
    client.paths.log.parent.mkdir(parents=True)
    client.paths.log.write_text("x" * 999_990 + "\n")
    for _ in range(2):
        await events_of(client, ask("raise"))
        await client.stop()
    assert {path.name.removeprefix(client.paths.log.name) for path in client.paths.log.parent.iterdir()} == {"", ".1"}
    assert "ValueError" in client.paths.log.read_text() and client.paths.log.stat().st_size < 20_000


async def test_a_clock_that_jumps(new_client: NewClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CLOCK", "1")
    client = new_client(idle=600)
    address = await client.listen("127.0.0.1:0", "secret")
    for number in range(20):
        events = await events_of(client, ask(f"drafts {number}", deadline_ms=60_000, drafts=True))
        assert len(events) == number + 1 and isinstance(events[-1], Result)
    async with httpx.AsyncClient(timeout=60) as http:
        assert (await http.get(f"http://{address}/health")).status_code == 200
    assert 0 < (await client.status()).uptime < 60


def test_the_time_of_day_is_read_for_nothing_that_matters() -> None:
    modules = [*(ROOT / "diffusion").glob("*.py"), *(ROOT / "lsp_server").glob("engine*.py")]
    readers = {
        path.name
        for path in modules
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "time.time_ns", "datetime.now")
    }
    assert readers <= {"other_tools.py"}  # the date in an answer
    assert len(modules) > 10


async def test_more_connections_than_a_system_allows_at_first(new_client: NewClient, home: Path) -> None:
    client = new_client()
    await client.status()
    (process,) = engines_in(home)
    soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    assert soft in (psutil.RLIM_INFINITY, hard) or soft >= http_server.OPEN_FILES
