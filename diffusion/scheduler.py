"""One queue and one thread that touches the accelerator: every request ends exactly once, the newest fill of a client
wins, and whose turn was longest ago comes next. Edits come behind fills, but not for ever, and nothing ends one but its
own client. An engine whose model is elsewhere may have more threads, one a request.

All bookkeeping happens on the event loop, so there are no locks: a thread only runs the synchronous generator of one
request at a time and hands its events over. Knows no HTTP, no torch and nothing of how a model works.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from diffusion.api import Draft, EditRequest, EngineError, Event, Failure, FillRequest, Progress, Result, State
from diffusion.waiting import Job, WaitingRoom

CAPACITY = 64
"""Fills that may wait. A client has at most one waiting, so this many clients can type at once."""
EDITS = 16
"""Edits that may wait."""
REST_SECONDS = 5.0
"""Without work, after which an engine may tidy up."""

OnProgress = Callable[[Progress], None]


class ModelEngine(Protocol):
    """A loaded model. Used from one thread only, unless it has a number `parallel`: from so many threads then. It may
    have `forget(client)`, called when a client has gone, and `rest()`, when there is nothing to do for a while."""

    name: str
    device: str

    def fill(
        self, request: FillRequest | EditRequest, *, arrived: float, cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        """Drafts, then exactly one result. `arrived` is time.monotonic() at the request's arrival, from which its
        deadline counts. Asks `cancelled` between denoising steps and returns at once, without a result, when it is
        true. Raises EngineError."""
        ...


class Scheduler:
    """Loads a model in its thread, then lets it answer one fill after the other.

    `load` is called once, in that thread; `on_change` on the event loop, whenever `state` or `progress` change.
    """

    def __init__(
        self,
        load: Callable[[OnProgress], ModelEngine],
        on_change: Callable[[], None] = lambda: None,
        capacity: int = CAPACITY,
        edits: int = EDITS,
    ) -> None:
        self._load = load
        self._on_change = on_change
        self._waiting = WaitingRoom(capacity, edits)
        self._running: list[Job] = []
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._wake = asyncio.Event()
        self._rest: asyncio.TimerHandle | None = None
        self._closed = False
        self.engine: ModelEngine | None = None
        self.progress: Progress | None = None
        self.error: EngineError | None = None
        """Why the model could not be loaded."""
        self.requests = 0
        """Fills and edits asked for since the start."""

    @property
    def state(self) -> State:
        if self._closed:
            return "stopped"
        if self.error:
            return "errored"
        if self.engine is None:
            return "loading"
        return "busy" if self._running or self._waiting else "ready"

    async def run(self) -> None:
        """Load and serve until cancelled. An exception of the model ends the request it belongs to and nothing else."""
        loop = asyncio.get_running_loop()
        try:
            loading = loop.run_in_executor(self._threads, self._load, self._report_to(loop))
            await asyncio.wait([loading])
            self.progress = None
            if error := loading.exception():
                self._fail(error)
            else:
                self.engine = loading.result()
                self._rest_later()
            self._on_change()
            parallel: int = getattr(self.engine, "parallel", 1)
            if parallel > 1:
                self._threads.shutdown(wait=False)
                self._threads = ThreadPoolExecutor(parallel, thread_name_prefix="model")
            while True:
                while not self._waiting or len(self._running) >= parallel:
                    self._wake.clear()
                    await self._wake.wait()
                job = self._waiting.next()
                self._running.append(job)
                filling = loop.run_in_executor(self._threads, self._drive, job, loop)
                filling.add_done_callback(functools.partial(self._ran, job))
        finally:
            for job in (*self._waiting, *self._running):
                job.end(_STOPPED)
            self._closed = True
            if self._rest:
                self._rest.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)

    def _ran(self, job: Job, filling: asyncio.Future[None]) -> None:
        """A thread is free again."""
        self._running.remove(job)
        if not filling.cancelled():
            job.end(filling.exception() or Failure(code="model", message="the model ended without an answer"))
        self._rest_later()
        self._wake.set()
        self._on_change()

    async def fill(self, request: FillRequest | EditRequest, *, arrived: float) -> AsyncGenerator[Event, None]:
        """The events of one request: drafts, then exactly one result or failure. Closing it cancels the request.

        While the model loads, the request waits, up to its deadline; then it ends with the code "loading". A fill of a
        client ends the older fills of the same client ("superseded"); an empty `client` is nobody in particular. What
        the model raises beyond EngineError is raised here.
        """
        loop = asyncio.get_running_loop()
        job = Job(request, arrived)
        self._accept(job)
        timer = None
        if request.deadline_ms is not None:
            timer = loop.call_later(arrived + request.deadline_ms / 1000 - loop.time(), self._expire, job)
        try:
            while True:
                event = await job.events.get()
                if isinstance(event, EngineError):
                    event = event.as_failure()
                if isinstance(event, BaseException):
                    raise event
                yield event
                if not isinstance(event, Draft):
                    return
        finally:
            if timer:
                timer.cancel()
            self._end(job, None)

    def forget(self, client: str) -> None:
        """A client has gone: the engine gives up what it keeps for it, after what runs now."""
        self._beside("forget", client)

    def close(self) -> None:
        """Take no more requests and end those that wait; the one that runs may finish."""
        self._closed = True
        for job in self._waiting:
            self._end(job, _STOPPED)
        self._on_change()

    def abandon(self) -> None:
        """End the running requests too: they have had time to finish."""
        for job in self._running:
            job.end(_STOPPED)

    def _accept(self, job: Job) -> None:
        """Let a job wait, in the place of the one it supersedes, or end it at once."""
        self.requests += 1
        if refusal := _STOPPED if self._closed else self.error:
            job.end(refusal)
            return
        client = job.request.client
        older = self._waiting.fills_of(client) if client and not job.is_edit else []
        if client and not job.is_edit:
            superseded = Result(candidates=(), finish="superseded", model=self.engine.name if self.engine else "")
            for other in (*older, *(other for other in self._running if other.side == job.side)):
                other.end(superseded)
        # The newer one takes over the place, or a fast typist would queue behind all others for ever.
        if gives_way := self._waiting.add(job, *older):
            gives_way.end(self._waiting.busy())
        self._wake.set()
        self._on_change()

    def _rest_later(self) -> None:
        if self._rest:
            self._rest.cancel()
        self._rest = asyncio.get_running_loop().call_later(REST_SECONDS, self._rest_if_idle)

    def _rest_if_idle(self) -> None:
        if not self._running and not self._waiting:
            self._beside("rest")

    def _beside(self, name: str, *arguments: str) -> None:
        """Let the model's thread call a method that an engine may have, between two requests."""
        if (method := getattr(self.engine, name, None)) and not self._closed:
            self._threads.submit(method, *arguments)

    def _expire(self, job: Job) -> None:
        """The deadline of a job that may still wait. While it runs, the model itself keeps the deadline."""
        if job in self._running or job.ended:
            return
        if self.engine is None:
            hint = "ask again in a few seconds"
            self._end(job, Failure(code="loading", message="the model is still being loaded", hint=hint))
        else:
            self._end(job, Result(candidates=(), finish="deadline", model=self.engine.name))

    def _end(self, job: Job, event: Event | None) -> None:
        job.end(event)
        if job in self._waiting:
            self._waiting.remove(job)
            self._on_change()

    def _fail(self, error: BaseException) -> None:
        """The model could not be loaded: say so to everyone who waits or comes later."""
        if not isinstance(error, EngineError):
            message = f"the model could not be loaded: {type(error).__name__}: {error}"
            error = EngineError(message, "see the log, or run `midfill doctor`", "model")
        self.error = error
        for job in self._waiting:
            self._end(job, error.as_failure())

    def _report_to(self, loop: asyncio.AbstractEventLoop) -> OnProgress:
        def on_loop(progress: Progress) -> None:
            self.progress = progress
            self._on_change()

        def in_thread(progress: Progress) -> None:
            loop.call_soon_threadsafe(on_loop, progress)

        return in_thread

    def _drive(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
        """In the model's thread: run one fill and hand its events to the loop."""
        assert self.engine is not None
        if job.cancelled.is_set():
            return
        for event in self.engine.fill(job.request, arrived=job.arrived, cancelled=job.cancelled.is_set):
            loop.call_soon_threadsafe(job.post, event)
            if job.cancelled.is_set():
                return


_STOPPED = Failure(code="unavailable", message="the engine is being stopped", hint="the next request starts a new one")
