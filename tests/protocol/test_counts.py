"""What real servers count and keep of decisions, by what clients tell them, and how it reads on the command line."""

from __future__ import annotations

import asyncio
import datetime
import json
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .client import Client, midfill, server

QUICK = {"debounceMs": 0}
MARK = "S3CRET"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state folder of this test alone."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/midfill"


def run(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([midfill(), *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


def counted() -> dict[str, int]:
    total: dict[str, int] = json.loads(run("stats", "--json")[1])["total"]
    return total


async def items(client: Client, uri: str, line: int, column: int) -> list[Any]:
    """The items of an inline completion as they come over the wire."""
    params = {
        "textDocument": {"uri": uri},
        "position": {"line": line, "character": column},
        "context": {"triggerKind": 2},
    }
    result: list[Any] = (await client.request("textDocument/inlineCompletion", params))["items"]
    return result


def private_and_without(mark: str, folder: Path) -> list[Path]:
    """The files of a folder."""
    kept = [path for path in folder.iterdir() if path.is_file()]
    for path in kept:
        assert mark not in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return kept


async def accept(client: Client, item: Any) -> None:
    """As clients do it: the command of the item, as it is."""
    command = {key: item["command"][key] for key in ("command", "arguments")}
    assert await client.request("workspace/executeCommand", command) is None


async def test_shown_and_accepted_in_parts_and_in_full(folder: Path) -> None:
    async with server({"after": "x = ", "fill": "foo(a, b)"}, {"after": "y = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        (item,) = await items(client, uri, 0, 4)
        for _ in range(3):
            client.notify("textDocument/didShowCompletion", {"item": item})
        client.notify("textDocument/didPartiallyAcceptCompletion", {"item": item, "acceptedLength": 4})
        client.change(uri, 2, ((0, 4), (0, 4), "foo("))
        (rest,) = await items(client, uri, 0, 8)
        client.notify("textDocument/didShowCompletion", {"item": rest})
        client.notify("textDocument/didPartiallyAcceptCompletion", {"item": rest, "acceptedLength": 2})
        await accept(client, rest)
        await accept(client, rest)
        other = client.open("y = ", "file:///project/b.js", "javascript")
        (unseen,) = await items(client, other, 0, 4)
        assert unseen["command"]["arguments"] != item["command"]["arguments"]
    assert counted() == {"shown": 1, "accepted": 1, "partial": 2, "chars": 9}
    table = run("stats")[1]
    assert "python" in table
    assert "javascript" not in table
    assert "1 (100%)" in table
    assert datetime.date.today().isoformat() in table


async def test_whoever_does_not_tell_what_is_shown_shows_what_was_offered() -> None:
    async with server({"after": "x = ", "fill": "foo()"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        (item,) = await items(client, uri, 0, 4)
        assert len(await items(client, uri, 0, 4)) == 1
        client.change(uri, 2, ((0, 4), (0, 4), "fo"))
        (rest,) = await items(client, uri, 0, 6)
        assert rest["command"] == item["command"]
        await accept(client, rest)
        params = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 6}}
        (entry,) = (await client.request("textDocument/completion", params))["items"]
        assert entry["command"] == item["command"]
    assert counted() == {"shown": 1, "accepted": 1, "partial": 0, "chars": 3}


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"item": 5},
        {"item": {"command": {"arguments": []}}},
        {"item": {"command": {"arguments": ["unknown"]}}},
    ],
)
async def test_what_makes_no_sense_is_not_counted(params: Any) -> None:
    async with server() as client:
        await client.initialize()
        client.notify("textDocument/didShowCompletion", params)
        client.notify("textDocument/didPartiallyAcceptCompletion", params)
        command = {"command": "midfill.accepted", "arguments": [params]}
        assert await client.request("workspace/executeCommand", command) is None
        assert client.all("window/showMessage") == []
    assert counted() == {"shown": 0, "accepted": 0, "partial": 0, "chars": 0}
    assert "nothing has been counted" in run("stats")[1]


async def test_several_servers_lose_no_count() -> None:
    async def editor(number: int) -> None:
        async with server({"after": "= ", "fill": "1"}) as client:
            await client.initialize(initializationOptions=QUICK)
            for file in range(20):
                uri = client.open(f"v{number} = ", f"file:///project/{number}_{file}.py")
                (item,) = await items(client, uri, 0, 5)
                client.notify("textDocument/didShowCompletion", {"item": item})
                await accept(client, item)

    await asyncio.gather(*(editor(number) for number in range(4)))
    assert counted() == {"shown": 80, "accepted": 80, "partial": 0, "chars": 80}
    assert len(json.loads(run("why", "--last", "200", "--json")[1])) == 80


async def test_9_why_on_the_command_line(folder: Path) -> None:
    assert run("why") == (1, "nothing has been asked for yet\n")
    script = (
        {"after": "x = ", "fill": f"{MARK}(1)", "confidence": 0.9},
        {"after": "y = ", "fill": MARK, "confidence": 0.01},
    )
    async with server(*script) as client:
        await client.initialize(initializationOptions=QUICK | {"minConfidence": 0.5})
        uri = client.open(f"# {MARK}\nx = \ny = ", "file:///project/src/a.py")
        assert await client.inline(uri, 1, 4)
        assert await client.inline(uri, 2, 4) == []
        # The server is still running, and writes its decisions together, a moment later.
        while "a.py:3" not in run("why")[1]:  # noqa: ASYNC110  no event leaves the server
            await asyncio.sleep(0.01)
        code, last = run("why")
        assert code == 0
        assert last.startswith("a.py:3 (automatic): nothing: low confidence: 0.01 (")
        assert last.count("\n") == 1
        assert "a.py:2 (automatic): shown: from scripted" in run("why", "src/a.py:2")[1]
        assert run("why", "other.py") == (1, "nothing has been asked for there\n")
        assert run("why", "rc/a.py")[0] == 1
        full = run("why", "a.py", "--full")[1]
        for fact in ("gate        confidence", "confidence  0.01", "1 decoder calls", "file:///project/src/a.py"):
            assert fact in full
        assert run("why", "--last", "5")[1].count("\n") == 2
        answer = await client.request("midfill/why", {"textDocument": {"uri": uri}, "position": {"line": 1}})
        assert answer["sentence"] == run("why", "a.py:2")[1].strip()
        assert answer["full"].splitlines()[0] == answer["sentence"]
        assert [decision["line"] for decision in answer["decisions"]] == [2]
        nowhere = await client.request("midfill/why", {"textDocument": {"uri": uri}, "position": {"line": 0}})
        assert nowhere["sentence"] == "nothing has been asked for yet"
    assert {path.name for path in private_and_without(MARK, folder)} >= {"journal.jsonl", "statistics.jsonl"}


async def test_a_state_folder_that_cannot_be_written_is_no_reason_to_be_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with (tmp_path / "log").open("wb") as log:
        async with server({"after": "x = ", "fill": "1"}, log=log) as client:
            await client.initialize(initializationOptions=QUICK)
            uri = client.open("x = ")
            for _ in range(3):
                assert await client.inline(uri, 0, 4)
            assert client.all("window/showMessage") == []
            assert await client.shutdown() == 0
    said = (tmp_path / "log").read_text()
    assert said.count("cannot be written") == 2
