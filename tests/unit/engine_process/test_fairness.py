"""Whose turn it is, who has to give way when the queue is full, and what a slow reader gets."""

from __future__ import annotations

import asyncio
import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepped_model import Harness, ask, running

from diffusion import waiting
from diffusion.api import Draft, Failure, Result


async def finish(harness: Harness, *tasks: asyncio.Task[list[object]]) -> None:
    for _ in tasks:
        harness.model.permits.put(None)
    await asyncio.wait_for(asyncio.gather(*tasks), 20)


async def test_a_flood_without_a_client_takes_turns_with_the_others() -> None:
    async with running() as harness:
        flood = [harness.fill(ask(f"flood{i}")) for i in range(4)]
        assert await harness.started() == "flood0"
        mine = [harness.fill(ask("a1", "a")), harness.fill(ask("b1", "b"))]
        await finish(harness, *flood, *mine)
    assert harness.model.started == ["flood0", "a1", "b1", "flood1", "flood2", "flood3"]


async def test_who_has_just_had_a_turn_comes_after_those_who_have_not() -> None:
    async with running() as harness:
        first = harness.fill(ask("a1", "a"))
        await harness.started()
        blocker = harness.fill(ask("x1", "x"))
        harness.model.permits.put(None)
        await asyncio.wait_for(first, 20)
        assert await harness.started() == "x1"
        again = harness.fill(ask("a2", "a"))
        newcomer = harness.fill(ask("b1", "b"))
        await finish(harness, blocker, again, newcomer)
    assert harness.model.started == ["a1", "x1", "b1", "a2"]


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=12), st.integers(0, 6))
def test_nobody_waits_for_two_turns_of_another(arrivals: list[str], nameless: int) -> None:
    """Everybody asks again as soon as the answer is there; between two turns of one client nobody has two."""

    async def scenario() -> None:
        async with running() as harness:

            async def ask_again_and_again(name: str) -> None:
                for number in range(3):
                    await harness.fill(ask(f"{name}{number}", name))

            clients = [asyncio.create_task(ask_again_and_again(name)) for name in dict.fromkeys(arrivals)]
            flood = [harness.fill(ask(f"-{number}")) for number in range(nameless)]
            for _ in range(3 * len(clients) + nameless):
                harness.model.permits.put(None)
            await asyncio.wait_for(asyncio.gather(*clients, *flood), 20)
            order = [name[0] for name in harness.model.started]
            for name in dict.fromkeys(arrivals):
                turns = [at for at, who in enumerate(order) if who == name]
                for before, after in itertools.pairwise(turns):
                    between = order[before + 1 : after]
                    assert len(between) == len(set(between)), order

    asyncio.run(scenario())


async def test_in_a_full_queue_a_flood_gives_way_to_a_client() -> None:
    async with running(capacity=2) as harness:
        flood = [harness.fill(ask("0"))]
        await harness.started()
        flood += [harness.fill(ask("1")), harness.fill(ask("2"))]
        mine = harness.fill(ask("a1", "a"))
        (event,) = await asyncio.wait_for(flood[2], 20)
        assert isinstance(event, Failure) and event.code == "busy"
        (event,) = await asyncio.wait_for(harness.fill(ask("3")), 20)
        assert isinstance(event, Failure) and event.code == "busy"
        (event,) = await asyncio.wait_for(harness.fill(ask("b1", "b")), 20)
        assert isinstance(event, Failure) and event.code == "busy"  # one without a client is left its place
        newer = harness.fill(ask("a2", "a"))  # takes over the place of its own older one
        await asyncio.wait_for(mine, 20)
        await finish(harness, flood[0], flood[1], newer)
    assert harness.model.started == ["0", "a2", "1"]


async def test_turns_of_countless_clients_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "REMEMBERED_TURNS", 3)
    async with running() as harness:
        for number in range(9):
            await finish(harness, harness.fill(ask("x", str(number))))
        assert [client for client, _ in harness.scheduler._waiting._turns] == ["6", "7", "8"]


async def test_a_slow_reader_gets_the_newest_drafts_and_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "UNREAD_DRAFTS", 5)
    async with running() as harness:
        stream = harness.scheduler.fill(ask("slow"), arrived=time.monotonic())
        harness.model.permits.put("step")
        assert await asyncio.wait_for(anext(stream), 20) == Draft(step=1, text="slow")
        for _ in range(100):
            harness.model.permits.put("step")
        harness.model.permits.put(None)
        await finish(harness, harness.fill(ask("next")))  # by then all of the first one's events have been handed over
        events = [event async for event in stream]
    assert [event.step for event in events[:-1] if isinstance(event, Draft)] == [97, 98, 99, 100, 101]
    assert isinstance(events[-1], Result)


async def test_time_set_by_hand_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    jumps = iter(range(10**9, 0, -(10**6)))
    monkeypatch.setattr(time, "time", lambda: float(next(jumps)))
    async with running() as harness:
        first = harness.fill(ask("1", deadline_ms=60_000))
        await harness.started()
        hasty = harness.fill(ask("2", deadline_ms=10))
        assert await asyncio.wait_for(hasty, 20) == [Result(candidates=(), finish="deadline", model="stepped")]
        assert not first.done()
        await finish(harness, first)
