"""What of the protocol class the real server offers no way to provoke."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.server import Server


class Wire:
    """Collects what the server sends."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        self.messages.append(json.loads(data.split(b"\r\n\r\n", 1)[1]))

    def close(self) -> None:
        return None


def started() -> tuple[Server, Wire]:
    server, wire = Server("scripted:unused"), Wire()
    server.protocol.set_writer(wire)
    send(server, id=0, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
    return server, wire


def send(server: Server, **message: Any) -> None:
    server.protocol.handle_body(json.dumps({"jsonrpc": "2.0"} | message).encode())


async def test_cancelling_a_command_cancels_its_handler() -> None:
    server, wire = started()
    began, ended = asyncio.Event(), asyncio.Event()

    async def long(ls: Server) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server.command("test.long")(long)
    send(server, id=1, method="workspace/executeCommand", params={"command": "test.long"})
    await began.wait()
    send(server, method="$/cancelRequest", params={"id": 1})
    await ended.wait()
    await asyncio.sleep(0)
    assert [message["error"]["code"] for message in wire.messages if message.get("id") == 1] == [-32800]


async def test_shutdown_cancels_commands_and_requests_to_the_client() -> None:
    server, wire = started()
    waiting = server.protocol.send_request("client/something", {})
    send(server, id=1, method="shutdown")
    assert waiting.cancelled()
    assert wire.messages[-1]["result"] is None


async def test_a_handler_sees_the_document_of_its_own_moment() -> None:
    server, _ = started()
    seen: asyncio.Queue[str] = asyncio.Queue()

    async def look(ls: Server, params: Any) -> None:
        await asyncio.sleep(0)
        document = ls.protocol.snapshot()
        assert document is not None
        seen.put_nowait(document.text)

    server.feature("test/look")(look)
    document = {"uri": "u", "languageId": "python", "version": 1, "text": "old"}
    send(server, method="textDocument/didOpen", params={"textDocument": document})
    send(server, id=1, method="test/look", params={"textDocument": {"uri": "u"}})
    change = {"textDocument": {"uri": "u", "version": 2}, "contentChanges": [{"text": "new"}]}
    send(server, method="textDocument/didChange", params=change)
    send(server, id=2, method="test/look", params={"textDocument": {"uri": "u"}})
    assert [await seen.get(), await seen.get()] == ["old", "new"]


async def test_custom_params_arrive_as_they_were_sent() -> None:
    server, wire = started()
    params = {"from": 1, "a-b": {"class": [1]}, "jsonrpc": "1.0", "type_name": "x"}

    def echo(ls: Server, given: Any) -> Any:
        return given

    server.feature("test/echo")(echo)
    send(server, id=1, method="test/echo", params=params)
    assert wire.messages[-1]["result"] == params


async def test_results_of_custom_requests_stay_dicts() -> None:
    server, wire = started()
    answer = server.protocol.send_request_async("client/custom", {"a": 1})
    result = {"from": 1, "jsonrpc": "1.0", "type_name": "y"}
    send(server, id=wire.messages[-1]["id"], result=result)
    assert await answer == result


METHODS = (
    "initialize", "shutdown", "midfill/why", "textDocument/inlineCompletion", "textDocument/completion",
    "textDocument/didOpen", "textDocument/didChange", "workspace/executeCommand", "workspace/didChangeConfiguration",
    "workspace/didChangeWorkspaceFolders", "$/cancelRequest", "no/such", "", 5, None,
)  # fmt: skip
KEYS = ("textDocument", "uri", "position", "line", "character", "context", "triggerKind", "contentChanges", "text",
        "range", "start", "end", "command", "arguments", "settings", "id", "version", "jsonrpc", "event")  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["u", "", "midfill.why"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40)
@given(
    method=st.sampled_from(METHODS), params=anything, with_id=st.booleans(), jsonrpc=st.sampled_from(["2.0", 2, None])
)
def test_every_request_is_answered_exactly_once(method: Any, params: Any, with_id: bool, jsonrpc: Any) -> None:
    async def run() -> list[dict[str, Any]]:
        server, wire = started()
        message = {"jsonrpc": jsonrpc, "method": method, "params": params} | ({"id": "it"} if with_id else {})
        server.protocol.handle_body(json.dumps(message).encode())
        await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()}, return_exceptions=True)
        return [message for message in wire.messages if message.get("id") == "it"]

    answers = asyncio.run(run())
    assert len(answers) == with_id
    assert all(("result" in answer) != ("error" in answer) for answer in answers)
