"""Edits and fills in one queue: edits come behind, never for ever, and only their own client ends them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engine_processes import NewClient, events_of, text_of
from engine_processes import ask as ask_process
from hypothesis import given
from hypothesis import strategies as st
from stepped_model import Harness, ask, ask_edit, running

from diffusion.api import Failure, Result
from diffusion.waiting import EDIT_PATIENCE


async def finish(harness: Harness, *tasks: asyncio.Task[Any]) -> None:
    for _ in tasks:
        harness.model.permits.put(None)
    await asyncio.wait_for(asyncio.gather(*tasks), 20)


async def test_fills_go_before_edits() -> None:
    async with running() as harness:
        first = harness.fill(ask("x", "x"))
        await harness.started()
        edits = [harness.fill(ask_edit("edit1", "a")), harness.fill(ask_edit("edit2", "b"))]
        fills = [harness.fill(ask("a1", "a")), harness.fill(ask("c1", "c")), harness.fill(ask("nobody"))]
        await finish(harness, first, *edits, *fills)
    assert harness.model.started == ["x", "a1", "c1", "nobody", "edit1", "edit2"]


async def test_typing_on_ends_no_edit() -> None:
    async with running() as harness:
        runs = harness.fill(ask_edit("edit1", "a"))
        await harness.started()
        waits = harness.fill(ask_edit("edit2", "a"))
        older, newer = harness.fill(ask("a1", "a")), harness.fill(ask("a2", "a"))
        assert (await asyncio.wait_for(older, 20))[-1].finish == "superseded"  # type: ignore[union-attr]
        await finish(harness, runs, waits, newer)
        assert all(isinstance(task.result()[-1], Result) and task.result()[-1].candidates for task in (runs, waits))
    assert harness.model.started == ["edit1", "a2", "edit2"]


@pytest.mark.parametrize("running_already", [False, True])
async def test_its_client_can_cancel_an_edit(running_already: bool) -> None:
    async with running() as harness:
        before = harness.fill(ask("x"))
        edit = harness.fill(ask_edit("edit", "a"))
        await harness.started()
        if running_already:
            await finish(harness, before)
            await harness.started()
        edit.cancel()
        with pytest.raises(asyncio.CancelledError):
            await edit
        harness.model.permits.put("step")
        after = harness.fill(ask("after"))
        await finish(harness, before, after)
    assert harness.model.started == ["x", *["edit"] * running_already, "after"]


@given(edits=st.integers(1, 4), more=st.integers(0, 9))
def test_an_edit_lets_a_bounded_number_of_fills_pass(edits: int, more: int) -> None:
    async def scenario() -> None:
        async with running() as harness:
            first = harness.fill(ask("first"))
            await harness.started()
            waiting = [harness.fill(ask_edit(f"edit{number}", "a")) for number in range(edits)]
            fills = [harness.fill(ask("fill")) for _ in range(edits * EDIT_PATIENCE + more)]
            await finish(harness, first, *waiting, *fills)
        turns = [name for number in range(edits) for name in (*["fill"] * EDIT_PATIENCE, f"edit{number}")]
        assert harness.model.started == ["first", *turns, *["fill"] * more]

    asyncio.run(scenario())


async def test_edits_of_one_client_do_not_hold_up_those_of_another() -> None:
    async with running() as harness:
        first = harness.fill(ask("x"))
        await harness.started()
        flood = [harness.fill(ask_edit(f"flood{number}", "a")) for number in range(3)]
        mine = harness.fill(ask_edit("mine", "b"))
        await finish(harness, first, *flood, mine)
    assert harness.model.started == ["x", "flood0", "mine", "flood1", "flood2"]


async def test_each_queue_is_bounded_by_itself() -> None:
    async with running(capacity=1, edits=1) as harness:
        tasks = [harness.fill(ask("x"))]
        await harness.started()
        tasks += [harness.fill(ask("fill", "a")), harness.fill(ask_edit("edit", "a"))]
        for more in (ask("fill2", "b"), ask_edit("edit2", "b"), ask_edit("edit3", "a")):
            (event,) = await asyncio.wait_for(harness.fill(more), 20)
            assert isinstance(event, Failure) and event.code == "busy" and event.hint
        await finish(harness, *tasks)
    assert harness.model.started == ["x", "fill", "edit"]


async def test_a_client_that_has_gone_is_forgotten_after_what_runs() -> None:
    async with running() as harness:
        harness.scheduler.forget("early")  # while the model loads there is nothing to forget
        task = harness.fill(ask("x", "me"))
        await harness.started()
        harness.scheduler.forget("me")
        assert harness.model.forgotten.empty()
        await finish(harness, task)
        assert await asyncio.to_thread(harness.model.forgotten.get, timeout=20) == "me"
    harness.scheduler.forget("late")
    assert harness.model.forgotten.empty()


async def test_what_is_kept_for_a_client_ends_with_its_last_lease(new_client: NewClient, home: Path) -> None:
    windows, other = [new_client(client="me") for _ in range(2)], new_client(client="you")
    await new_client().wait_ready()
    leases = [client.events() for client in (*windows, other)]
    for lease in leases:
        await asyncio.wait_for(anext(lease), 60)
    trace = asyncio.create_task(asyncio.to_thread((home / "trace").read_text))
    await leases[0].aclose()
    assert text_of(await events_of(other, ask_process("next"))) == "next|"
    assert not trace.done()
    await leases[1].aclose()
    assert await asyncio.wait_for(trace, 60) == "forgotten me\n"
    assert text_of(await events_of(other, ask_process("last"))) == "last|"
    await leases[2].aclose()
    assert await asyncio.wait_for(asyncio.to_thread((home / "trace").read_text), 60) == "forgotten you\n"
