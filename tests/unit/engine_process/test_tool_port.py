"""The port for other tools of a real engine process: opened, asked by real clients, closed."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path

import httpx
import psutil
import pytest
from engine_processes import NewClient, ask, engines_in, events_of

from diffusion.api import EngineError
from diffusion.listening import on_loopback
from lsp_server.engine_paths import stored_key


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


async def test_it_opens_on_request_and_only_on_this_machine(new_client: NewClient, home: Path) -> None:
    client = new_client()
    assert await client.listening() == ""
    address = await client.listen("localhost:0", "secret")
    assert address.startswith("127.0.0.1:") and await client.listening() == address
    (process,) = engines_in(home)
    bound = [connection.laddr for connection in process.net_connections("inet") if connection.status == "LISTEN"]
    assert bound == [("127.0.0.1", port_of(address))]
    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=60) as http:
        assert (await http.get("/v1/models")).status_code == 401
        answer = await http.post(
            "/infill",
            json={"input_prefix": "echo", "input_suffix": "s", "prompt": " p"},
            headers={"authorization": "Bearer secret"},
        )
        assert answer.json()["content"] == "echo p|s"
        assert not client.paths.log.read_text().count("secret")
    other = await client.listen("127.0.0.1:0", "other")
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port_of(address))
    await client.stop()
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", port_of(other))


@pytest.mark.parametrize("address", ["0.0.0.0:0", "192.168.0.1:80", "127.0.0.1", ":80", "127.0.0.1:99999", "[::]:0"])
async def test_other_addresses_are_refused(new_client: NewClient, address: str) -> None:
    with pytest.raises(EngineError, match="cannot listen"):
        await new_client().listen(address, "secret")


async def test_a_port_in_use_and_a_key_that_is_none(new_client: NewClient) -> None:
    client = new_client()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(EngineError, match="cannot listen"):
        await client.listen(f"127.0.0.1:{taken.getsockname()[1]}", "secret")
    for key in ("", "two words", "ü"):
        with pytest.raises(EngineError, match="key"):
            await client.listen("127.0.0.1:0", key)
    assert await client.listening() == "" and (await client.status()).state == "ready"


@pytest.mark.slow
async def test_an_open_port_is_a_lease(new_client: NewClient, home: Path) -> None:
    client = new_client(idle=0.5)
    await client.listen("127.0.0.1:0", "secret")
    (process,) = engines_in(home)
    with pytest.raises(psutil.TimeoutExpired):
        await asyncio.to_thread(process.wait, 1.5)


async def test_it_is_open_again_after_a_crash_and_not_after_an_end_in_order(new_client: NewClient, home: Path) -> None:
    client = new_client()
    address = await client.listen("127.0.0.1:0", "secret")
    record = client.paths.socket.with_suffix(".port")
    assert record.stat().st_mode & 0o777 == 0o600
    await events_of(client, ask("crash"))
    assert await client.listening() == address
    async with httpx.AsyncClient(base_url=f"http://{address}", timeout=60) as http:
        assert (await http.get("/v1/models", headers={"authorization": "Bearer secret"})).status_code == 200
    await client.stop()
    assert not record.exists() and await client.listening() == ""


@pytest.mark.parametrize("content", [b"", b"[]", b'{"address": 1, "key": ""}', b'{"address": "0.0.0.0:1", "key": "k"}'])
async def test_a_spoilt_record_of_the_port_stops_nothing(new_client: NewClient, home: Path, content: bytes) -> None:
    client = new_client()
    client.paths.socket.parent.mkdir(mode=0o700)
    client.paths.socket.with_suffix(".port").write_bytes(content)
    assert await client.listening() == ""
    assert "not open again" in client.paths.log.read_text() and (await client.status()).state


async def test_a_client_that_goes_ends_its_fill(new_client: NewClient, home: Path) -> None:
    client = new_client()
    address = await client.listen("127.0.0.1:0", "secret")
    body = json.dumps({"input_prefix": "hang", "input_suffix": ""}).encode()
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(address))
    head = f"POST /infill HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer secret\r\n"
    writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    assert (await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)).startswith("started")
    writer.close()
    assert (await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60)).startswith("cancelled")


async def test_the_openai_package(new_client: NewClient) -> None:
    openai = pytest.importorskip("openai")
    client = new_client()
    address = await client.listen("127.0.0.1:0", "secret")
    async with openai.AsyncOpenAI(base_url=f"http://{address}/v1", api_key="secret", max_retries=0) as api:
        assert [model.id async for model in api.models.list()] == ["fake"]
        done = await api.completions.create(model="fake", prompt="echo", suffix=" end", max_tokens=50, temperature=0)
        assert done.choices[0].text == "echo| end" and done.choices[0].finish_reason == "stop"
        assert done.usage.total_tokens == done.usage.prompt_tokens + done.usage.completion_tokens
        stream = await api.completions.create(model="fake", prompt="a;b", stop=[";"], n=2, stream=True)
        assert "".join([chunk.choices[0].text async for chunk in stream]) == "a"
        with pytest.raises(openai.BadRequestError, match="n must lie"):
            await api.completions.create(model="fake", prompt="x", n=99)
        with pytest.raises(openai.InternalServerError, match="ValueError"):
            await api.completions.create(model="fake", prompt="raise")
    async with openai.AsyncOpenAI(base_url=f"http://{address}/v1", api_key="wrong", max_retries=0) as api:
        with pytest.raises(openai.AuthenticationError):
            await api.completions.create(model="fake", prompt="x")


def test_the_key_is_made_once_and_is_the_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "run" / "engine.key"
    key, new = stored_key(file)
    assert new and len(key) >= 32 and file.stat().st_mode & 0o777 == 0o600
    assert stored_key(file) == (key, False)
    file.write_text("")
    again, new = stored_key(file)
    assert new and again != key
    file.unlink()
    file.mkdir()
    with pytest.raises(EngineError, match="no key"):
        stored_key(file)


async def test_small_answers_are_not_held_back() -> None:
    """Without TCP_NODELAY an answer in two packets waits for the client's delayed acknowledgement."""
    accepted: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    with on_loopback("127.0.0.1:0") as listener:
        server = await asyncio.start_server(lambda _, writer: accepted.put_nowait(writer), sock=listener)
        async with server:
            _, client = await asyncio.open_connection(*listener.getsockname())
            writer = await asyncio.wait_for(accepted.get(), 20)
            assert writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            for each in (writer, client):
                each.close()
