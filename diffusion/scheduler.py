"""One queue and one thread that touches the accelerator: every request ends exactly once, the newest of a client wins,
and whose turn was longest ago comes next. An engine whose model is elsewhere may have more threads, one a request.

All bookkeeping happens on the event loop, so there are no locks: a thread only runs the synchronous generator of one
request at a time and hands its events over. Knows no HTTP, no torch and nothing of how a model works.
"""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from diffusion.api import Draft, EditRequest, EngineError, Event, Failure, FillRequest, Progress, Result, State

CAPACITY = 64
"""Requests that may wait. A client has at most one waiting, so this many clients can type at once."""

UNREAD_DRAFTS = 64
"""Drafts kept for a client that reads slowly; then the oldest go, since each replaces the ones before."""
REMEMBERED_TURNS = 1024
"""Clients whose last turn is remembered."""

OnProgress = Callable[[Progress], None]


class ModelEngine(Protocol):
    """A loaded model. Used from one thread only, unless it has a number `parallel`: from so many threads then."""

    name: str
    device: str

    def fill(
        self, request: FillRequest | EditRequest, *, arrived: float, cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        """Drafts, then exactly one result. `arrived` is time.monotonic() at the request's arrival, from which its
        deadline counts. Asks `cancelled` between denoising steps and returns at once, without a result, when it is
        true. Raises EngineError."""
        ...


@dataclass(eq=False)
class _Job:
    """One request on its way. `events` is read by its client; `cancelled` is read by the model's thread."""

    request: FillRequest | EditRequest
    arrived: float
    events: asyncio.Queue[Event | BaseException] = field(default_factory=asyncio.Queue)
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: bool = False

    def post(self, event: Event) -> None:
        """Hand over an event, unless the job has ended: a draft that is late is dropped."""
        if isinstance(event, Draft):
            if not self.ended:
                if self.events.qsize() >= UNREAD_DRAFTS:
                    self.events.get_nowait()
                self.events.put_nowait(event)
        else:
            self.end(event)

    def end(self, event: Event | BaseException | None) -> None:
        """The one place where a job ends; the first end wins. None: nobody listens any more."""
        if not self.ended:
            self.ended = True
            self.cancelled.set()
            if event is not None:
                self.events.put_nowait(event)


class Scheduler:
    """Loads a model in its thread, then lets it answer one fill after the other.

    `load` is called once, in that thread; `on_change` on the event loop, whenever `state` or `progress` change.
    """

    def __init__(
        self,
        load: Callable[[OnProgress], ModelEngine],
        on_change: Callable[[], None] = lambda: None,
        capacity: int = CAPACITY,
    ) -> None:
        self._load = load
        self._on_change = on_change
        self._capacity = capacity
        self._waiting: list[_Job] = []
        self._turn = 0
        self._turns: dict[str, int] = {}
        self._running: list[_Job] = []
        self._wake = asyncio.Event()
        self._closed = False
        self.engine: ModelEngine | None = None
        self.progress: Progress | None = None
        self.error: EngineError | None = None
        """Why the model could not be loaded."""
        self.requests = 0
        """Fills asked for since the start."""

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
        threads = ThreadPoolExecutor(1, thread_name_prefix="model")
        try:
            loading = loop.run_in_executor(threads, self._load, self._report_to(loop))
            await asyncio.wait([loading])
            self.progress = None
            if error := loading.exception():
                self._fail(error)
            else:
                self.engine = loading.result()
            self._on_change()
            parallel: int = getattr(self.engine, "parallel", 1)
            if parallel > 1:
                threads.shutdown(wait=False)
                threads = ThreadPoolExecutor(parallel, thread_name_prefix="model")
            while True:
                while not self._waiting or len(self._running) >= parallel:
                    self._wake.clear()
                    await self._wake.wait()
                job = self._next()
                self._running.append(job)
                filling = loop.run_in_executor(threads, self._drive, job, loop)
                filling.add_done_callback(functools.partial(self._ran, job))
        finally:
            for job in (*self._waiting, *self._running):
                job.end(_STOPPED)
            threads.shutdown(wait=False, cancel_futures=True)

    def _ran(self, job: _Job, filling: asyncio.Future[None]) -> None:
        """A thread is free again."""
        self._running.remove(job)
        if not filling.cancelled():
            job.end(filling.exception() or Failure(code="model", message="the model ended without an answer"))
        self._wake.set()
        self._on_change()

    async def fill(self, request: FillRequest | EditRequest, *, arrived: float) -> AsyncGenerator[Event, None]:
        """The events of one fill: drafts, then exactly one result or failure. Closing it cancels the request.

        While the model loads, the request waits, up to its deadline; then it ends with the code "loading". A request
        of a client ends the older ones of the same client ("superseded"); an empty `client` is nobody in particular.
        What the model raises beyond EngineError is raised here.
        """
        loop = asyncio.get_running_loop()
        job = _Job(request, arrived)
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

    def close(self) -> None:
        """Take no more requests and end those that wait; the one that runs may finish."""
        self._closed = True
        for job in list(self._waiting):
            self._end(job, _STOPPED)
        self._on_change()

    def abandon(self) -> None:
        """End the running requests too: they have had time to finish."""
        for job in self._running:
            job.end(_STOPPED)

    def _next(self) -> _Job:
        """Take the first of those whose client had its last turn longest ago, or never. Requests without a client take
        turns as one, so that however many there are, nobody else waits for more than one of them."""
        job = min(self._waiting, key=lambda other: self._turns.get(other.request.client, 0))
        self._waiting.remove(job)
        self._turn += 1
        self._turns.pop(job.request.client, None)
        self._turns[job.request.client] = self._turn
        if len(self._turns) > REMEMBERED_TURNS:
            del self._turns[next(iter(self._turns))]
        return job

    def _accept(self, job: _Job) -> None:
        """Put a job into the queue, in the place of the one it supersedes, or end it at once."""
        self.requests += 1
        client = job.request.client
        place = len(self._waiting)
        if client:
            superseded = Result(candidates=(), finish="superseded", model=self.engine.name if self.engine else "")
            for running in self._running:
                if running.request.client == client:
                    running.end(superseded)
            for older in [other for other in self._waiting if other.request.client == client]:
                # The newer one takes over the place, or a fast typist would queue behind all others for ever.
                place = self._waiting.index(older)
                self._end(older, superseded)
        if self._closed:
            job.end(_STOPPED)
        elif self.error:
            job.end(self.error)
        elif len(self._waiting) >= self._capacity and not self._make_room(client):
            job.end(self._busy())
        else:
            self._waiting.insert(place, job)
            self._wake.set()
            self._on_change()

    def _make_room(self, client: str) -> bool:
        """Whether a full queue had more than one request without a client: the latest gives way to one that has one."""
        nobodys = [job for job in self._waiting if not job.request.client]
        if not client or len(nobodys) < 2:
            return False
        self._end(nobodys[-1], self._busy())
        return True

    def _busy(self) -> Failure:
        message = f"{len(self._waiting)} requests are waiting already"
        return Failure(code="busy", message=message, hint="ask again in a moment")

    def _expire(self, job: _Job) -> None:
        """The deadline of a job that may still wait. While it runs, the model itself keeps the deadline."""
        if job in self._running or job.ended:
            return
        if self.engine is None:
            hint = "ask again in a few seconds"
            self._end(job, Failure(code="loading", message="the model is still being loaded", hint=hint))
        else:
            self._end(job, Result(candidates=(), finish="deadline", model=self.engine.name))

    def _end(self, job: _Job, event: Event | None) -> None:
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
        for job in list(self._waiting):
            self._end(job, error.as_failure())

    def _report_to(self, loop: asyncio.AbstractEventLoop) -> OnProgress:
        def on_loop(progress: Progress) -> None:
            self.progress = progress
            self._on_change()

        def in_thread(progress: Progress) -> None:
            loop.call_soon_threadsafe(on_loop, progress)

        return in_thread

    def _drive(self, job: _Job, loop: asyncio.AbstractEventLoop) -> None:
        """In the model's thread: run one fill and hand its events to the loop."""
        assert self.engine is not None
        if job.cancelled.is_set():
            return
        for event in self.engine.fill(job.request, arrived=job.arrived, cancelled=job.cancelled.is_set):
            loop.call_soon_threadsafe(job.post, event)
            if job.cancelled.is_set():
                return


_STOPPED = Failure(code="unavailable", message="the engine is being stopped", hint="the next request starts a new one")
