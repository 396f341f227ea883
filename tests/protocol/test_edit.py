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
        session = Session(
            client, "def f(xs):\n⟦    total = 1\n    for x in xs:\n        total += x\n⟧    return total\n"
        )
        answer = await session.edit("start at zero", version=1)
        assert answer["edit"]["documentChanges"][0]["edits"] == [
            {"range": {"start": position(1, 12), "end": position(1, 13)}, "newText": "0"}
        ]
        assert (answer["version"], answer["range"]) == (1, session.range)
        assert session.changed(answer) == session.text.replace("= 1", "= 0")


async def test_drafts_come_under_the_token_and_are_made_fit() -> None:
    script = {"fill": "a(2)\nb()\n", "drafts": ["a(2)", "```python\na(2)\nb("]}
    async with server(script) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "def f():\n⟦    a(1)\n⟧")
        answer = await session.edit(draftToken="t1")
        assert client.all("midfill/editDraft") == [
            {"token": "t1", "text": "    a(2)\n"},
            {"token": "t1", "text": "    a(2)\n    b(\n"},
        ]
        assert answer["text"] == "    a(2)\n    b()\n"


async def test_without_a_token_there_are_no_drafts() -> None:
    async with server({"fill": "2", "drafts": ["1", "2"]}) as client:
        await client.initialize(capabilities=VERSIONED, initializationOptions={"drafts": True})
        session = Session(client, "a = ⟦1⟧\n")
        assert session.changed(await session.edit()) == "a = 2\n"
        assert client.all("midfill/editDraft") == client.all("midfill/draft") == []


