"""Starts of a request: each is a hint for a canvas and a candidate as it is, none can do harm."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from diffusion import infill, opening, ranking
from diffusion.api import FillRequest, Result
from diffusion.canvas import closed_canvas
from diffusion.denoise import Rules, denoise
from diffusion.engine import ResidentEngine
from diffusion.opening import Desk, Task
from diffusion.ranking import Outcome
from diffusion.stopping import Limits
from diffusion.tasks import STARTS

from .conftest import Tiny, prepared
from .test_copying import naive


@pytest.fixture(scope="module")
def engine(tiny: Tiny) -> ResidentEngine:
    return ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)


def request(**more) -> FillRequest:  # type: ignore[no-untyped-def]
    return FillRequest(id="1", prefix="def f(a):\n    return ", suffix="\n\nf(1)\n", language="python", **more)


def outcome(task: Task, desk: Desk) -> Outcome:
    *_, last = infill.fill(task, desk, Limits())
    assert isinstance(last, Outcome)
    return last


def texts(engine: ResidentEngine, asked: FillRequest) -> list[str]:
    *_, result = engine.fill(asked)
    assert isinstance(result, Result)
    return [candidate.text for candidate in result.candidates]


def what_it_would_write(task: Task, desk: Desk, tiny: Tiny) -> tuple[int, ...]:
    """The argmax of the closed canvas of the task's length, all masked: the oracle for a perfect hint."""
    length = task.length
    assert length
    canvas = closed_canvas(opening.first_canvas(task, desk), length, task.width)
    hidden = tiny.model.decode(tiny.model.tensor([canvas.ids]), tiny.model.tensor([canvas.positions]), desk.cache)
    logits = task.rules.apply(tiny.model.logits(hidden[0, :length]), torch.arange(length))
    return tuple(logits.argmax(-1).tolist())


def test_an_exact_hint_is_accepted_in_one_forward(engine: ResidentEngine, tiny: Tiny) -> None:
    task, desk = prepared(engine, tiny, request(length_of="12345"))
    hint = opening.opened(task, desk).slot[: task.length]
    last = outcome(replace(task, hints=(hint,)), desk)
    assert [middle.ids for middle in last.middles] == [hint]
    assert desk.tally.forwards == 1
    cold = outcome(task, desk)
    assert cold.middles and desk.tally.forwards > 1 + 2


def test_a_nearly_exact_hint_keeps_what_is_right_of_it(engine: ResidentEngine, tiny: Tiny) -> None:
    """What is confirmed is committed before the first denoising step; the wrong id is written by the model."""
    task, desk = prepared(engine, tiny, request(length_of="12345"))
    right = what_it_would_write(task, desk, tiny)
    wrong = tiny.vocabulary.encode("z")[0]
    assert wrong != right[1]
    (hint,) = opening.opened(replace(task, hints=((right[0], wrong, *right[2:]),)), desk).hints
    assert hint.agreed == (True, False, *(True,) * (len(right) - 2))
    canvas = hint.canvas(closed_canvas(opening.first_canvas(task, desk), len(right), task.width))
    assert canvas.free.index(True) == 1 and sum(canvas.free) == 1
    assert canvas.slot[2 : len(right)] == right[2:]


def test_every_start_is_a_candidate_as_it_is(engine: ResidentEngine, tiny: Tiny) -> None:
    starts = ("12", "34", "5", "678")  # digits are single ids: two of the same length
    task, desk = prepared(engine, tiny, request(n=3, starts=starts))
    middles = {tiny.vocabulary.decode(middle.ids): middle for middle in outcome(task, desk).middles}
    assert {task.prompt.forced + start for start in starts} <= set(middles)


def test_a_literal_has_the_scores_of_a_naive_loop(engine: ResidentEngine, tiny: Tiny) -> None:
    task, desk = prepared(engine, tiny, request(n=3, starts=("12",)))
    (found,) = (middle for middle in outcome(task, desk).middles if middle.ids == task.hints[0])
    cache, total, forced = tiny.model.new_cache(), [], 0.0
    ids, written = list(task.prompt.encoder), list[int]()
    prompt, weights = task.prompt, tiny.profile.copying
    assert prompt.forced == " "
    for token in (*task.hints[0], *task.prompt.pins[: ranking.SCORED_PINS]):
        tiny.model.encode(ids, cache)
        assert cache.last_hidden is not None
        own = tiny.model.logits(cache.last_hidden)[0].log_softmax(-1).exp().tolist()
        copied, agree = naive([prompt.before, prompt.after], (*prompt.before, *written), len(weights) - 1)
        p = [(1 - weights[agree]) * own[one] + weights[agree] * copied.get(one, 0.0) for one in range(len(own))]
        if not written:
            blank = [one for one, text in enumerate(tiny.vocabulary.texts) if text.startswith(prompt.forced)]
            forced = math.log(sum(p[one] for one in blank))
        total.append(math.log(p[token]))
        ids.append(token)
        written.append(token)
    length = len(task.hints[0])
    assert found.encoder_score == pytest.approx(sum(total[:length]) - forced, abs=1e-3)
    assert found.suffix_score == pytest.approx(sum(total[length:]), abs=1e-3)


@pytest.mark.parametrize("start", ["", "  ", "1\n2", "1\r2", "7" * 40, "\n1"])
def test_a_start_that_cannot_be_an_answer_changes_nothing(engine: ResidentEngine, start: str) -> None:
    assert texts(engine, request(n=3, starts=(start,))) == texts(engine, request(n=3))


def test_ids_that_are_banned_are_no_hint(engine: ResidentEngine, tiny: Tiny) -> None:
    task, desk = prepared(engine, tiny, request())
    newline = min(tiny.vocabulary.newline_ids)
    assert opening.opened(replace(task, hints=((newline, 100), (3,))), desk).hints == ()


def test_a_bounded_number_of_starts_is_looked_at(engine: ResidentEngine, tiny: Tiny) -> None:
    task, _ = prepared(engine, tiny, request(starts=tuple(str(number) for number in range(100))))
    assert len(task.hints) == STARTS


def test_canvases_that_fall_behind_are_given_up_and_the_best_stays(engine: ResidentEngine, tiny: Tiny) -> None:
    task, desk = prepared(engine, tiny, request())
    canvas = opening.first_canvas(task, desk)
    nothing = torch.zeros(512, dtype=torch.bool)
    sampler = replace(tiny.profile.sampler, margin=1.0)

    def run(keep: int | None) -> list[bool]:
        *_, last = denoise(
            tiny.model, desk.cache, [closed_canvas(canvas, length, 16) for length in (1, 5, 9, 12)],
            rules=Rules.banning(nothing, nothing), sampler=sampler, steps=6, specials=32, keep=keep,
        )  # fmt: skip
        assert last.finish == "stop"
        assert last.promise[last.best] == max(last.promise)
        return [promise > float("-inf") for promise in last.promise]

    assert run(None) == [True] * 4
    assert sum(run(3)) >= 3
    assert run(1)[0] and sum(run(1)) < 4
