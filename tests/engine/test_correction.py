"""Self-correction: what does not fit is taken back, what scores better stays; bounded, and never against a limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from diffusion import infill, opening, ranking
from diffusion.api import FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.opening import Desk, Tally, Task
from diffusion.ranking import Outcome, Read
from diffusion.stopping import Cancelled, Limits

from .conftest import Tiny

PREFIXES = ("x = ", "def f(a):\n    return ", "import os\n\nfor name in ", "class A:\n    def b(self):\n        ", "")


def prepared(tiny: Tiny, prefix: str, corrections: int = 1) -> tuple[Task, Desk]:
    asked = FillRequest(
        id="1", prefix=prefix, suffix="\n\nf(1)\n", language="python", length_of="1234567", corrections=corrections
    )
    desk = Desk(model=tiny.model, cache=tiny.model.new_cache(), profile=tiny.profile, tally=Tally())
    task = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model).tasks.task(asked)
    return replace(task, drafted=False), desk  # a good draft would end the fill before there is anything to correct


def outcome(tiny: Tiny, prefix: str, corrections: int) -> tuple[Outcome, Tally]:
    task, desk = prepared(tiny, prefix, corrections)
    *_, last = infill.fill(task, desk, Limits())
    assert isinstance(last, Outcome)
    return last, desk.tally


@pytest.fixture
def doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every id that the encoder did not expect is a misfit: an untrained model is never sure."""
    monkeypatch.setattr(ranking, "MISFIT", 0.0)


def test_misfits_are_where_another_id_is_much_likelier() -> None:
    read = Read(log_p=(-0.1, -5.0, -2.5), expected=(7, 8, 9), expected_log_p=(-0.1, -0.5, -1.0), suffix=0.0)
    assert read.misfits == {1: 8}


def test_what_is_taken_back_is_free_and_nothing_else_is(tiny: Tiny) -> None:
    task, desk = prepared(tiny, "x = ")
    tiny.model.encode(task.prompt.encoder, desk.cache)
    canvas = infill._taken_back(opening.first_canvas(task, desk), (100, 101, 102), {1: 50}, desk)
    assert canvas.free == (False, True, *(False,) * (len(canvas.slot) - 2))
    assert (canvas.slot[0], canvas.slot[2], canvas.middle[:1]) == (100, 102, (100,))
    assert canvas.slot[1] == tiny.profile.tokens["mask"] and set(canvas.slot[3:]) == {tiny.profile.tokens["end"]}


@pytest.mark.parametrize("prefix", PREFIXES)
def test_an_answer_is_never_worse_by_its_own_score(tiny: Tiny, doubtful: None, prefix: str) -> None:
    plain, before = outcome(tiny, prefix, 0)
    assert plain.uncorrected == plain.middles[0] and before.renoised == before.revised == 0
    for rounds in (1, 3):
        corrected, tally = outcome(tiny, prefix, rounds)
        assert corrected.uncorrected is not None and corrected.uncorrected.ids == plain.middles[0].ids
        assert corrected.middles[0].score >= plain.middles[0].score
        assert before.forwards < tally.forwards <= before.forwards + rounds * tiny.profile.sampler.steps
        assert tally.renoised > 0 and (tally.revised > 0) == (corrected.middles[0].ids != plain.middles[0].ids)
        assert len({middle.ids for middle in corrected.middles}) == len(corrected.middles)


def test_some_ids_are_revised(tiny: Tiny, doubtful: None) -> None:
    assert sum(outcome(tiny, prefix, 2)[1].revised for prefix in PREFIXES) > 0


def test_a_client_that_has_gone_ends_a_correction(tiny: Tiny, doubtful: None) -> None:
    task, desk = prepared(tiny, "x = ")
    plain = outcome(tiny, "x = ", 0)[1].forwards
    with pytest.raises(Cancelled):
        list(infill.fill(task, desk, Limits(cancelled=lambda: desk.tally.forwards > plain)))
    assert desk.tally.forwards == plain + 1


def test_a_trace_tells_what_the_answer_was_chosen_from(tiny: Tiny, doubtful: None) -> None:
    profile = replace(tiny.profile, sampler=replace(tiny.profile.sampler, corrections=1))
    engine = ResidentEngine(profile, tiny.vocabulary, tiny.model)
    asked = FillRequest(id="1", prefix="x = ", suffix="\n", language="python", length_of="12345", starts=("12345",))
    assert engine.tasks.task(asked).corrections == 1
    (plain,) = engine.fill(asked)
    (traced,) = engine.fill(replace(asked, trace=True))
    assert isinstance(plain, Result) and isinstance(traced, Result) and traced.trace is not None
    assert plain.trace is None and traced.candidates == plain.candidates
    texts = {candidate.text for candidate in traced.trace.batch}
    assert {"12345", traced.trace.uncorrected.text, traced.trace.first.text} <= texts
    assert traced.candidates[0].text == traced.trace.batch[0].text and traced.trace.renoised >= traced.trace.revised
