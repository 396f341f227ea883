"""The whole engine on a tiny random model: events, rules, limits, and what typing costs."""

from __future__ import annotations

import time
from dataclasses import replace
from unittest.mock import ANY

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diffusion import infill
from diffusion.api import Draft, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.profiles import FEATURES, Calibration
from diffusion.ranking import Middle, Outcome

from .conftest import TEXTS, Tiny


@pytest.fixture(scope="module")
def engine(tiny: Tiny) -> ResidentEngine:
    return ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)


def request(marked: str = "def f(a):\n    return │\n\nf(1)\n", **more) -> FillRequest:  # type: ignore[no-untyped-def]
    prefix, suffix = marked.split("│")
    return FillRequest(id="1", prefix=prefix, suffix=suffix, **{"language": "python", "n": 3, **more})


def result(engine: ResidentEngine, asked: FillRequest, **more) -> Result:  # type: ignore[no-untyped-def]
    *drafts, last = engine.fill(asked, **more)
    assert all(isinstance(event, Draft) for event in drafts)
    assert isinstance(last, Result)
    return last


def texts(outcome: Result) -> list[tuple[str, int]]:
    return [(candidate.text, candidate.replace_before) for candidate in outcome.candidates]


def test_drafts_come_one_per_forward_and_only_when_asked(engine: ResidentEngine) -> None:
    *drafts, last = engine.fill(request(drafts=True, cells=True))
    assert [draft.step for draft in drafts] == list(range(1, last.cost.forwards + 1))
    assert all(cell.state in ("masked", "accepted", "end") for draft in drafts for cell in draft.cells)
    assert {cell.state for cell in drafts[0].cells} == {"masked"}
    assert "masked" not in {cell.state for cell in drafts[-1].cells}
    assert len(list(engine.fill(request()))) == 1


@settings(max_examples=25)
@given(
    before=st.text(max_size=80),
    after=st.text(max_size=80),
    mode=st.sampled_from(["line", "block"]),
    n=st.integers(1, 5),
)
def test_any_text_gets_an_answer_that_obeys_its_mode(engine: ResidentEngine, before: str, after: str, mode, n) -> None:  # type: ignore[no-untyped-def]
    before, after = (t.encode("utf-8", "replace").decode() for t in (before, after))
    outcome = result(engine, request(before + "│" + after, mode=mode, max_lines=3, n=n, steps=2))
    candidates = texts(outcome)
    assert len(set(candidates)) == len(candidates) <= n
    for text, replaced in candidates:
        assert text.count("\n") <= (0 if mode == "line" else 2)
        assert not before[len(before) - replaced :].strip(" \t")


def test_blanks_are_kept_or_replaced_as_a_whole(engine: ResidentEngine) -> None:
    for text, replaced in texts(result(engine, request("if a:\n    x = 1\n        │\ny\n", n=5))):
        assert replaced in (0, 8)
        assert replaced == 8 or text


@pytest.mark.parametrize(
    "marked",
    ["if a:\n    if b:\n        c()\n        │\n        d()\n", "if a:\n    if b:\n        c()\n│\n        d()\n"],
)
def test_a_line_begins_as_deep_as_its_neighbours_allow(engine: ResidentEngine, marked: str) -> None:
    blanks = marked.split("│")[0].rpartition("\n")[2]
    for keep in (False, True):
        outcome = result(engine, request(marked, n=5, keep_indent=keep))
        assert outcome.candidates
        for text, before in texts(outcome):
            line = blanks[: len(blanks) - before] + text
            indent = line[: len(line) - len(line.lstrip(" "))]
            allowed = (blanks,) if keep else ("    ", "        ")
            # What the model writes next may begin with more of them.
            assert indent.startswith(allowed) and (not keep or before == 0)


def test_same_request_same_text_warm_or_cold(engine: ResidentEngine, tiny: Tiny) -> None:
    # Short enough for one block of the window, which then does not move between the two.
    asked = request(TEXTS[0][:200] + "│" + TEXTS[0][200:], mode="block", max_lines=4)
    cold = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    result(engine, replace(asked, prefix=asked.prefix[:-20]))
    warm = result(engine, asked)
    assert warm.cost.cached > warm.cost.encoded > 0
    assert texts(warm) == texts(result(cold, asked)) == texts(result(engine, asked))


def test_a_known_length_is_counted_in_ids_with_what_is_held_back(engine: ResidentEngine, tiny: Tiny) -> None:
    """Digits are single ids; on a blank line the newline and the indentation are one more, else what is forced is."""
    for marked, length in (("x =  │\n", 5), ("x = │\n", 6), ("if a:\n    │\n", 6)):
        asked = request(marked, length_of="12345")
        assert engine.tasks.task(asked).length == length


def test_a_middle_longer_than_the_slot_goes_on_in_the_next(engine: ResidentEngine) -> None:
    outcome = result(engine, request(mode="block", max_lines=50, n=1, length_of="7" * 150))
    assert outcome.finish == "stop"
    assert outcome.cost.encodes >= 2 * 3  # three canvases: 64 + 64 + 22
    endless = result(engine, request(mode="block", max_lines=50, n=1, length_of="7" * 999))
    assert endless.finish == "length"


def test_an_empty_middle_is_no_candidate(engine: ResidentEngine) -> None:
    assert result(engine, request("def f(a):\n    return  │\n\nf(1)\n", length_of="")).candidates == ()


def test_a_deadline_gives_the_best_draft(engine: ResidentEngine) -> None:
    outcome = result(engine, request(deadline_ms=1.0), arrived=time.monotonic() - 10)
    assert outcome.finish == "deadline"
    assert outcome.cost.forwards == 2
    assert outcome.cost.ms >= 10_000


def test_after_a_cancel_no_event_follows(engine: ResidentEngine) -> None:
    assert list(engine.fill(request(drafts=True), cancelled=lambda: True)) == []
    seen: list[object] = []
    for event in engine.fill(request(drafts=True), cancelled=lambda: len(seen) >= 2):
        seen.append(event)  # noqa: PERF402
    assert len(seen) == 2 and all(isinstance(event, Draft) for event in seen)
    assert result(engine, request()) == replace(result(engine, request()), cost=ANY)  # the cache is still good


@pytest.mark.parametrize("calibrated", [True, False])
def test_an_empty_middle_is_no_answer_where_a_confidence_tells_what_others_are_worth(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch, calibrated: bool
) -> None:
    calibration = Calibration(confidence_weights=(0.1,) * FEATURES) if calibrated else None
    engine = ResidentEngine(replace(tiny.profile, calibration=calibration), tiny.vocabulary, tiny.model)
    written = tuple(tiny.vocabulary.encode(" value"))
    empty, other = Middle(encoder_score=-1.0), Middle(ids=written, encoder_score=-2.0)
    outcome = Outcome(middles=(empty, other), finish="stop", uncorrected=empty)
    monkeypatch.setattr(infill, "fill", lambda *_: iter([outcome]))
    asked = FillRequest(id="1", prefix="x = ", suffix="\n", language="python", trace=True)
    (result,) = engine.fill(asked)
    assert isinstance(result, Result) and result.trace
    assert [candidate.text for candidate in result.candidates] == ["value"] * calibrated
    assert result.trace.uncorrected.text == result.trace.first.text == "value"
