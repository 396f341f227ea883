"""Inline edits through the real server: what comes back, what is refused, and what happens to a document that changes
meanwhile. Texts carry the selection between two marks: `a = ⟦1⟧`."""

from __future__ import annotations

from typing import Any

import pytest

from lsp_server.documents import Document

from .client import Client, RpcError, position, result_of, server, within

VERSIONED = {"workspace": {"workspaceEdit": {"documentChanges": True}}}


def slow(**entry: Any) -> dict[str, Any]:
    """An answer that comes after 10,000 signs of life, which takes longer than any test."""
    return {"fill": "never", "drafts": [f"draft {step}" for step in range(10_000)], "delay_ms": 50_000} | entry


def marked(text: str) -> tuple[str, dict[str, Any]]:
    """A text without the marks, and the range between them."""
    before, selected, after = text.replace("⟧", "⟦").split("⟦")
    document = Document(uri="", version=1).with_text(before + selected + after, 1)
    start, end = (document.position_at(at, "utf-16") for at in (len(before), len(before + selected)))
    return document.text, {"start": position(*start), "end": position(*end)}


def applied(text: str, edits: list[Any]) -> str:
    """The text after edits as LSP has them: all of them speak of the text before."""
    document = Document(uri="", version=1).with_text(text, 1)
    for edit in reversed(edits):
        start, end = ((edit["range"][end]["line"], edit["range"][end]["character"]) for end in ("start", "end"))
        document = document.with_edit(start, end, edit["newText"], "utf-16", 1)
    return document.text


class Session:
    """One document in one server, and requests for its selection."""

    def __init__(self, client: Client, text: str, uri: str = "file:///project/a.py", language: str = "python") -> None:
        self.client = client
        self.text, self.range = marked(text)
        self.uri = client.open(self.text, uri, language)

    def start(self, method: str, **params: Any) -> Any:
        given = {"textDocument": {"uri": self.uri}, "range": self.range} | params
        return self.client.start(method, given)

    async def ask(self, method: str, **params: Any) -> Any:
        return result_of(await within(self.start(method, **params)[1]))

    async def edit(self, instruction: str = "change it", **params: Any) -> Any:
        return await self.ask("midfill/edit", instruction=instruction, **params)

    def changed(self, answer: Any, version: int = 1, text: str | None = None) -> str:
        """The document after the answer's edit, which is checked to be of this version."""
        (change,) = answer["edit"]["documentChanges"]
        assert change["textDocument"] == {"uri": self.uri, "version": version}
        return applied(self.text if text is None else text, change["edits"])


async def test_an_edit_comes_back_as_the_smallest_change_of_this_version() -> None:
    async with server({"fill": "    total = 0\n    for x in xs:\n        total += x\n"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "def f(xs):\n⟦    total = 1\n    for x in xs:\n        total += x\n⟧    return total\n")
        answer = await session.edit("start at zero", version=1)
        assert answer["edit"]["documentChanges"][0]["edits"] == [
            {"range": {"start": position(1, 12), "end": position(1, 13)}, "newText": "0"}
        ]
        assert (answer["version"], answer["range"]) == (1, session.range)
        assert session.changed(answer) == session.text.replace("= 1", "= 0")
