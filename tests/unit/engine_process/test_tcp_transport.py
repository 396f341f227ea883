"""The engine on a port of 127.0.0.1, as on Windows: who can ask it, and files that name a port of nobody's.

What both transports must do alike is tested in test_engine_process.py and test_supervision.py.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import httpx
import pytest
from engine_processes import NewClient, ask, engines_in, events_of, text_of

from diffusion.api import EngineError, Failure, to_json
from diffusion.listening import listening
from lsp_server.engine_paths import engine_paths

pytestmark = pytest.mark.parametrize("home", ["tcp"], indirect=True)

JSON = {"content-type": "application/json"}


def place_in(file: Path) -> tuple[str, dict[str, str]]:
    """The base address and the header with the key."""
    content = json.loads(file.read_text())
    return f"http://127.0.0.1:{content['port']}", {"authorization": f"Bearer {content['key']}"}


async def test_only_who_can_read_the_file_can_ask(new_client: NewClient, home: Path) -> None:
    client = new_client()
    status = await client.status()
    assert client.paths.socket.stat().st_mode & 0o777 == 0o600
    address, key = place_in(client.paths.socket)
    assert len(key["authorization"]) > 40
    body = json.dumps(to_json(ask("echo")))
    port = address.rpartition(":")[2]
    async with httpx.AsyncClient(base_url=address, timeout=60) as http:
        for headers, code in (
            (JSON, 401),
            ({**JSON, "authorization": "Bearer wrong"}, 401),
            ({**JSON, **key, "host": "evil.example"}, 403),
            ({**JSON, **key, "host": f"evil.example:{port}"}, 403),
            ({**JSON, **key, "host": "127.0.0.1"}, 403),
            ({**JSON, **key, "origin": "null"}, 403),
            ({**JSON, **key, "sec-fetch-site": "cross-site"}, 403),
            ({**key, "content-type": "text/plain"}, 415),
        ):
            for path in ("/v1/fill", "/v1/edit", "/v1/stop", "/v1/listen"):
                refused = await http.post(path, content=body, headers=headers)
                assert refused.status_code == code, (path, headers)
                assert not [name for name in refused.headers if name.startswith("access-control")]
        for path in ("/health", "/v1/events", "/v1/listen"):
            assert (await http.get(path)).status_code == 401
            assert (await http.options(path, headers={"origin": "https://evil.example"})).status_code >= 400
        answer = await http.post("/v1/fill", content=body, headers={**JSON, **key})
        assert answer.status_code == 200 and "echo|" in answer.text
    after = await client.status()
    assert (after.pid, after.requests) == (status.pid, 1)
    assert key["authorization"].split()[1] not in client.paths.log.read_text()


async def test_the_port_and_the_key_are_new_with_every_engine(new_client: NewClient, home: Path) -> None:
    client = new_client()
    await client.status()
    _, before = place_in(client.paths.socket)
    await client.stop()
    assert not client.paths.socket.exists()
    await client.wait_ready()
    assert place_in(client.paths.socket)[1] != before
    assert sorted(path.suffix for path in (home / "run").iterdir()) == [".lock", ".tcp"]


async def test_a_dead_engines_port_in_other_hands_gets_no_code(new_client: NewClient, home: Path) -> None:
    client = new_client()
    (home / "run").mkdir(mode=0o700)
    visits = 0

    async def stranger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal visits
        visits += 1
        writer.close()

    done = await asyncio.create_subprocess_exec(sys.executable, "-I", "-c", "")
    await done.wait()
    async with await asyncio.start_server(stranger, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for pid in (done.pid, os.getpid()):
            client.paths.socket.write_text(json.dumps({"port": port, "key": "k", "pid": pid}))
            assert await client.running() is None
            assert text_of(await events_of(client, ask("next"))) == "next|"
            await client.stop()
    assert visits == 0


@pytest.mark.parametrize(
    "content", [b"", b"\xff", b"[]", b"7", b'{"port": "x"}', b'{"port": 1, "key": "", "pid": -1}', b'{"port": 1e999}']
)
async def test_a_spoilt_file_is_none(new_client: NewClient, home: Path, content: bytes) -> None:
    client = new_client()
    (home / "run").mkdir(mode=0o700)
    client.paths.socket.write_bytes(content)
    assert await client.running() is None
    assert text_of(await events_of(client, ask("next"))) == "next|"


def test_a_file_that_cannot_be_written_is_a_clear_error(home: Path) -> None:
    place = engine_paths("fake").socket
    place.parent.mkdir(mode=0o700)
    place.mkdir()
    with pytest.raises(EngineError, match="no socket at") as raised, listening(place):
        pass
    assert "MIDFILL_RUNTIME_DIR" in raised.value.hint
    assert engines_in(home) == []


async def test_an_unknown_transport_is_named(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MIDFILL_TRANSPORT", "pigeon")
    (end,) = await events_of(new_client(), ask("x"))
    assert isinstance(end, Failure) and "pigeon" in end.message and "unix, tcp" in end.hint


def test_the_two_transports_never_meet(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tcp = engine_paths("fake")
    monkeypatch.setenv("MIDFILL_TRANSPORT", "unix")
    unix = engine_paths("fake")
    assert not {tcp.socket, tcp.lock, tcp.key, tcp.log} & {unix.socket, unix.lock, unix.key, unix.log}
