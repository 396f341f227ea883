"""From the scheduler's threads to coroutines: an event loop in a thread of its own, on which all connections live.

A synchronous fill waits here for what its coroutine says, and looks every few milliseconds whether it is cancelled:
then the coroutine is cancelled, which closes its connections. Knows no HTTP.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from diffusion.api import Event
from diffusion.remote.work import Emit

POLL_SECONDS = 0.01

T = TypeVar("T")


class Bridge:
    """Starts its thread at once; the thread ends with the process."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, name="remote", daemon=True).start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of a coroutine. Raises what it raises."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def events(
        self, work: Callable[[Emit], Coroutine[Any, Any, Event]], cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        """What a coroutine emits, then what it returns; nothing more once `cancelled` says so. Raises what it does."""
        said: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        future: Future[Event] = asyncio.run_coroutine_threadsafe(work(said.put), self.loop)
        future.add_done_callback(lambda _: said.put(None))
        try:
            while not cancelled():
                try:
                    event = said.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    continue
                if event is None:
                    yield future.result()
                    return
                yield event
        finally:
            future.cancel()
