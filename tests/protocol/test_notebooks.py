"""Notebooks (25): cells are documents, earlier cells are context, whatever happens to the order of the cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.protocol.client import Client, server

QUICK = {"debounceMs": 0}
BOOK = "file:///project/book.ipynb"


def cell(name: str) -> str:
    return f"vscode-notebook-cell:/project/book.ipynb#{name}"


def code(name: str) -> dict[str, Any]:
    return {"kind": 2, "document": cell(name)}


def item(name: str, text: str) -> dict[str, Any]:
    return {"uri": cell(name), "languageId": "python", "version": 1, "text": text}


def opened(client: Client, **texts: str) -> None:
    book = {"uri": BOOK, "notebookType": "jupyter-notebook", "version": 1, "cells": [code(name) for name in texts]}
    client.notify(
        "notebookDocument/didOpen",
        {"notebookDocument": book, "cellTextDocuments": [item(name, text) for name, text in texts.items()]},
    )


def changed(client: Client, **cells: Any) -> None:
    client.notify(
        "notebookDocument/didChange", {"notebookDocument": {"uri": BOOK, "version": 2}, "change": {"cells": cells}}
    )


def requests(prompts: Path) -> list[Any]:
    return [json.loads(line) for line in prompts.read_text().splitlines()] if prompts.exists() else []


async def prefix(client: Client, prompts: Path, name: str, line: int, column: int) -> str:
    """What stands before the cursor in the request that this place makes."""
    before = len(requests(prompts))
    await client.inline(cell(name), line, column, explicit=True)
    (asked,) = requests(prompts)[before:]
    return str(asked["prefix"])


async def test_25_cells_before_the_cursor_are_context(tmp_path: Path) -> None:
    prompts = tmp_path / "prompts"
    async with server({"log": str(prompts)}) as client:
        capabilities = {"notebookDocument": {"synchronization": {}}}
        result = await client.initialize(capabilities=capabilities, initializationOptions=QUICK)
        assert result["capabilities"]["notebookDocumentSync"] == {"notebookSelector": [{"notebook": "*"}]}
        opened(client, one="import numpy\n", two="x = ", three="later = 3")
        assert await prefix(client, prompts, "two", 0, 4) == "import numpy\n\nx = "
        assert await prefix(client, prompts, "one", 0, 6) == "import"

        # typing in a cell
        edit = {"range": {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 4}}, "text": "1"}
        changed(client, textContent=[{"document": {"uri": cell("two"), "version": 2}, "changes": [edit]}])
        assert await prefix(client, prompts, "three", 0, 8) == "import numpy\n\nx = 1\n\nlater = "

        # a cell is put in, another one goes
        array = {"start": 1, "deleteCount": 1, "cells": [code("new")]}
        structure = {"array": array, "didOpen": [item("new", "n = 0")], "didClose": [{"uri": cell("two")}]}
        changed(client, structure=structure)
        assert await prefix(client, prompts, "three", 0, 8) == "import numpy\n\nn = 0\n\nlater = "
        assert await client.inline(cell("two"), 0, 1, explicit=True) == []

        # the last cell moves to the front; a cell becomes prose
        changed(
            client, structure={"array": {"start": 0, "deleteCount": 3, "cells": [*map(code, ("three", "one", "new"))]}}
        )
        changed(client, data=[{"kind": 1, "document": cell("one")}])
        assert await prefix(client, prompts, "new", 0, 4) == "later = 3\n\nn = "
        assert await prefix(client, prompts, "three", 0, 8) == "later = "

        client.notify(
            "notebookDocument/didClose",
            {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": [{"uri": cell("new")}]},
        )
        assert await client.inline(cell("three"), 0, 8, explicit=True) == []


async def test_an_item_in_a_cell_lies_in_the_cell() -> None:
    async with server({"fill": "numpy.zeros(3)"}) as client:
        await client.initialize(initializationOptions=QUICK)
        opened(client, one="import numpy\n\n\n", two="a = 1\nx = )")
        (made,) = await client.inline(cell("two"), 1, 4)
        assert made["range"]["start"] == {"line": 1, "character": 4}


async def test_an_empty_cell_has_the_cells_before_it() -> None:
    async with server({"after": "", "fill": "y = x"}) as client:
        await client.initialize(initializationOptions=QUICK)
        opened(client, none="", one="x = 1\n", two="")
        assert await client.inline(cell("none"), 0, 0) == []
        assert [made["insertText"] for made in await client.inline(cell("two"), 0, 0)] == ["y = x"]


async def test_odd_notebook_messages_do_no_harm(tmp_path: Path) -> None:
    async with server({"after": "x = ", "fill": "1"}) as client:
        await client.initialize(initializationOptions=QUICK)
        changed(client, textContent=[{"document": {"uri": cell("no"), "version": 2}, "changes": [{"text": "x"}]}])
        changed(client, structure={"array": {"start": 7, "deleteCount": 9}})
        changed(client)
        client.notify("notebookDocument/didClose", {"notebookDocument": {"uri": BOOK}, "cellTextDocuments": []})
        client.notify("notebookDocument/didOpen", {"notebookDocument": 3})
        opened(client, one="x = ")
        assert await client.inline(cell("one"), 0, 4)
        assert client.all("window/showMessage") == []
