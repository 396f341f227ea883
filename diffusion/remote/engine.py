"""A server as the scheduler sees it: an engine that answers several requests side by side.

The server is probed when the engine is loaded, and again by the next request whenever it could not be reached: a server
may start after its clients. Deadlines are kept here: the best text so far is the answer, never half an edit. Knows
neither HTTP nor how a backend fills.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

from diffusion.api import Cost, EditRequest, EngineError, Event, FillRequest, Finish, Result
from diffusion.remote.bridge import Bridge
from diffusion.remote.connection import Connection
from diffusion.remote.openai import OpenAiBackend
from diffusion.remote.settings import Remote, api_key, load_remote
from diffusion.remote.vllm import VllmBackend
from diffusion.remote.work import Backend, Emit, Served, Work

BACKENDS: dict[str, Callable[[Connection, Bridge], Backend]] = {"openai": OpenAiBackend, "vllm": VllmBackend}


class RemoteEngine:
    """`parallel`: so many requests may run at the same time, each in a thread of the scheduler's. `note`: what a status
    should tell, "" if all is well."""

    def __init__(self, remote: Remote, key: str) -> None:
        self.name, self.title, self.device, self.note = remote.name, remote.title, remote.url, ""
        self.parallel = remote.parallel
        self._remote = remote
        bare = key and not remote.loopback and remote.url.startswith("http:")
        self._exposed = f"the key travels to {remote.url} unencrypted: take https" if bare else ""
        self._bridge = Bridge()
        self._backend = BACKENDS[remote.backend](Connection(remote, key), self._bridge)
        self._probing = asyncio.Lock()
        self._served: Served | None = None

    def probe(self) -> None:
        """Look at the server; what is wrong with it becomes the note."""
        self._bridge.run(self._probe())

    def fill(
        self, request: FillRequest | EditRequest, *, arrived: float, cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        """Drafts if asked for, then one result; nothing more once `cancelled` says so. Raises EngineError."""
        return self._bridge.events(lambda emit: self._answer(request, arrived, emit), cancelled)

    async def _probe(self) -> None:
        try:
            await self._ready()
        except EngineError as error:
            self.note = f"{error.message}: {error.hint}"

    async def _ready(self) -> Served:
        async with self._probing:
            if self._served is None:
                served = self._served = await self._backend.probe()
                self.device = f"{served.server} at {self._remote.url}, {served.model or 'its model'}"
                self.note = served.note or self._exposed
            return self._served

    async def _answer(self, request: FillRequest | EditRequest, arrived: float, emit: Emit) -> Result:
        work = Work(request=request, emit=emit)
        left = None if request.deadline_ms is None else arrived + request.deadline_ms / 1000 - time.monotonic()
        finish: Finish
        try:
            async with asyncio.timeout(left):
                served = await self._ready()
                finish = await self._backend.write(work, served)
        except TimeoutError:
            finish = "deadline"
        except EngineError as error:
            if error.code == "unavailable":
                self._served, self.note = None, f"{error.message}: {error.hint}"
            raise
        return self._result(work, finish, arrived)

    def _result(self, work: Work, finish: Finish, arrived: float) -> Result:
        # Half of an edit would lose the other half of the selection.
        half = finish != "stop" and isinstance(work.request, EditRequest)
        return Result(
            candidates=() if half else work.candidates,
            finish=finish,
            cost=Cost(forwards=work.forwards, ms=(time.monotonic() - arrived) * 1000),
            model=self.name,
        )


def load(name: str) -> RemoteEngine:
    """The engine for the profile of that name. What is wrong with the profile is raised as EngineError; what is wrong
    with the server only becomes the engine's note, since it may pass."""
    remote = load_remote(name)
    engine = RemoteEngine(remote, api_key(remote))
    engine.probe()
    return engine