async def test_a_fill_masks_the_selection() -> None:
    async with server({"after": "f(", "fill": "b, c"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "f(⟦a⟧) + 1\n")
        assert session.changed(await session.ask("midfill/fill")) == "f(b, c) + 1\n"


async def test_27_a_change_above_moves_the_edit() -> None:
    async with server({"fill": "b = 3", "drafts": ["b", "b ="], "delay_ms": 200}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = 1\n⟦b = 2\n⟧c = 3\n")
        _, answer = session.start("midfill/edit", instruction="three", draftToken=1)
        await client.notification("midfill/editDraft")
        client.change(session.uri, 2, ((0, 0), (0, 0), "# é\n\n"), ((4, 0), (4, 1), "d"))
        result = result_of(await within(answer))
        text = "# é\n\na = 1\nb = 2\nd = 3\n"
        assert session.changed(result, 2, text) == text.replace("b = 2", "b = 3")
        assert result["range"]["start"] == position(3, 0)


@pytest.mark.parametrize("method", ["midfill/edit", "midfill/fill"])
async def test_27_a_change_of_the_selection_refuses_the_edit(method: str) -> None:
    async with server({"fill": "b = 3", "drafts": ["b", "b ="], "delay_ms": 200}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = 1\n⟦b = 2\n⟧c = 3\n")
        _, answer = session.start(method, instruction="three", draftToken=1)
        await client.notification("midfill/editDraft")
        client.change(session.uri, 2, ((1, 4), (1, 5), "7"))
        result = result_of(await within(answer))
        assert result == {
            "edit": None,
            "message": "the selection was changed meanwhile, so nothing was changed: ask again",
        }
        assert client.all("window/showMessage") == []


async def test_27_a_range_of_another_version_is_refused() -> None:
    async with server({"fill": "3"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        client.change(session.uri, 2, ((0, 0), (0, 0), "b = a = "))
        assert (await session.edit(version=1))["edit"] is None
        assert (await session.edit(version=2))["edit"] is not None


async def test_28_an_indented_block_keeps_its_indentation_and_only_changed_lines_are_touched() -> None:
    async with server({"fill": "for x in xs:\n    if x:\n        use(x)\ndone()"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(
            client, "class A:\n    def f(self):\n⟦        for x in xs:\n            use(x)\n        done()\n⟧"
        )
        answer = await session.edit()
        assert session.changed(answer) == (
            "class A:\n    def f(self):\n"
            "        for x in xs:\n            if x:\n                use(x)\n        done()\n"
        )
        (edit,) = answer["edit"]["documentChanges"][0]["edits"]
        assert edit["range"]["start"]["line"] == edit["range"]["end"]["line"] == 3


async def test_29_a_model_without_instructions_says_so_once_and_offers_to_fill() -> None:
    refusal = {"code": "unsupported", "message": "it takes no instructions", "hint": "choose big-model"}
    async with server({"error": refusal}, {"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        answer = await session.edit()
        assert (answer["edit"], answer["offer"]) == (None, "midfill/fill")
        assert "big-model" in answer["message"]
        assert session.changed(await session.ask(answer["offer"])) == "a = 2\n"
        assert client.all("window/showMessage") == []


async def test_line_ends_and_columns_of_utf_16() -> None:
    async with server({"fill": "s = '🤦' + '🏽'\nt = 1\n"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a\r\n⟦s = '🤦' + '🤷'\r\n⟧b\r\n")
        answer = await session.edit()
        assert session.changed(answer) == "a\r\ns = '🤦' + '🏽'\r\nt = 1\r\nb\r\n"


async def test_an_empty_range_stands_for_its_line() -> None:
    async with server({"fill": "    return 2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "def f():\n    ret⟦⟧urn 1\n")
        assert session.changed(await session.edit()) == "def f():\n    return 2\n"


async def test_a_cancelled_edit_ends_at_once() -> None:
    async with server(slow()) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        number, answer = session.start("midfill/edit", instruction="two", draftToken="t")
        await client.notification("midfill/editDraft")
        client.notify("$/cancelRequest", {"id": number})
        assert (await within(answer))["error"]["code"] == -32800
        assert "cancelled" in (await client.request("midfill/why"))["sentence"]


async def test_an_edit_goes_on_while_one_types() -> None:
    async with server(
        {"after": "a = ", "fill": "2", "drafts": ["2"], "delay_ms": 100}, {"after": "b = ", "fill": "1"}
    ) as client:
        await client.initialize(capabilities=VERSIONED, initializationOptions={"debounceMs": 0})
        session = Session(client, "a = ⟦1⟧\nb = \n")
        _, answer = session.start("midfill/fill", draftToken="t")
        await client.notification("midfill/editDraft")
        assert (await client.inline(session.uri, 1, 4))[0]["insertText"] == "1"
        assert session.changed(result_of(await within(answer))) == "a = 2\nb = \n"


async def test_secrets_and_what_is_switched_off_are_refused() -> None:
    async with server({"log": "/dev/null"}, {"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        secret = Session(client, "TOKEN=⟦1⟧\n", uri="file:///project/.env", language="plaintext")
        for method in ("midfill/edit", "midfill/fill"):
            answer = await secret.ask(method, instruction="x")
            assert answer["edit"] is None
            assert "left alone" in answer["message"]
        await client.request("workspace/executeCommand", {"command": "midfill.toggle"})
        session = Session(client, "a = ⟦1⟧\n")
        assert "switched off" in (await session.edit())["message"]
        gone = await client.request(
            "midfill/edit", {"textDocument": {"uri": "file:///b.py"}, "range": session.range, "instruction": "x"}
        )
        assert "not open" in gone["message"]


@pytest.mark.parametrize(
    "params",
    [
        None,
        {},
        {"range": None},
        {"range": {"start": {"line": -1, "character": 0}, "end": {"line": 0, "character": 0}}},
        {"range": {"start": {"line": 0}, "end": {"line": 0, "character": 0}}},
        {"textDocument": {}},
        {"instruction": 7},
        {"version": "1"},
        {"seed": -1},
        {"seed": 2**63},
        {"seed": True},
    ],
)
async def test_what_makes_no_sense_is_answered_with_an_error(params: Any) -> None:
    async with server({"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        given = {"textDocument": {"uri": session.uri}, "range": session.range, "instruction": "x"}
        sent = None if params is None else {"command": "no edit"} if params == {} else given | params
        with pytest.raises(RpcError, match="-32602"):
            await client.request("midfill/edit", sent)
        assert session.changed(await session.edit()) == "a = 2\n"
