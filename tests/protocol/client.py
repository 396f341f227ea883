"""A raw JSON-RPC client for the real server process: sends what it is told to, well-formed or not, and awaits events.

Knows framing and ids, no LSP types: so a test can say exactly what goes over the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

SAFETY = 30.0
"""Seconds after which a test gives up waiting for an event: a net, never a measure."""


class RpcError(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]


class Client:
    """One server process and the stream of what it says."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.notifications: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.unclaimed: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {"workspace/applyEdit": {"applied": True}}
        self.configuration: Any = None
        self.configuration_of: dict[str, Any] = {}
        self._next_id = 0
        self._waiting: dict[int | str, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    # --- sending

    def send_raw(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def send_body(self, body: bytes) -> None:
        self.send_raw(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def send(self, message: Any) -> None:
        self.send_body(json.dumps(message).encode())

    def notify(self, method: str, params: Any = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    def start(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Send a request; its id and the future of the whole response."""
        self._next_id += 1
        future = self.expect(self._next_id)
        self.send(
            {"jsonrpc": "2.0", "id": self._next_id, "method": method} | ({} if params is None else {"params": params})
        )
        return self._next_id, future

    def expect(self, msg_id: int | str) -> asyncio.Future[dict[str, Any]]:
        """The future of the response to a message that is sent by hand."""
        future = self._waiting[msg_id] = asyncio.get_running_loop().create_future()
        return future

    async def request(self, method: str, params: Any = None) -> Any:
        """The result of a request. Raises RpcError for an error reply."""
        return result_of(await within(self.start(method, params)[1]))

    # --- waiting

    async def notification(self, method: str, matches: Callable[[Any], bool] = lambda params: True) -> Any:
        """The params of the first notification of this kind, past or to come."""
        return await self._first(
            lambda: next(
                (m["params"] for m in self.notifications if m["method"] == method and matches(m["params"])), None
            )
        )

    async def requested(self, method: str) -> Any:
        """The params of the first request of this kind by the server, past or to come."""
        return await self._first(lambda: next((m["params"] for m in self.requests if m["method"] == method), None))

    async def stray(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """A response that belongs to no request of ours: an error with id null, for example."""
        found: dict[str, Any] = await self._first(lambda: next((m for m in self.unclaimed if matches(m)), None))
        return found

    async def ended(self) -> int:
        """The exit code, once the process has ended."""
        return int(await within(self.process.wait()))

    def all(self, method: str) -> list[Any]:
        """The params of all notifications of a kind so far."""
        return [m["params"] for m in self.notifications if m["method"] == method]

    async def _first(self, find: Callable[[], Any]) -> Any:
        async def wait() -> Any:
            async with self._news:
                await self._news.wait_for(lambda: find() is not None)
                return find()

        return await within(wait())

    # --- life cycle

    async def initialize(self, **params: Any) -> Any:
        """initialize and initialized; the result."""
        given = {"processId": None, "rootUri": None, "capabilities": {}} | params
        result = await self.request("initialize", given)
        self.notify("initialized", {})
        return result

    async def shutdown(self) -> int:
        await self.request("shutdown")
        self.notify("exit")
        return await self.ended()

    # --- documents, in few words

    def open(self, text: str, uri: str = "file:///project/a.py", language: str = "python", version: int = 1) -> str:
        document = {"uri": uri, "languageId": language, "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})
        return uri

    def change(self, uri: str, version: int, *changes: Any) -> None:
        """Changes: a text (the whole document) or ((line, column), (line, column), text)."""
        events = [
            {"text": change}
            if isinstance(change, str)
            else {"range": {"start": position(*change[0]), "end": position(*change[1])}, "text": change[2]}
            for change in changes
        ]
        self.notify(
            "textDocument/didChange", {"textDocument": {"uri": uri, "version": version}, "contentChanges": events}
        )

    def ask(self, uri: str, line: int, column: int, *, explicit: bool = False, selected: Any = None) -> Any:
        """Start an inline completion: (id, future of the response)."""
        context: dict[str, Any] = {"triggerKind": 1 if explicit else 2}
        if selected is not None:
            context["selectedCompletionInfo"] = selected
        params = {"textDocument": {"uri": uri}, "position": position(line, column), "context": context}
        return self.start("textDocument/inlineCompletion", params)

    async def inline(self, uri: str, line: int, column: int, **options: Any) -> list[Any]:
        """The items of an inline completion, without the command that tells that they have been accepted."""
        result = result_of(await within(self.ask(uri, line, column, **options)[1]))
        return [{key: value for key, value in item.items() if key != "command"} for item in result["items"]]

    # --- reading

    async def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := await stream.readline()).strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if not line:
                break
            await self._take(json.loads(await stream.readexactly(length)))
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the server has ended"))
                future.exception()

    async def _take(self, message: dict[str, Any]) -> None:
        async with self._news:
            if "method" in message and "id" in message:
                self.requests.append(message)
                answer = self._answer(message)
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": answer})
            elif "method" in message:
                self.notifications.append(message)
            elif (future := self._waiting.pop(message["id"], None)) is not None:
                future.set_result(message)
            else:
                self.unclaimed.append(message)
            self._news.notify_all()

    def _answer(self, request: dict[str, Any]) -> Any:
        if request["method"] != "workspace/configuration":
            return self.answers.get(request["method"])
        scopes = [item.get("scopeUri") for item in request["params"]["items"]]
        return [self.configuration_of.get(uri, self.configuration) for uri in scopes]


def position(line: int, column: int) -> dict[str, int]:
    return {"line": line, "character": column}


def result_of(response: dict[str, Any]) -> Any:
    if "error" in response:
        raise RpcError(response["error"])
    return response["result"]


async def within(awaitable: Any) -> Any:
    return await asyncio.wait_for(awaitable, SAFETY)


@contextlib.asynccontextmanager
async def server(
    *entries: Any, cwd: Path | None = None, program: tuple[str, ...] = (), log: Any = None, engine: str = ""
) -> AsyncIterator[Client]:
    """A running server that answers from a script of `entries`, or from `engine`; ended when the block is left. `log`:
    an open file that its standard error goes to."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "script.json")
        script.write_text(json.dumps(entries))  # noqa: ASYNC240
        process = await asyncio.create_subprocess_exec(
            *(program or (midfill(),)), "lsp", "--engine", engine or f"scripted:{script}",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=log, limit=1 << 26,
            cwd=cwd,
        )  # fmt: skip
        client = Client(process)
        try:
            yield client
        finally:
            if process.stdin is not None:
                process.stdin.close()
            try:
                await client.ended()
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            await within(client._reader)


def midfill() -> str:
    """The console script of the environment that runs the tests."""
    return os.path.join(os.path.dirname(sys.executable), "midfill")  # noqa: PTH118, PTH120
