"""One piece of work per document at most: the newest wins, and who asks for the same again waits for the same answer.

Knows asyncio; not what the work is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

Answer = TypeVar("Answer")


class Superseded(Exception):
    """Something newer took the place of the work that was waited for."""


@dataclass(eq=False)
class _Turn(Generic[Answer]):
    key: Hashable
    task: asyncio.Task[Answer]
    waiting: int = 0


class Turns(Generic[Answer]):
    """The work under way, by document."""

    def __init__(self) -> None:
        self._turns: dict[str, _Turn[Answer]] = {}

    def stop(self, uri: str) -> asyncio.Task[Answer] | None:
        """End what runs for a document, without waiting for the end."""
        turn = self._turns.pop(uri, None)
        if turn is None:
            return None
        turn.task.cancel()
        return turn.task

    def runs(self, uri: str, key: Hashable) -> bool:
        """Whether the work of that name is under way."""
        turn = self._turns.get(uri)
        return turn is not None and turn.key == key and not turn.task.done()

    async def take(self, uri: str, key: Hashable, work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """The answer of `work`, or that of work with an equal key that is under way. Anything else that runs for the
        document is ended first. Raises Superseded. When the last one who waits is cancelled, so is the work."""
        turn = self._turns.get(uri)
        if turn is None or not self.runs(uri, key):
            turn = self._turns[uri] = _Turn(key, asyncio.create_task(self._after(self.stop(uri), work)))
        turn.waiting += 1
        try:
            return await asyncio.shield(turn.task)
        except asyncio.CancelledError:
            if not cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():
                raise Superseded from None
            if turn.waiting == 1:
                turn.task.cancel()
                await asyncio.wait({turn.task})
            raise
        finally:
            turn.waiting -= 1
            if turn.task.done() and self._turns.get(uri) is turn:
                del self._turns[uri]

    @staticmethod
    async def _after(previous: asyncio.Task[Answer] | None, work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        if previous:
            await asyncio.wait({previous})  # It ends within one denoising step.
        return await work()
