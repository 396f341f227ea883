"""Edits for editors that know nothing of ours: code actions, commands, workspace/applyEdit, progress, messages."""

from __future__ import annotations

from typing import Any

import pytest

from .client import Client, RpcError, server
from .test_edit import VERSIONED, Session, slow

FILL, EDIT = "midfill.fillSelection", "midfill.editSelection"
LITERALS: Any = {"textDocument": {"codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": []}}}}}
PROGRESS: Any = {"window": {"workDoneProgress": True}}
ASKING: Any = {"window": {"showMessage": {"messageActionItem": {}}}}


async def run(session: Session, command: str, **where: Any) -> Any:
    """The command with the selection, as its code action has it."""
    given = {"textDocument": {"uri": session.uri}, "range": session.range} | where
    return await session.client.request("workspace/executeCommand", {"command": command, "arguments": [given]})


async def actions(session: Session, **context: Any) -> Any:
    given = {"textDocument": {"uri": session.uri}, "range": session.range, "context": {"diagnostics": []} | context}
    return await session.client.request("textDocument/codeAction", given)


async def change(session: Session) -> str:
    """The document after what the server has the client apply."""
    return session.changed(await session.client.requested("workspace/applyEdit"))


async def said(client: Client) -> str:
    return str((await client.notification("window/showMessage"))["message"])


async def test_a_code_action_fills_the_selection() -> None:
    async with server({"fill": "2"}) as client:
        capabilities = await client.initialize(capabilities=VERSIONED | LITERALS)
        assert capabilities["capabilities"]["codeActionProvider"] == {"codeActionKinds": ["refactor.rewrite"]}
        session = Session(client, "a = ⟦1⟧\n")
        fill, _ = await actions(session)
        assert (fill["title"], fill["kind"]) == ("midfill: fill the selection anew", "refactor.rewrite")
        call = {"command": fill["command"]["command"], "arguments": fill["command"]["arguments"]}
        assert await client.request("workspace/executeCommand", call) is True
        assert await change(session) == "a = 2\n"


async def test_a_code_action_edits_as_the_comment_above_says() -> None:
    async with server({"fill": "a = [1, 2]\n"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "# midfill: sort it\n⟦a = [2, 1]\n⟧")
        _, edit = await actions(session)
        assert edit["title"] == "midfill: edit the selection: sort it"
        await client.request("workspace/executeCommand", {"command": edit["command"], "arguments": edit["arguments"]})
        assert await change(session) == "# midfill: sort it\na = [1, 2]\n"


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("def f(a):\n⟦    # midfill: add one\n    return a\n⟧", "python"),
        ("  // add one\n⟦  return a\n⟧", "javascript"),
        ("/* add one */\r\n⟦return a\r\n⟧", "css"),
        ("<!-- midfill: add one -->\n⟦<p>a</p>\n⟧", "html"),
        ("# add one\n⟦say a⟧", "unheard-of"),
    ],
)
async def test_an_instruction_in_the_document(text: str, language: str) -> None:
    async with server({"fill": "written"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, text, uri="file:///project/x", language=language)
        assert (await actions(session))[1]["title"] == "midfill: edit the selection: add one"
        await run(session, EDIT)
        assert "add one" in (result := await change(session))
        assert result.rstrip().endswith("written")


async def test_without_an_instruction_the_command_says_how_to_give_one() -> None:
    async with server({"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "x = 0\na = ⟦1⟧\n")
        assert await run(session, EDIT) is False
        assert "there is no instruction: select below a comment" in await said(client)
        assert await run(session, EDIT, instruction="two") is True
        assert await change(session) == "x = 0\na = 2\n"


async def test_where_no_actions_are_offered() -> None:
    async with server() as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        assert len(await actions(session, only=["refactor"])) == 2
        assert await actions(session, only=["quickfix", "source.organizeImports"]) == []
        assert await actions(Session(client, "a = 1⟦⟧\n")) == []
        assert await actions(Session(client, "TOKEN=⟦1⟧\n", uri="file:///project/.env", language="plaintext")) == []


async def test_a_client_without_versions_gets_plain_changes() -> None:
    async with server({"fill": "2"}) as client:
        await client.initialize()
        session = Session(client, "a = ⟦1⟧\n")
        await run(session, FILL)
        edit = (await client.requested("workspace/applyEdit"))["edit"]
        assert edit == {"changes": {session.uri: [{"range": session.range, "newText": "2"}]}}


async def test_what_the_editor_does_not_apply_is_told() -> None:
    async with server({"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        client.answers["workspace/applyEdit"] = {"applied": False, "failureReason": "it is read-only"}
        await run(Session(client, "a = ⟦1⟧\n"), FILL)
        assert "not taken the change over: it is read-only" in await said(client)


async def test_a_version_that_is_gone_is_refused() -> None:
    async with server({"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED)
        session = Session(client, "a = ⟦1⟧\n")
        assert await run(session, FILL, version=7) is False
        assert "has changed since" in await said(client)


async def test_the_progress_can_be_cancelled() -> None:
    async with server(slow(), {"after": "b = ", "fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED | PROGRESS)
        session = Session(client, "a = ⟦1⟧\n")
        await run(session, EDIT, instruction="two")
        token = (await client.notification("$/progress", lambda news: "editing" in news["value"].get("title", "")))[
            "token"
        ]

        async def until(kind: str) -> None:
            await client.notification(
                "$/progress", lambda news: (news["token"], news["value"]["kind"]) == (token, kind)
            )

        await until("report")
        client.notify("window/workDoneProgress/cancel", {"token": token})
        await until("end")
        assert "cancelled" in (await client.request("midfill/why"))["sentence"]
        assert client.all("window/showMessage") == []
        assert [request["method"] for request in client.requests if request["method"] == "workspace/applyEdit"] == []


async def test_where_the_model_takes_no_instructions_the_message_offers_to_fill() -> None:
    refusal = {"code": "unsupported", "message": "it takes no instructions", "hint": "choose big-model"}
    async with server({"error": refusal}, {"fill": "2"}) as client:
        await client.initialize(capabilities=VERSIONED | ASKING)
        client.answers["window/showMessageRequest"] = {"title": "midfill: fill the selection anew"}
        session = Session(client, "a = ⟦1⟧\n")
        await run(session, EDIT, instruction="two")
        assert await change(session) == "a = 2\n"
        asked = await client.requested("window/showMessageRequest")
        assert "big-model" in asked["message"]


async def test_a_client_that_can_only_show_messages_is_told_once() -> None:
    async with server({"error": {"code": "unsupported", "message": "it takes no instructions"}}) as client:
        await client.initialize(capabilities=VERSIONED)
        await run(Session(client, "a = ⟦1⟧\n"), EDIT, instruction="two")
        assert "it takes no instructions" in await said(client)
        assert len(client.all("window/showMessage")) == 1


@pytest.mark.parametrize("where", [None, 7, {}, {"textDocument": {"uri": 1}}, {"instruction": 1}])
async def test_arguments_that_make_no_sense(where: Any) -> None:
    async with server() as client:
        await client.initialize(capabilities=VERSIONED)
        for command in (FILL, EDIT):
            with pytest.raises(RpcError, match="-32602"):
                await client.request("workspace/executeCommand", {"command": command, "arguments": [where]})
