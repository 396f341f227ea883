"""The language server as a child process on stdio, as an editor has it: requests, notifications, cancelling.

Knows JSON-RPC and its framing; nothing of completions.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from diffusion.api import EngineError

SERVER = (sys.executable, "-I", "-m", "lsp_server", "lsp")


class ServerProcess:
    """One window's server. Messages go out at once; answers are awaited one by one or side by side."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._ids = 0
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(cls, *arguments: str, environment: Mapping[str, str] | None = None) -> ServerProcess:
        pipe = asyncio.subprocess.PIPE
        return cls(
            await asyncio.create_subprocess_exec(
                *SERVER, *arguments, stdin=pipe, stdout=pipe, env=environment, limit=2**24
            )
        )

    async def initialize(self, options: Mapping[str, Any], encodings: Sequence[str] = ("utf-16",)) -> None:
        """initialize and initialized, for a client that ends with this process. Raises EngineError."""
        params = {
            "processId": None,
            "rootUri": None,
            "capabilities": {"general": {"positionEncodings": list(encodings)}},
            "initializationOptions": dict(options),
        }
        await self.request("initialize", params)
        self.notify("initialized", {})

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def begin(self, method: str, params: Any = None) -> tuple[int, asyncio.Future[Any]]:
        """Send a request: its id, and its result to come. The future raises EngineError for an error, also when the
        server ends."""
        self._ids += 1
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._reader.done():
            future.set_exception(_ended())
        self._waiting[self._ids] = future
        self._send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids, future

    async def request(self, method: str, params: Any = None) -> Any:
        """The result. Raises EngineError when the server ends or answers with an error."""
        return await self.begin(method, params)[1]

    def cancel(self, number: int) -> None:
        """The answer to a request is not wanted any more; its future is forgotten."""
        if future := self._waiting.pop(number, None):
            future.cancel()
            self.notify("$/cancelRequest", {"id": number})

    async def end(self) -> None:
        await self.request("shutdown")
        self.notify("exit", None)
        await self.process.wait()
        self._reader.cancel()

    def _send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        body = json.dumps(message).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                self._take(await self._receive())
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(_ended())

    async def _receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        header = await self.process.stdout.readuntil(b"\r\n\r\n")
        length = int(header.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        message: dict[str, Any] = json.loads(await self.process.stdout.readexactly(length))
        return message

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message:
            if "id" in message:  # the server asks for its configuration: there is none
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
            return
        future = self._waiting.pop(message["id"], None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(EngineError(f"the language server answered with: {message['error']['message']}"))
        else:
            future.set_result(message["result"])


def _ended() -> EngineError:
    return EngineError("the language server has ended unexpectedly", "see `midfill doctor`")
