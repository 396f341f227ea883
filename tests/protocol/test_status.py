"""What a client is told of the server: loading, ready, busy, off here, wrong; and the commands that change it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from .client import Client, RpcError, position, result_of, server, within

QUICK = {"debounceMs": 0}
SHOWS_PROGRESS = {"window": {"workDoneProgress": True}}
LOADING: dict[str, Any] = {
    "statuses": [
        {"state": "starting"},
        *({"state": "loading", "progress": {"done": done, "total": 8}} for done in (0, 2, 7)),
    ]
}
ANSWER = {"after": "x = ", "fill": "1"}


async def state(client: Client, expected: str) -> dict[str, Any]:
    status: dict[str, Any] = await client.notification("midfill/status", lambda told: told["state"] == expected)
    return status


async def execute(client: Client, command: str, *arguments: Any) -> Any:
    return await client.request("workspace/executeCommand", {"command": command, "arguments": list(arguments)})


async def test_loading_is_told_with_percent_and_as_progress() -> None:
    async with server(LOADING) as client:
        await client.initialize(capabilities=SHOWS_PROGRESS)
        await client.notification("$/progress", lambda told: told["value"]["kind"] == "end")
        told = client.all("$/progress")
        (created,) = [r["params"]["token"] for r in client.requests if r["method"] == "window/workDoneProgress/create"]
        assert {each["token"] for each in told} == {created}
        values = [each["value"] for each in told]
        assert [value["kind"] for value in values] == ["begin", "report", "report", "end"]
        assert [value.get("percentage") for value in values] == [0, 25, 87, None]
        assert values[0]["title"] == "midfill"
        await state(client, "ready")
        shares = [each["progress"]["percent"] for each in client.all("midfill/status") if each["state"] == "loading"]
        assert shares == [0, 25, 87]
        assert "progress" not in client.all("midfill/status")[-1]


async def test_a_client_that_shows_no_progress_is_sent_none() -> None:
    async with server(LOADING) as client:
        await client.initialize()
        await state(client, "ready")
        assert client.all("$/progress") == []
        assert client.requests == []


async def test_off_here_and_why() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        prose = client.open("x = ", "untitled:notes", "plaintext")
        secret = client.open("x = ", "file:///project/.env")
        assert await client.inline(uri, 0, 4)
        for closed, reason in ((prose, "while typing in plaintext"), (secret, "left alone: ")):
            assert await client.inline(closed, 0, 4) == []
            told = client.all("midfill/status")[-1]
            assert told["state"] == "off"
            assert reason in told["detail"]
            asked = await client.request("midfill/status", {"textDocument": {"uri": closed}})
            assert asked == told
            assert (await client.request("midfill/status", {"textDocument": {"uri": uri}}))["state"] == "ready"
            assert (await client.request("midfill/status"))["state"] == "off"
        assert await client.inline(uri, 0, 4)
        assert client.all("midfill/status")[-1]["state"] == "ready"


async def test_off_everywhere_and_on_again() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions=QUICK)
        await state(client, "ready")
        assert await execute(client, "midfill.toggle") == {"enabled": False}
        told = client.all("midfill/status")[-1]
        assert told["state"] == "off"
        assert "switched off" in told["detail"]
        assert "midfill.toggle" in told["hint"]
        assert await execute(client, "midfill.toggle") == {"enabled": True}
        await client.notification("midfill/status", lambda _: client.all("midfill/status")[-1]["state"] == "ready")


async def test_a_server_that_starts_switched_off_needs_no_engine() -> None:
    async with server(LOADING) as client:
        await client.initialize(initializationOptions={"enabled": False})
        assert await client.inline(client.open("x = "), 0, 4) == []
        assert {told["state"] for told in client.all("midfill/status")} == {"off"}


async def test_10_a_failure_is_a_warning_until_the_next_try() -> None:
    broken = {"error": {"code": "model", "message": "out of memory", "hint": "close something"}}
    slow = {"fill": "2", "drafts": ["2"], "delay_ms": 50}
    async with server(broken, slow) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        await state(client, "ready")
        assert await client.inline(uri, 0, 4) == []
        assert [told["state"] for told in client.all("midfill/status")][-3:] == ["busy", "ready", "warning"]
        told = client.all("midfill/status")[-1]
        assert (told["detail"], told["hint"]) == ("out of memory", "close something")
        assert await client.inline(uri, 0, 4)
        assert [told["state"] for told in client.all("midfill/status")][-2:] == ["busy", "ready"]
        assert len(client.all("window/showMessage")) == 1


async def test_the_commands_are_announced_and_check_what_they_are_given() -> None:
    async with server() as client:
        announced = (await client.initialize())["capabilities"]["executeCommandProvider"]["commands"]
        assert set(announced) >= {"midfill.why", "midfill.toggle", "midfill.restart", "midfill.trigger"}
        nonsense: list[Any] = [None, 1, {"textDocument": {}}, {"textDocument": {"uri": "u"}, "position": {"line": -1}}]
        for where in nonsense:
            with pytest.raises(RpcError, match=r"midfill\.trigger takes"):
                await execute(client, "midfill.trigger", where)
        nowhere = {"textDocument": {"uri": "file:///not/open"}, "position": position(0, 0)}
        assert await execute(client, "midfill.trigger", nowhere) is False


async def test_trigger_puts_the_best_completion_into_this_version_of_the_text() -> None:
    async with server({"after": "x = ", "fill": ["1", "2"], "confidence": 0.01}) as client:
        await client.initialize(initializationOptions={"disabledLanguages": ["python"]})
        uri = client.open("x = ", version=7)
        assert await execute(client, "midfill.trigger", {"textDocument": {"uri": uri}, "position": position(0, 4)})
        (asked,) = [r["params"] for r in client.requests if r["method"] == "workspace/applyEdit"]
        span = {"start": position(0, 4), "end": position(0, 4)}
        change = {"textDocument": {"uri": uri, "version": 7}, "edits": [{"range": span, "newText": "1"}]}
        assert asked["edit"] == {"documentChanges": [change]}
        empty = client.open("y = ", "file:///project/b.py")
        where = {"textDocument": {"uri": empty}, "position": position(0, 4)}
        assert await execute(client, "midfill.trigger", where) is False


async def test_restart_ends_what_is_running_and_starts_anew() -> None:
    slow = {"fill": "late", "drafts": ["l"] * 1000, "delay_ms": 10_000_000}
    async with server(LOADING, slow, {"after": "y = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = \ny = ")
        await state(client, "ready")
        _, first = client.ask(uri, 0, 4)
        await state(client, "busy")
        before = len(client.all("midfill/status"))
        await execute(client, "midfill.restart")
        assert await client.inline(uri, 1, 4)
        assert result_of(await within(first)) == {"items": []}
        states = [told["state"] for told in client.all("midfill/status")[before:]]
        assert states[0] == "starting"
        assert "loading" in states
        assert client.all("midfill/status")[-1]["state"] == "ready"


@pytest.mark.slow
async def test_restart_replaces_the_engine_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(tmp_path / "run"))

    def engines() -> list[psutil.Process]:
        return [
            process
            for process in psutil.process_iter(["cmdline"])
            if any(str(tmp_path / "run") in word for word in process.info["cmdline"] or ())
        ]

    try:
        async with server(engine="auto") as client:
            await client.initialize(capabilities=SHOWS_PROGRESS, initializationOptions=QUICK)
            await state(client, "ready")
            (old,) = engines()
            seen = len(client.all("midfill/status"))
            await execute(client, "midfill.restart")
            await client.notification(
                "midfill/status", lambda _: [t["state"] for t in client.all("midfill/status")[seen:]][-1:] == ["ready"]
            )
            (new,) = engines()
            assert new.pid != old.pid
            assert client.all("window/showMessage") == []

            def shown(kind: str) -> int:
                return [told["value"]["kind"] for told in client.all("$/progress")].count(kind)

            # A progress ends behind the answer of the client that created it, so maybe behind the status.
            await client.notification("$/progress", lambda _: shown("end") == 2)
            assert shown("begin") == 2
    finally:
        for process in engines():
            process.kill()
