"""Documents of every kind (21 to 24): huge ones, odd URIs, positions out of range, renames, several folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.client import server

QUICK = {"debounceMs": 0}


@pytest.mark.parametrize("text, reason", [("x = 1\n" * 250_000, "maxFileChars"), ("y" * 300_000, "minified")])
async def test_21_a_huge_document_is_left_alone_at_once(text: str, reason: str) -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open(text)
        for version in range(2, 40):
            client.change(uri, version, ((0, 0), (0, 0), "x"))
            assert await client.inline(uri, 0, 1) == []
        assert reason in (await client.request("midfill/why"))["sentence"]


async def test_21_the_limit_can_be_raised() -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK | {"maxFileChars": 10_000_000})
        uri = client.open("x = \n" * 300_000)
        for version in range(2, 10):
            client.change(uri, version, ((150_000, 0), (150_000, 0), "x"))
            assert await client.inline(uri, 150_001, 4)


@pytest.mark.parametrize(
    "uri",
    ["untitled:Untitled-1", "file:///project/a%20b%23%C3%A9.py", "vscode-vfs://github/o/r/a.py", "zed://x", "odd", ""],
)
async def test_22_the_text_alone_will_do(uri: str) -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        client.open("x = ", uri)
        assert await client.inline(uri, 0, 4)
        client.change(uri, 2, "")
        assert await client.inline(uri, 0, 0) == []
        assert "empty" in (await client.request("midfill/why"))["sentence"]


async def test_23_positions_out_of_range_are_clamped() -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("x = ")
        for line, column in ((0, 99), (99, 0), (2**31 - 1, 2**31 - 1)):
            assert await client.inline(uri, line, column)


@pytest.mark.parametrize("order", ["close, open, told", "told, close, open", "told"])
async def test_24_a_renamed_document_goes_on_under_its_new_name(order: str) -> None:
    async with server({"after": "x = ", "fill": "1"}, {"after": "x = y", "fill": "z"}) as client:
        await client.initialize(initializationOptions=QUICK)
        old, new = client.open("x = ", "file:///project/old.py"), "file:///project/new.py"
        assert await client.inline(old, 0, 4)
        for step in order.split(", "):
            if step == "close":
                client.notify("textDocument/didClose", {"textDocument": {"uri": old}})
            elif step == "open":
                client.open("x = ", new)
            else:
                client.notify("workspace/didRenameFiles", {"files": [{"oldUri": old, "newUri": new}]})
        assert await client.inline(old, 0, 4) == []
        client.change(new, 2, ((0, 4), (0, 4), "y"))
        (made,) = await client.inline(new, 0, 5)
        assert made["insertText"] == "z"


async def test_folders_come_and_go(tmp_path: Path) -> None:
    prompts, two = tmp_path / "prompts", tmp_path / "two"
    two.mkdir()
    (two / ".midfillignore").write_text("private.py\n")

    async def shown(uri: str) -> Any:
        before = len(prompts.read_text().splitlines()) if prompts.exists() else 0
        await client.inline(uri, 0, 4, explicit=True)
        asked = prompts.read_text().splitlines()[before:]
        return json.loads(asked[0])["path"] if asked else None

    async with server({"log": str(prompts)}) as client:
        one = {"uri": "file:///one", "name": "one"}
        await client.initialize(workspaceFolders=[one], initializationOptions=QUICK)
        inside = client.open("x = ", "file:///one/src/a.py")
        private = client.open("x = ", (two / "private.py").as_uri())
        assert await shown(inside) == "src/a.py"
        assert await shown(private) == "private.py"
        event: dict[str, Any] = {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": [one]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert await shown(private) is None
        assert ".midfillignore" in (await client.request("midfill/why"))["sentence"]
        assert await shown(inside) == "a.py"
        event = {"added": [], "removed": event["added"]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        assert await shown(private) == "private.py"
