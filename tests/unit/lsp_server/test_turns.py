"""Work that waits where the test wants: who gets which answer, and what runs at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from lsp_server.turns import Superseded, Turns


@dataclass
class Work:
    """Runs until `go` is set; counts."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    begun: int = 0
    running: int = 0

    async def __call__(self) -> int:
        self.begun += 1
        self.running += 1
        self.began.set()
        try:
            await self.go.wait()
            return self.begun
        finally:
            self.running -= 1


async def test_the_same_question_gets_the_same_answer() -> None:
    turns, work = Turns[int](), Work()
    tasks = [asyncio.create_task(turns.take("u", "key", work)) for _ in range(3)]
    await work.began.wait()
    assert turns.runs("u", "key") and not turns.runs("u", "other") and not turns.runs("v", "key")
    work.go.set()
    assert await asyncio.gather(*tasks) == [1, 1, 1]
    assert not turns.runs("u", "key")
    assert await turns.take("u", "key", work) == 2


async def test_a_newer_question_ends_the_older_one_first() -> None:
    turns, older, newer = Turns[int](), Work(), Work()
    first = asyncio.create_task(turns.take("u", 1, older))
    await older.began.wait()
    second = asyncio.create_task(turns.take("u", 2, newer))
    await newer.began.wait()
    assert older.running == 0
    with pytest.raises(Superseded):
        await first
    newer.go.set()
    assert await second == 1


async def test_work_ends_with_the_last_who_waits_for_it() -> None:
    turns, work = Turns[int](), Work()
    first, second = (asyncio.create_task(turns.take("u", 1, work)) for _ in range(2))
    await work.began.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert work.running == 1
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert work.running == 0


async def test_what_fails_fails_for_all_who_wait() -> None:
    turns, work = Turns[int](), Work()

    async def failing() -> int:
        await work()
        raise ValueError

    tasks = [asyncio.create_task(turns.take("u", 1, failing)) for _ in range(2)]
    await work.began.wait()
    work.go.set()
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [ValueError] * 2


async def test_stopping_what_does_not_run_is_nothing() -> None:
    assert Turns[int]().stop("u") is None
