"""The scheduler with a model whose steps the test releases one by one."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stepped_model import SteppedModel, ask, running, void

from diffusion import scheduler
from diffusion.api import Candidate, Draft, EngineError, Failure, Progress, Result


async def test_drafts_then_one_result() -> None:
    async with running() as harness:
        task = harness.fill(ask("a"))
        for permit in ("step", "step", None):
            harness.model.permits.put(permit)
        events = await asyncio.wait_for(task, 20)
    assert [type(event) for event in events] == [Draft, Draft, Result]


async def test_newest_of_a_client_ends_the_one_that_runs_and_the_one_that_waits() -> None:
    async with running() as harness:
        first = harness.fill(ask("first", "me"))
        assert await harness.started() == "first"
        second = harness.fill(ask("second", "me"))
        assert (await asyncio.wait_for(first, 20))[-1] == Result(candidates=(), finish="superseded", model="stepped")
        third = harness.fill(ask("third", "me"))
        assert (await asyncio.wait_for(second, 20))[-1] == Result(candidates=(), finish="superseded", model="stepped")
        harness.model.permits.put("step")  # one more denoising step and `first` sees that it is not wanted
        assert await harness.started() == "third"
        harness.model.permits.put(None)
        assert (await asyncio.wait_for(third, 20))[-1] == Result(candidates=(Candidate(text="third"),))
    assert harness.model.started == ["first", "third"]


async def test_an_engine_whose_model_is_elsewhere_answers_several_requests_side_by_side() -> None:
    model = SteppedModel()
    model.parallel = 2  # type: ignore[attr-defined]
    async with running(lambda on_progress: model) as harness:
        scheduler, starts = harness.scheduler, harness.starts
        loop = asyncio.get_running_loop()
        model.on_start = lambda name: void(loop.call_soon_threadsafe(starts.put_nowait, name))
        tasks = [harness.fill(ask(name, name)) for name in "abc"]
        assert {await harness.started(), await harness.started()} == {"a", "b"}
        assert scheduler.state == "busy" and model.started == ["a", "b"]
        model.permits.put(None)
        assert await harness.started() == "c"
        for _ in range(2):
            model.permits.put(None)
        ends = [events[-1] for events in await asyncio.wait_for(asyncio.gather(*tasks), 20)]
    assert ends == [Result(candidates=(Candidate(text=name),)) for name in "abc"]


async def test_other_clients_are_left_alone_and_the_newer_request_keeps_its_clients_place() -> None:
    async with running() as harness:
        running_now = harness.fill(ask("x", "x"))
        await harness.started()
        tasks = [harness.fill(ask("a1", "a")), harness.fill(ask("b1", "b")), harness.fill(ask("a2", "a"))]
        anonymous = [harness.fill(ask("c1")), harness.fill(ask("c2"))]
        assert (await asyncio.wait_for(tasks[0], 20))[-1].finish == "superseded"  # type: ignore[union-attr]
        for _ in range(5):
            harness.model.permits.put(None)
        await asyncio.wait_for(asyncio.gather(running_now, *tasks, *anonymous), 20)
    assert harness.model.started == ["x", "a2", "b1", "c1", "c2"]


async def test_closing_cancels_and_no_event_follows() -> None:
    async with running() as harness:
        stream = harness.scheduler.fill(ask("a"), arrived=time.monotonic())
        harness.model.permits.put("step")
        assert isinstance(await anext(stream), Draft)
        await stream.aclose()
        harness.model.permits.put("step")  # the step under way; its draft reaches nobody
        with pytest.raises(StopAsyncIteration):
            await anext(stream)
        after = harness.fill(ask("b"))
        harness.model.permits.put(None)
        assert (await asyncio.wait_for(after, 20))[-1] == Result(candidates=(Candidate(text="b"),))


async def test_a_waiting_request_that_is_cancelled_never_runs() -> None:
    async with running() as harness:
        first = harness.fill(ask("first"))
        await harness.started()
        second = harness.fill(ask("second"))
        third = harness.fill(ask("third"))
        await asyncio.sleep(0)
        second.cancel()
        for _ in range(2):
            harness.model.permits.put(None)
        await asyncio.wait_for(asyncio.gather(first, third), 20)
    assert harness.model.started == ["first", "third"]


async def test_full_queue_answers_busy() -> None:
    async with running(capacity=1) as harness:
        first = harness.fill(ask("1"))
        await harness.started()
        second = harness.fill(ask("2"))
        third = harness.fill(ask("3"))
        (event,) = await asyncio.wait_for(third, 20)
        assert isinstance(event, Failure) and event.code == "busy" and event.hint
        for _ in range(2):
            harness.model.permits.put(None)
        await asyncio.wait_for(asyncio.gather(first, second), 20)


async def test_the_deadline_of_a_waiting_request_is_kept() -> None:
    async with running() as harness:
        first = harness.fill(ask("1"))
        await harness.started()
        second = harness.fill(ask("2", deadline_ms=10))
        assert await asyncio.wait_for(second, 20) == [Result(candidates=(), finish="deadline", model="stepped")]
        harness.model.permits.put(None)
        await asyncio.wait_for(first, 20)


async def test_requests_wait_while_the_model_loads_up_to_their_deadline() -> None:
    gate: queue.SimpleQueue[SteppedModel] = queue.SimpleQueue()
    reported = asyncio.Event()

    def load(on_progress: Callable[[Progress], None]) -> SteppedModel:
        on_progress(Progress(done=3, total=4))
        return gate.get(timeout=20)

    async with running(load) as harness:
        harness.scheduler._on_change = reported.set
        patient = harness.fill(ask("patient"))
        hasty = harness.fill(ask("hasty", deadline_ms=10))
        (event,) = await asyncio.wait_for(hasty, 20)
        assert isinstance(event, Failure) and event.code == "loading"
        await asyncio.wait_for(reported.wait(), 20)
        assert harness.scheduler.state == "loading"
        gate.put(harness.model)
        harness.model.permits.put(None)
        assert (await asyncio.wait_for(patient, 20))[-1] == Result(candidates=(Candidate(text="patient"),))
        assert harness.scheduler.progress is None


@pytest.mark.parametrize(
    ("raised", "said"), [(EngineError("no weights", "get them", "model"), "no weights"), (OSError("disk"), "disk")]
)
async def test_a_model_that_cannot_be_loaded_is_told_to_everyone(raised: Exception, said: str) -> None:
    def load(on_progress: Callable[[Progress], None]) -> SteppedModel:
        raise raised

    async with running(load) as harness:
        for name in ("waiting", "later"):
            (event,) = await asyncio.wait_for(harness.fill(ask(name)), 20)
            assert isinstance(event, Failure) and event.code == "model" and said in event.message and event.hint
        assert harness.scheduler.state == "errored"


async def test_an_error_of_the_model_ends_one_request_only() -> None:
    async with running() as harness:
        harness.model.permits.put(EngineError("out of memory", "smaller profile", "model"))
        assert await asyncio.wait_for(harness.fill(ask("1")), 20) == [
            Failure(code="model", message="out of memory", hint="smaller profile")
        ]
        harness.model.permits.put(KeyError("x"))
        with pytest.raises(KeyError):
            await asyncio.wait_for(harness.fill(ask("2")), 20)
        harness.model.permits.put(None)
        assert len(await asyncio.wait_for(harness.fill(ask("3")), 20)) == 1


async def test_closing_ends_the_waiting_and_lets_the_running_finish() -> None:
    async with running() as harness:
        first, second = harness.fill(ask("1")), harness.fill(ask("2"))
        await harness.started()
        harness.scheduler.close()
        for task in (second, harness.fill(ask("3"))):
            (event,) = await asyncio.wait_for(task, 20)
            assert isinstance(event, Failure) and event.code == "unavailable"
        harness.model.permits.put(None)
        assert isinstance((await asyncio.wait_for(first, 20))[-1], Result)
        assert harness.scheduler.state == "stopped"


async def test_abandoning_ends_the_running_one_too() -> None:
    async with running() as harness:
        task = harness.fill(ask("1"))
        await harness.started()
        harness.scheduler.close()
        harness.scheduler.abandon()
        (event,) = await asyncio.wait_for(task, 20)
        assert isinstance(event, Failure) and event.code == "unavailable"


async def test_an_engine_rests_when_it_is_loaded_and_after_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler, "REST_SECONDS", 0.0)
    async with running() as harness:
        assert await asyncio.to_thread(harness.model.rested.get, timeout=20) == ""
        first, second = harness.fill(ask("1")), harness.fill(ask("2"))
        await harness.started()
        for _ in range(2):
            harness.model.permits.put(None)
        await asyncio.wait_for(asyncio.gather(first, second), 20)
        assert await asyncio.to_thread(harness.model.rested.get, timeout=20) == "2"
        assert harness.model.rested.empty()


@given(st.lists(st.tuples(st.sampled_from(["", "a", "b", "c"]), st.booleans()), max_size=12))
def test_every_request_ends_exactly_once(plan: list[tuple[str, bool]]) -> None:
    """Whatever clients ask and cancel: one end for each that was not cancelled, and it comes last."""

    async def scenario() -> None:
        async with running() as harness:
            tasks = []
            for number, (client, cancel) in enumerate(plan):
                task = harness.fill(ask(str(number), client))
                tasks.append((task, cancel))
                await asyncio.sleep(0)
                if cancel:
                    task.cancel()
                harness.model.permits.put("step")
                harness.model.permits.put(None)
            done = await asyncio.wait_for(asyncio.gather(*(t for t, _ in tasks), return_exceptions=True), 20)
            for events, (_, cancel) in zip(done, tasks, strict=True):
                if cancel:
                    assert isinstance(events, asyncio.CancelledError)
                else:
                    assert isinstance(events, list)
                    assert [isinstance(event, Draft) for event in events] == [True] * (len(events) - 1) + [False]
            last = harness.fill(ask("last"))
            for _ in plan:
                harness.model.permits.put(None)
            harness.model.permits.put(None)
            assert isinstance((await asyncio.wait_for(last, 20))[-1], Result)

    asyncio.run(scenario())
