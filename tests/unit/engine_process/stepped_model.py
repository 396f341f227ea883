"""A scheduler around a model whose steps the test releases one by one."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from diffusion.api import Candidate, Draft, EditRequest, Event, FillRequest, Result
from diffusion.scheduler import Scheduler


class SteppedModel:
    """Yields a draft for every permit in `permits`, ends on None, raises what is an exception."""

    name, device = "stepped", "cpu"

    def __init__(self) -> None:
        self.permits: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.started: list[str] = []
        self.rested: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.forgotten: queue.SimpleQueue[str] = queue.SimpleQueue()
        self.on_start: Callable[[str], None] = lambda name: None

    def rest(self) -> None:
        self.rested.put(self.started[-1] if self.started else "")

    def forget(self, client: str) -> None:
        self.forgotten.put(client)

    def fill(
        self, request: FillRequest | EditRequest, *, arrived: float, cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        self.started.append(request.id)
        self.on_start(request.id)
        step = 0
        while (permit := self.permits.get(timeout=20)) is not None:
            if isinstance(permit, BaseException):
                raise permit
            if cancelled():
                return
            step += 1
            yield Draft(step=step, text=request.id)
        if not cancelled():
            yield Result(candidates=(Candidate(text=request.id),))


def ask(name: str, client: str = "", **more: Any) -> FillRequest:
    return FillRequest(id=name, client=client, prefix="", suffix="", **more)


def ask_edit(name: str, client: str = "", **more: Any) -> EditRequest:
    return EditRequest(id=name, client=client, before="", selected="x", after="", instruction="y", **more)


class Harness:
    def __init__(self, model: SteppedModel, scheduler: Scheduler) -> None:
        self.model, self.scheduler = model, scheduler
        self.starts: asyncio.Queue[str] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        model.on_start = lambda name: void(loop.call_soon_threadsafe(self.starts.put_nowait, name))

    def fill(self, request: FillRequest | EditRequest) -> asyncio.Task[list[Event]]:
        async def collect() -> list[Event]:
            return [event async for event in self.scheduler.fill(request, arrived=time.monotonic())]

        return asyncio.create_task(collect())

    async def started(self) -> str:
        return await asyncio.wait_for(self.starts.get(), 20)


def void(_: object) -> None:
    return None


@contextlib.asynccontextmanager
async def running(
    load: Callable[..., Any] | None = None, capacity: int = 64, edits: int = 16
) -> AsyncIterator[Harness]:
    model = SteppedModel()
    scheduler = Scheduler(load or (lambda on_progress: model), capacity=capacity, edits=edits)
    harness = Harness(model, scheduler)
    task = asyncio.create_task(scheduler.run())
    try:
        yield harness
    finally:
        for _ in range(8):
            model.permits.put(None)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
