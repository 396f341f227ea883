"""Messages that are wrong in every way: each request is answered exactly once, and the server goes on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from .client import Client, RpcError, server, within

COMMAND = "workspace/executeCommand"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with server({"after": "x = ", "fill": "1"}) as started:
        await started.initialize()
        yield started
        uri = started.open("x = ", uri="file:///still/works.py")
        assert await started.inline(uri, 0, 4, explicit=True)
        assert await started.shutdown() == 0


async def error_of(client: Client, message: dict[str, Any]) -> dict[str, Any]:
    future = client.expect(message["id"])
    client.send(message)
    error: dict[str, Any] = (await within(future))["error"]
    return error


async def test_what_is_no_message_gets_an_error_without_id(client: Client) -> None:
    for body, code in (
        (b"{", -32700),
        (b"\xff\xfe{}", -32700),
        (b"[" * 100_000, -32700),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "shutdown"}]', -32600),
        (b"7", -32600),
        (b'{"jsonrpc": "2.0"}', -32600),
        (b'{"jsonrpc": "2.0", "id": null, "method": "midfill/why"}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "midfill/why"}', -32600),
    ):
        client.unclaimed.clear()
        client.send_body(body)
        answer = await client.stray(lambda message: message["id"] is None)
        assert answer["error"]["code"] == code, body[:60]


async def test_malformed_requests_get_an_error_with_their_id(client: Client) -> None:
    inline = "textDocument/inlineCompletion"
    good: dict[str, Any] = {
        "textDocument": {"uri": "file:///a.py"},
        "position": {"line": 0, "character": 0},
        "context": {"triggerKind": 1},
    }
    wrong: list[tuple[int, dict[str, Any]]] = [
        (-32600, {"method": inline, "params": good, "jsonrpc": "1.0"}),
        (-32600, {"method": 5}),
        (-32601, {"method": "no/such", "params": {}}),
        (-32602, {"method": inline}),
        (-32602, {"method": inline, "params": None}),
        (-32602, {"method": inline, "params": []}),
        (-32602, {"method": inline, "params": good | {"context": {"triggerKind": 0}}}),
        (-32602, {"method": inline, "params": good | {"context": {"triggerKind": "x"}}}),
        (-32602, {"method": inline, "params": good | {"position": {"line": -1, "character": 0}}}),
        (-32602, {"method": inline, "params": good | {"position": {"line": 1e300, "character": 0}}}),
        (-32602, {"method": inline, "params": good | {"textDocument": 3}}),
        (-32602, {"method": COMMAND, "params": {"command": "no.such"}}),
        (-32602, {"method": COMMAND, "params": {"command": "midfill.why", "arguments": [1, 2]}}),
        (-32600, {"method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}),
    ]
    for number, (code, body) in enumerate(wrong):
        message = {"jsonrpc": "2.0", "id": f"wrong {number}"} | body
        assert (await error_of(client, message))["code"] == code, body


async def test_commands_take_the_arguments_that_they_have(client: Client) -> None:
    for arguments in ({}, {"arguments": []}, {"arguments": None}):
        assert "nothing has been asked" in await client.request(COMMAND, {"command": "midfill.why"} | arguments)
    message = {"jsonrpc": "2.0", "id": 1, "method": COMMAND, "params": {"command": "midfill.why", "arguments": [1, 2]}}
    assert "too many positional arguments" in (await error_of(client, message))["message"]


async def test_a_custom_request_may_come_without_params(client: Client) -> None:
    assert (await client.request("midfill/why"))["decisions"] == []


async def test_custom_params_stay_dicts_whatever_their_keys(client: Client) -> None:
    params = {"from": 1, "a-b": 2, "jsonrpc": "3", "class": {"type_name": "x"}, "textDocument": {"uri": 5, "id": 1}}
    assert (await client.request("midfill/why", params))["decisions"] == []


async def test_a_payload_key_named_jsonrpc_survives(client: Client) -> None:
    client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"jsonrpc": "2.0", "maxLines": 0}}})
    shown = await client.notification("window/showMessage")
    assert "maxLines" in shown["message"]


async def test_notifications_that_are_wrong_are_passed_over(client: Client) -> None:
    client.notify("no/such/notification", {"a": 1})
    client.notify("textDocument/didChange", {"textDocument": 7})
    client.change("file:///never/opened.py", 2, "text")
    client.notify("textDocument/didClose", {"textDocument": {"uri": "file:///never/opened.py"}})
    client.notify("$/cancelRequest", {"id": 999})
    client.notify("$/setTrace", {"value": "verbose"})
    client.send({"jsonrpc": "2.0", "id": 4711, "result": None})
    client.send({"jsonrpc": "2.0", "id": 4711, "error": {"nothing": "right"}})
    assert (await client.request("midfill/why"))["decisions"] == []
    assert client.all("window/showMessage") == []


async def test_sloppy_headers_and_absurd_lengths(client: Client) -> None:
    for number, header in enumerate((b"content-length:%d\n\n", b"CONTENT-LENGTH :  %d\r\nContent-Type: x\r\n\r\n")):
        body = json.dumps({"jsonrpc": "2.0", "id": f"header {number}", "method": "midfill/why"}).encode()
        future = client.expect(f"header {number}")
        client.send_raw(header % len(body) + body)
        assert "result" in await within(future)
    client.send_raw(b"Content-Length: 99999999999\r\n\r\n")
    assert (await client.stray(lambda message: message["id"] is None))["error"]["code"] == -32600
    assert (await client.request("midfill/why"))["decisions"] == []


async def test_requests_before_initialize_are_refused() -> None:
    async with server() as client:
        with pytest.raises(RpcError, match="-32002"):
            await client.request("midfill/why")
        with pytest.raises(RpcError, match="-32002"):
            await client.request("shutdown")
        client.open("ignored")
        await client.initialize()
        assert (await client.request("midfill/why"))["decisions"] == []


async def test_requests_after_shutdown_are_refused() -> None:
    async with server() as client:
        await client.initialize()
        await client.request("shutdown")
        with pytest.raises(RpcError, match="-32600"):
            await client.request("midfill/why")
        client.notify("exit")
        assert await client.ended() == 0
