"""Documents of every kind, in every position encoding: an answer or nothing, never a crash, never a wrong edit."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import psutil
import pytest

from .client import Client, position, server

CURSOR = "│"
CASES = tomllib.loads((Path(__file__).parents[1] / "data/insertion.toml").read_text())["case"]
ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
QUICK = {"debounceMs": 0}


def columns(text: str, encoding: str) -> int:
    return len(text.encode(ENCODINGS[encoding])) * 8 // int(encoding.removeprefix("utf-"))


def accepted(text: str, item: Any, encoding: str) -> str:
    """The document after the item was accepted, computed as an editor does: from its range, on its own."""
    start, end = item["range"]["start"], item["range"]["end"]
    assert start["line"] == end["line"]
    lines = text.splitlines(keepends=True) or [""]
    codec, width = ENCODINGS[encoding], int(encoding.removeprefix("utf-")) // 8
    line = [*lines, ""][start["line"]].encode(codec)
    new = line[: start["character"] * width] + item["insertText"].encode(codec) + line[end["character"] * width :]
    lines[start["line"] : start["line"] + 1] = [new.decode(codec)]
    return "".join(lines)


@pytest.mark.parametrize(("encoding", "explicit"), [("utf-8", False), ("utf-16", True), ("utf-32", True)])
async def test_every_insertion_case_through_the_server(encoding: str, explicit: bool) -> None:
    unasked = () if explicit else ("finished-statement",)  # No engine is needed to offer nothing there.
    script = [{"fill": case["fill"]} for case in CASES if case["id"] not in unasked]
    async with server(*script) as client:
        general = {"general": {"positionEncodings": ["utf-7", encoding]}}
        result = await client.initialize(capabilities=general, initializationOptions=QUICK)
        assert result["capabilities"]["positionEncoding"] == encoding
        for number, case in enumerate(CASES):
            prefix, suffix = case["before"].split(CURSOR)
            uri = client.open(prefix + suffix, uri=f"file:///case/{number}", language=case["language"])
            line = prefix.count("\n")
            items = await client.inline(uri, line, columns(prefix.split("\n")[-1], encoding), explicit=explicit)
            if case.get("none"):
                assert items == [], case["id"]
            else:
                after = case["after"].replace(CURSOR, "")
                assert accepted(prefix + suffix, items[0], encoding) == after, case["id"]
        assert await client.shutdown() == 0


URIS = (
    ("untitled:Untitled-1", "python"),
    ("file:///with%20space/%C3%A9.py", "python"),
    ("vscode-vfs://github/owner/name/a.py", "python"),
    ("vscode-notebook-cell:/n.ipynb#W0", "python"),
    ("no scheme at all", "klingon"),
    ("", ""),
    ("file:///a.py?query#fragment", "python"),
    ("file://[", "python"),
)


async def test_any_uri_and_any_language() -> None:
    async with server(*({"fill": "1"} for _ in URIS)) as client:
        await client.initialize(initializationOptions=QUICK, rootUri="file:///with%20space")
        for uri, language in URIS:
            client.open("x = ", uri=uri, language=language)
            assert [item["insertText"] for item in await client.inline(uri, 0, 4)] == ["1"], uri
        assert await client.shutdown() == 0


ODD_TEXTS = (
    ("x = ", 0, 99, (0, 4)),
    ("x = ", 99, 0, (0, 4)),
    ("y\nx = \nz", 1, 2**31 - 1, (1, 4)),
    ("y\r\nx = \r\nz", 1, 99, (1, 4)),
    ("y\rx = \rz", 1, 99, (1, 4)),
    ("x\x0cy\u2028 = \x85", 0, 99, (0, 8)),
    ("\ud83d = ", 0, 4, (0, 4)),
    ("\t\tx = ", 0, 6, (0, 6)),
    ("\0\1\2 = ", 0, 6, (0, 6)),
)


async def test_positions_are_clamped_and_odd_texts_are_answered() -> None:
    async with server(*({"fill": "1"} for _ in ODD_TEXTS)) as client:
        await client.initialize(initializationOptions=QUICK)
        for number, (text, line, column, found) in enumerate(ODD_TEXTS):
            uri = client.open(text, uri=f"file:///{number}.py")
            (item,) = await client.inline(uri, line, column, explicit=True)
            assert item == {"insertText": "1", "range": {"start": position(*found), "end": position(*found)}}, text
        assert await client.shutdown() == 0


async def test_nothing_is_offered_in_an_empty_or_unknown_document() -> None:
    async with server({"fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("")
        assert await client.inline(uri, 0, 0, explicit=True) == []
        assert "empty" in (await client.request("midfill/why"))["sentence"]
        assert await client.inline("file:///never/opened.py", 0, 0, explicit=True) == []


async def test_24_a_renamed_file_is_a_new_document_and_the_old_one_is_forgotten() -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        old = client.open("x = ", uri="file:///old.py")
        client.notify("textDocument/didClose", {"textDocument": {"uri": old}})
        new = client.open("x = ", uri="file:///new.py")
        assert len(await client.inline(new, 0, 4)) == 1
        assert await client.inline(old, 0, 4) == []


async def typing_is_quick(client: Client, uri: str, line: int, column: int) -> None:
    """Ten keystrokes and requests; each takes the server less than so many seconds of processor time."""
    await client.inline(uri, line, column)
    before = psutil.Process(client.process.pid).cpu_times()
    for typed in range(10):
        client.change(uri, 2 + typed, ((line, column + typed), (line, column + typed), "x"))
        await client.inline(uri, line, column + typed + 1)
    after = psutil.Process(client.process.pid).cpu_times()
    assert after.user + after.system - before.user - before.system < 10 * 0.1


@pytest.mark.slow
async def test_21_a_large_file_and_a_long_line_do_not_stall() -> None:
    large = "def f(a, b):\n    return a + b  # é🤦\n\n" * 41_000 + "y = "
    assert len(large) > 1_500_000
    async with server() as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open(large, uri="file:///large.py")
        await typing_is_quick(client, uri, large.count("\n"), 4)
        uri = client.open("x = [" + "1234567, " * 34_000, uri="file:///long.js", language="javascript")
        await typing_is_quick(client, uri, 0, 5)
        uri = client.open("x = [" + "'é🤦', " * 50_000, uri="file:///long.py")
        await typing_is_quick(client, uri, 0, 5)
