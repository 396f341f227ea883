"""`textDocument/completion`: the same completions in a menu, and for whom."""

from __future__ import annotations

from typing import Any

import pytest

from .client import Client, position, server

QUICK = {"debounceMs": 0}


async def popup(client: Client, uri: str, line: int, column: int) -> list[Any]:
    params = {"textDocument": {"uri": uri}, "position": position(line, column), "context": {"triggerKind": 1}}
    result = await client.request("textDocument/completion", params)
    assert result["isIncomplete"]
    items: list[Any] = result["items"]
    return items


async def test_an_item_replaces_the_word_before_the_cursor_so_that_menus_keep_it() -> None:
    async with server({"after": "x.fo", "fill": "rmat(a)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("é🤦 = x.fo\n")
        (item,) = await popup(client, uri, 0, 10)
        assert item["label"] == "format(a)"
        assert item["filterText"] == "format(a)"
        assert item["textEdit"]["newText"] == "format(a)"
        assert item["textEdit"]["range"] == {"start": position(0, 8), "end": position(0, 10)}
        assert item["insertTextFormat"] == 1
        assert item["insertTextMode"] == 1


async def test_several_lines_and_a_rewritten_indentation() -> None:
    async with server({"fill": "else:\n        x = 2"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("if a:\n    x = 1\n    \n")
        (item,) = await popup(client, uri, 2, 4)
        assert item["label"] == "else: …"
        assert item["filterText"].startswith("    ")
        assert item["textEdit"] == {
            "newText": "else:\n    x = 2",
            "range": {"start": position(2, 0), "end": position(2, 4)},
        }


async def test_the_menu_is_offered_to_clients_without_ghost_text_only_but_always_answered() -> None:
    ghost = {"textDocument": {"inlineCompletion": {"dynamicRegistration": True}}}
    for capabilities, options, offered in (({}, {}, True), (ghost, {}, False), (ghost, {"popup": True}, True)):
        async with server({"fill": "1"}) as client:
            result = await client.initialize(capabilities=capabilities, initializationOptions=QUICK | options)
            assert ("completionProvider" in result["capabilities"]) == offered
            uri = client.open("x = ")
            assert [item["label"] for item in await popup(client, uri, 0, 4)] == ["1"]


async def test_nothing_is_an_empty_list() -> None:
    async with server() as client:
        await client.initialize(initializationOptions=QUICK)
        assert await popup(client, client.open("x = "), 0, 4) == []
        assert await popup(client, "file:///not/open.py", 0, 4) == []


async def test_what_stands_behind_the_cursor_is_left_to_clients_that_only_insert() -> None:
    async with server({"after": "print(", "fill": "a, b)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        uri = client.open("print()\n")
        (item,) = await popup(client, uri, 0, 6)
        assert (item["label"], item["filterText"]) == ("a, b", "a, b")
        assert item["textEdit"] == {"newText": "a, b", "range": {"start": position(0, 6), "end": position(0, 6)}}


@pytest.mark.parametrize(
    ("offered", "option", "column"),
    [(None, "utf-8", 9), (None, None, 6), (["utf-32"], "utf-8", 5), (None, "utf-7", 6), ([], "utf-32", 5)],
)
async def test_columns_of_a_client_that_means_others_than_it_says(
    offered: list[str] | None, option: str | None, column: int
) -> None:
    async with server({"after": "é🤦 = x", "fill": "1"}) as client:
        options = QUICK if option is None else {**QUICK, "positionEncoding": option}
        general = {} if offered is None else {"general": {"positionEncodings": offered}}
        result = await client.initialize(initializationOptions=options, capabilities=general)
        (item,) = await popup(client, client.open("é🤦 = x + y\n"), 0, column + 1)
        assert item["textEdit"]["range"] == {"start": position(0, column), "end": position(0, column + 1)}
        assert result["capabilities"]["positionEncoding"] == {9: "utf-8", 6: "utf-16", 5: "utf-32"}[column]
