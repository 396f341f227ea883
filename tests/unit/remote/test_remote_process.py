"""A whole engine process whose profile names a server: answers, status, no torch."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio
from asking import fill
from conftest import Serve, write_profile
from local_server import events, says
from vllm_server import MODEL, Vllm

from diffusion.api import Candidate, Failure, Result
from lsp_server.commands import doctor
from lsp_server.engine_client import EngineClient
from tests.at_rest import at_rest


@pytest_asyncio.fixture
async def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EngineClient]:
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/midfill/profiles").mkdir(parents=True)
    client = EngineClient("team")
    yield client
    status = await client.running()
    await client.stop()
    await client.close()
    if status:
        await asyncio.to_thread(_ended, status.pid)


def _ended(pid: int) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(pid).wait(20)


async def last(client: EngineClient, request: object) -> object:
    async with asyncio.timeout(60):
        return [event async for event in client.fill(request)][-1]  # type: ignore[arg-type]


async def test_a_team_s_vllm_server(client: EngineClient, serve: Serve, tmp_path: Path) -> None:
    server = serve(Vllm("b, c=3", ")\n").routes())
    write_profile(tmp_path / "config/midfill/profiles", server.url, "vllm")
    end = await last(client, fill("a = foo(│)\n"))
    assert isinstance(end, Result) and end.candidates == (Candidate(text="b, c=3"),)
    status = await at_rest(client)
    assert (status.state, status.detail, status.device) == ("ready", "", f"vLLM 0.32.0 at {server.url}, {MODEL}")
    maps = await asyncio.to_thread(Path(f"/proc/{status.pid}/maps").read_text)
    assert "libtorch" not in maps and status.pid != os.getpid()


async def test_what_is_wrong_with_the_server_stands_in_the_status(
    client: EngineClient, serve: Serve, tmp_path: Path
) -> None:
    server = serve({"GET /v1/models": says({"error": {"message": "no"}}, 401)})
    write_profile(tmp_path / "config/midfill/profiles", server.url)
    end = await last(client, fill("a│"))
    assert isinstance(end, Failure) and "without a key" in end.message and "team.toml" in end.hint
    assert (await client.status()).detail == f"{end.message}: {end.hint}"


async def test_clients_do_not_wait_for_one_another(client: EngineClient, serve: Serve, tmp_path: Path) -> None:
    """One asks and is not answered; another one is answered meanwhile; and when the first goes, so does its stream."""
    slow = events({"choices": [{"text": "x"}]}, then_hangs=True)
    chat = {"choices": [{"message": {"content": "<middle>y</middle>"}, "finish_reason": "stop"}]}
    server = serve(
        {
            "GET /v1/models": says({"data": [{"id": "m"}]}),
            "POST /v1/completions": slow,
            "POST /v1/chat/completions": says(chat),
        }
    )
    write_profile(tmp_path / "config/midfill/profiles", server.url)
    waiting = client.fill(fill("a│", client="one", drafts=True))
    async with asyncio.timeout(60):
        await anext(waiting)
        other = await last(client, fill("a│", client="two", deadline_ms=50.0))
        assert isinstance(other, Result) and other.finish == "deadline"
        await waiting.aclose()
    assert await asyncio.to_thread(server.gone.get, timeout=20) == "/v1/completions"


@pytest.mark.slow
def test_doctor_asks_the_server(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(tmp_path / "run"))
    (tmp_path / "midfill/profiles").mkdir(parents=True)
    server = serve(Vllm(pins=False, version="0.31.0").routes())
    write_profile(tmp_path / "midfill/profiles", server.url, "vllm")
    doctor.main(["--profile", "team", "--json"])
    (check,) = [check for check in json.loads(capsys.readouterr().out)["checks"] if check["name"] == "server"]
    assert check["verdict"] == "warn" and check["value"] == f"vLLM 0.31.0 at {server.url}, {MODEL}"
    assert check["hint"].startswith("filling by chat completion")
