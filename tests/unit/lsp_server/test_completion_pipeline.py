"""The pipeline with an engine that stops where the test wants: what runs, what is cancelled, what is offered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import pytest

from diffusion.api import Candidate, Cost, Draft, Event, Failure, FillRequest, Result, Status
from lsp_server import filters
from lsp_server.completion import Ask, Completer
from lsp_server.documents import Document
from lsp_server.selected import Selected
from lsp_server.settings import Settings

CURSOR = "│"


@dataclass
class Engine:
    """Sends a draft at every step it is allowed to make, then `answer`."""

    answer: Event = field(default_factory=lambda: Result(candidates=(Candidate(text="1"),)))
    steps: int = 0
    """Steps that wait for `step`; 0 answers at once."""
    step: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    began: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[FillRequest] = field(default_factory=list)
    running: int = 0
    most: int = 0
    closed: int = 0

    async def fill(self, request: FillRequest) -> AsyncIterator[Event]:
        self.asked.append(request)
        self.running += 1
        self.most = max(self.most, self.running)
        self.began.set()
        try:
            for number in range(self.steps):
                await self.step.acquire()
                yield Draft(step=number + 1, text=f"draft {number}")
            yield self.answer
        finally:
            self.running -= 1
            self.closed += 1

    async def status(self) -> Status:
        return Status(state="ready")

    async def events(self) -> AsyncIterator[Status]:
        yield await self.status()

    async def close(self) -> None:
        return None


@dataclass
class Heard:
    busy: list[int] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def working(self, change: int) -> None:
        self.busy.append(change)

    def draft(self, ask_id: str, text: str) -> None:
        self.drafts.append(text)

    def answered(self, answer: Result | Failure) -> None:
        if isinstance(answer, Failure):
            self.failures.append(answer)


class Editor:
    """Documents and questions in few words."""

    def __init__(self, engine: Engine, **settings: object) -> None:
        self.engine, self.heard = engine, Heard()
        self.current: Document | None = None
        self.completer = Completer(
            engine=lambda: engine,
            listener=self.heard,
            is_current=lambda document: document is self.current,
            settings=Settings(**({"debounce_ms": 0} | settings)),  # type: ignore[arg-type]
        )

    def ask(self, marked: str, *, explicit: bool = False, selected: Selected | None = None, uri: str = "u") -> Ask:
        prefix, suffix = marked.split(CURSOR)
        self.current = Document(uri=uri, language="python").with_text(prefix + suffix, 1)
        return Ask(id="1", document=self.current, offset=len(prefix), explicit=explicit, selected=selected)

    async def texts(self, marked: str, **options: object) -> list[str]:
        insertions = await self.completer.complete(self.ask(marked, **options))  # type: ignore[arg-type]
        return [insertion.text for insertion in insertions]

    def why(self) -> str:
        return self.completer.journal.why()


async def test_a_newer_request_ends_the_older_one_before_it_starts_itself() -> None:
    engine = Engine(steps=1)
    editor = Editor(engine)
    tasks = []
    for typed in range(20):
        engine.began.clear()
        tasks.append(asyncio.create_task(editor.texts("x" * (typed + 1) + " = " + CURSOR)))
        await engine.began.wait()
    engine.step.release()
    results = await asyncio.gather(*tasks)
    assert results == [[]] * 19 + [["1"]]
    assert (engine.most, engine.running, engine.closed) == (1, 0, 20)
    assert sum(editor.heard.busy) == 0


async def test_debounced_requests_never_reach_the_engine() -> None:
    engine = Engine()
    editor = Editor(engine, debounce_ms=1)
    tasks = [asyncio.create_task(editor.texts("x" * typed + " = " + CURSOR)) for typed in range(1, 21)]
    assert await asyncio.gather(*tasks) == [[]] * 19 + [["1"]]
    assert [request.prefix for request in engine.asked] == ["x" * 20 + " = "]


async def test_documents_do_not_get_in_each_others_way() -> None:
    engine = Engine(steps=1)
    editor = Editor(engine)
    editor.completer.is_current = lambda document: True
    first, second = (asyncio.create_task(editor.texts(f"x = {CURSOR}", uri=uri)) for uri in ("a", "b"))
    while engine.running < 2:
        engine.began.clear()
        await engine.began.wait()
    engine.step.release()
    engine.step.release()
    assert await first == await second == ["1"]


async def test_cancelling_closes_the_stream_within_a_step() -> None:
    engine = Engine(steps=1000)
    editor = Editor(engine)
    task = asyncio.create_task(editor.texts(f"x = {CURSOR}"))
    await engine.began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert engine.running == 0
    assert "cancelled" in editor.why()
    assert await Editor(Engine()).texts(f"x = {CURSOR}") == ["1"]


async def test_an_answer_for_an_outdated_document_is_dropped_and_not_cached() -> None:
    engine = Engine(steps=1)
    editor = Editor(engine)
    task = asyncio.create_task(editor.texts(f"x = {CURSOR}"))
    await engine.began.wait()
    editor.current = None
    engine.step.release()
    assert await task == []
    assert "changed" in editor.why()
    engine.steps = 0
    assert await editor.texts(f"x = {CURSOR}") == ["1"]
    assert len(engine.asked) == 2


async def test_automatic_and_explicit_requests_differ() -> None:
    several = tuple(Candidate(text=text, confidence=sure) for text, sure in (("1", 0.1), ("2", 0.9), ("2", 0.9)))
    engine = Engine(answer=Result(candidates=several))
    editor = Editor(engine, min_confidence=0.5)
    assert await editor.texts(f"x = {CURSOR}") == ["2"]
    assert await editor.texts(f"x = {CURSOR}", explicit=True) == ["1", "2"]
    automatic, explicit = engine.asked
    assert (automatic.n, explicit.n) == (1, 3)
    assert automatic.deadline_ms and explicit.deadline_ms and explicit.deadline_ms > automatic.deadline_ms


@pytest.mark.parametrize(
    ("gate", "settings", "shown"),
    [
        (0.7, {}, False),
        (0.5, {}, True),
        (None, {}, True),
        (0.7, {"min_confidence": 0.6}, True),
        (0.5, {"min_confidence": 0.65}, False),
    ],
)
async def test_the_gate_is_the_model_s_unless_one_is_set(
    gate: float | None, settings: dict[str, float], shown: bool
) -> None:
    engine = Engine(answer=Result(candidates=(Candidate(text="1", confidence=0.6),), gate=gate))
    assert await Editor(engine, **settings).texts(f"x = {CURSOR}") == ["1"] * shown


async def test_no_calibration_passes_the_gate() -> None:
    assert await Editor(Engine(), min_confidence=1.0).texts(f"x = {CURSOR}") == ["1"]


async def test_a_failure_is_empty_and_heard() -> None:
    editor = Editor(Engine(answer=Failure(code="model", message="out of memory", hint="buy some")))
    assert await editor.texts(f"x = {CURSOR}") == []
    assert [failure.message for failure in editor.heard.failures] == ["out of memory"]
    assert "failed: out of memory (buy some)" in editor.why()


async def test_the_cache_answers_without_the_engine() -> None:
    engine = Engine(answer=Result(candidates=(Candidate(text="foo(a)"),)))
    editor = Editor(engine)
    assert await editor.texts(f"x = {CURSOR}") == ["foo(a)"]
    assert await editor.texts(f"x = foo{CURSOR}") == ["(a)"]
    assert await editor.texts(f"x = foo({CURSOR})") == ["a)"]
    assert await editor.texts(f"x = {CURSOR}") == ["foo(a)"]
    assert len(engine.asked) == 1
    await editor.texts(f"x = fool{CURSOR}")
    assert len(engine.asked) == 2


async def test_the_selected_entry_stays_in_front() -> None:
    engine = Engine(answer=Result(candidates=(Candidate(text="(a)"),)))
    editor = Editor(engine)
    selected = Selected(start=2, end=4, text="format")
    (made,) = await editor.completer.complete(editor.ask(f"x.fo{CURSOR}\n", selected=selected))
    assert (made.text, made.before, made.after) == ("format(a)", 2, 0)
    assert engine.asked[0].prefix == "x.format"


async def test_a_selected_entry_elsewhere_is_no_place_to_complete() -> None:
    engine = Engine()
    editor = Editor(engine)
    for selected in (Selected(start=6, end=7, text="z"), Selected(start=0, end=6, text="z")):
        assert await editor.texts(f"x\ny.fo{CURSOR} a\n", selected=selected) == []
    assert engine.asked == []


async def test_a_cached_answer_also_ends_what_runs() -> None:
    engine = Engine()
    editor = Editor(engine)
    editor.completer.is_current = lambda document: True
    await editor.texts(f"x = {CURSOR}")
    engine.steps = 1
    engine.began.clear()
    running = asyncio.create_task(editor.texts(f"other = {CURSOR}"))
    await engine.began.wait()
    assert await editor.texts(f"x = {CURSOR}") == ["1"]
    assert await running == []
    assert engine.running == 0


async def test_a_bug_of_ours_is_an_empty_answer() -> None:
    editor = Editor(Engine(answer="no event at all"))  # type: ignore[arg-type]
    assert await editor.texts(f"x = {CURSOR}") == []
    assert editor.heard.failures[0].code == "internal"
    assert "AttributeError" in editor.why()


async def test_disabled_means_nothing_is_asked() -> None:
    engine = Engine()
    assert await Editor(engine, enabled=False).texts(f"x = {CURSOR}", explicit=True) == []
    assert await Editor(engine, disabled_languages=("python",)).texts(f"x = {CURSOR}") == []
    assert await Editor(engine).texts(CURSOR, explicit=True) == []
    assert engine.asked == []


async def test_what_a_suggestion_leaves_is_what_the_next_generation_starts_from() -> None:
    engine = Engine(answer=Result(candidates=(Candidate(text="self.value = a"),)))
    editor = Editor(engine)
    await editor.texts(f"x = {CURSOR}")
    await editor.texts(f"x = self.n{CURSOR}")
    assert [request.starts for request in engine.asked] == [(), (" = a",)]
    assert [decision.starts for decision in editor.completer.journal.decisions()] == [1, 0]


async def test_an_answer_that_was_not_good_enough_to_be_shown_is_still_a_start() -> None:
    engine = Engine(answer=Result(candidates=(Candidate(text="foo(a)", confidence=0.1),)))
    editor = Editor(engine, min_confidence=0.5)
    assert await editor.texts(f"x = {CURSOR}") == []
    assert await editor.texts(f"x = f{CURSOR}") == []
    assert engine.asked[1].starts == ("oo(a)",)


async def test_the_same_question_twice_is_one_generation() -> None:
    engine = Engine(steps=1)
    editor = Editor(engine)
    ask = editor.ask(f"x = {CURSOR}")
    tasks = [asyncio.create_task(editor.completer.complete(ask)) for _ in range(2)]
    await engine.began.wait()
    engine.step.release()
    assert [[item.text for item in items] for items in await asyncio.gather(*tasks)] == [["1"], ["1"]]
    assert len(engine.asked) == 1


async def test_what_was_fetched_ahead_is_there_when_it_is_asked_for() -> None:
    engine = Engine()
    editor = Editor(engine)
    ask = editor.ask(f"x = {CURSOR}")
    await editor.completer.complete(replace(ask, ahead=True))
    assert editor.completer.journal.decisions()[0].outcome == "prefetched"
    assert "nothing has been asked for" not in editor.why()
    assert [item.text for item in await editor.completer.complete(ask)] == ["1"]
    assert [decision.source for decision in editor.completer.journal.decisions()] == ["cache", "engine"]
    assert len(engine.asked) == 1


async def test_who_asks_while_it_is_being_fetched_waits_for_that() -> None:
    engine = Engine(steps=1)
    editor = Editor(engine, debounce_ms=5000)
    ask = editor.ask(f"x = {CURSOR}")
    ahead = asyncio.create_task(editor.completer.complete(replace(ask, ahead=True)))
    await engine.began.wait()
    asked = asyncio.create_task(editor.completer.complete(ask))
    await asyncio.sleep(0)
    engine.step.release()
    assert await asked == await ahead != ()
    assert len(engine.asked) == 1


async def test_a_cached_item_for_an_outdated_document_is_not_offered() -> None:
    editor = Editor(Engine())
    ask = editor.ask(f"x = {CURSOR}")
    assert await editor.completer.complete(ask)
    editor.ask(f"y = {CURSOR}")
    assert await editor.completer.complete(ask) == ()
    assert "changed" in editor.completer.journal.decisions()[0].reason


async def test_the_journal_says_what_held_an_answer_back_and_what_it_cost() -> None:
    cost = Cost(forwards=3, encodes=2, ms=40.0)
    engine = Engine(answer=Result(candidates=(Candidate(text="   ", confidence=0.9),), cost=cost, finish="deadline"))
    editor = Editor(engine, min_confidence=0.5)
    await editor.texts(f"x = {CURSOR}")
    engine.answer = Result(candidates=(Candidate(text="1", confidence=0.1),))
    await editor.texts(f"xx = {CURSOR}")
    engine.answer = Result(candidates=(Candidate(text="1", confidence=0.8),))
    await editor.texts(f"xxx = {CURSOR}")
    shown, unsure, blank = editor.completer.journal.decisions()
    assert blank.filter in {filter_.__name__ for filter_ in filters.FILTERS}
    assert (blank.confidence, blank.forwards, blank.encodes, blank.engine_ms) == (0.9, 3, 2, 40.0)
    assert blank.finish == "deadline"
    assert (unsure.gate, unsure.filter, unsure.confidence) == ("confidence", "", 0.1)
    assert (shown.outcome, shown.source, shown.gate, shown.confidence) == ("shown", "engine", "", 0.8)


async def test_the_journal_keeps_the_last_two_hundred() -> None:
    editor = Editor(Engine())
    for _ in range(210):
        await editor.texts(f"x = {CURSOR}")
    assert len(editor.completer.journal.decisions()) == 200
