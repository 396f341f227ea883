"""The loop: pins and commitments hold, bans hold, it can stop at any step, and more steps are not worse than one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from diffusion.canvas import Canvas, closed_canvas, open_canvas
from diffusion.denoise import Rules, Step, denoise
from diffusion.profiles import Sampler
from diffusion.stopping import Cancelled, Limits

from .conftest import Tiny

PINS = tuple(range(100, 110))
ABSORBING = Sampler(
    noise="absorbing",
    self_conditioning="none",
    steps=16,
    entropy_bound=0.3,
    temperature=(0.0, 0.0),
    lengths=3,
    length_mass=0.9,
)
SAMPLERS = [
    ABSORBING,
    replace(ABSORBING, temperature=(0.8, 0.4)),
    replace(ABSORBING, noise="uniform", self_conditioning="zero_at_pins", temperature=(0.8, 0.4)),
    replace(ABSORBING, noise="uniform", self_conditioning="one_hot_at_pins"),
    replace(ABSORBING, self_conditioning="one_hot_at_pins"),
]


def run(tiny: Tiny, sampler: Sampler, steps: int = 16, limits: Limits | None = None, seed: int = 0) -> list[Step]:
    cache = tiny.model.new_cache()
    tiny.model.encode(list(range(40, 60)), cache)
    canvas = open_canvas(tiny.profile, 32, 20, PINS)
    ids = torch.arange(512)
    rules = Rules.banning((ids < 32) | (ids % 2 == 1), (ids < 300))
    return list(
        denoise(
            tiny.model,
            cache,
            [closed_canvas(canvas, length, 16) for length in (3, 0, 12)],
            rules=rules,
            sampler=sampler,
            steps=steps,
            specials=32,
            seed=seed,
            limits=limits,
        )
    )


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("steps", [1, 2, 16])
def test_pins_commitments_and_bans_hold_at_every_step(tiny: Tiny, sampler: Sampler, steps: int) -> None:
    taken = run(tiny, sampler, steps)
    assert 1 <= len(taken) <= steps
    for step in taken:
        for canvas, draft, length in zip(step.canvases, step.drafts, (3, 0, 12), strict=True):
            assert canvas.pins == PINS
            assert canvas.slot[length:] == draft[length:] == (tiny.profile.tokens["end"],) * (16 - length)
            if length:
                assert draft[0] >= 300 and all(i >= 32 and i % 2 == 0 for i in draft[1:length])
    last = taken[-1]
    assert last.finish == "stop" and not any(any(canvas.free) for canvas in last.canvases)
    assert [len(canvas.middle) for canvas in last.canvases] == [3, 0, 12]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_same_seed_same_text(tiny: Tiny, sampler: Sampler) -> None:
    assert run(tiny, sampler, seed=3) == run(tiny, sampler, seed=3)


def test_another_seed_samples_another_text(tiny: Tiny) -> None:
    hot = replace(ABSORBING, temperature=(3.0, 3.0))
    assert run(tiny, hot, seed=3)[-1].canvases != run(tiny, hot, seed=4)[-1].canvases


def test_a_past_deadline_still_gives_a_whole_draft(tiny: Tiny) -> None:
    (only,) = run(tiny, ABSORBING, limits=Limits(arrived=0.0, deadline_ms=1.0))
    assert only.finish == "deadline" and not any(any(canvas.free) for canvas in only.canvases)


def test_a_deadline_that_comes_in_the_middle_leaves_no_position_open(
    tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A near_deadline: the third question is answered with yes, whatever the clock says."""
    asked = iter([False, False, True])
    monkeypatch.setattr(Limits, "late", lambda self, ahead_ms=0.0: next(asked))
    steps = run(tiny, ABSORBING)
    assert [step.finish for step in steps] == [None, None, "deadline"]
    assert not any(any(canvas.free) for canvas in steps[-1].canvases)
    assert all(tiny.profile.tokens["mask"] not in canvas.middle for canvas in steps[-1].canvases)


def test_a_cancelled_loop_ends_between_two_steps(tiny: Tiny) -> None:
    asked = iter([False, False, True])
    seen = []
    cache = tiny.model.new_cache()
    tiny.model.encode([40], cache)
    nothing = torch.zeros(512, dtype=torch.bool)
    with pytest.raises(Cancelled):
        for step in denoise(
            tiny.model,
            cache,
            [closed_canvas(open_canvas(tiny.profile, 32, 1, PINS), 30, 32)],
            rules=Rules.banning(nothing, nothing),
            sampler=ABSORBING,
            steps=16,
            specials=32,
            limits=Limits(cancelled=lambda: next(asked)),
        ):
            seen.append(step)  # noqa: PERF402
    assert len(seen) == 2


class Agreement:
    """A model that knows only that the slot's ids must be equal: 40 or 41. Alone, each position is a coin toss with a
    slight bias that alternates along the slot; beside a known neighbour it is certain."""

    vocabulary_size = 64

    def tensor(self, rows):  # type: ignore[no-untyped-def]
        return torch.tensor(rows, dtype=torch.long)

    def decode(self, ids, *_):  # type: ignore[no-untyped-def]
        logits = torch.full((*ids.shape, 64), -20.0)
        for column in range(ids.shape[1]):
            for token in (40, 41):
                known = (ids == token).any(-1)
                logits[:, column, token] = torch.where(known, 10.0, 0.1 * (token == 40 + column % 2))
        return logits

    def logits(self, rows):  # type: ignore[no-untyped-def]
        return rows


def agree(steps: int, hint: tuple[int, ...] | None = None) -> list[Step]:
    nothing = torch.zeros(64, dtype=torch.bool)
    canvas = Canvas(slot=(3,) * 8, free=(True,) * 8, pins=(), cut=1, gap=64, end=4)
    return list(
        denoise(
            Agreement(),  # type: ignore[arg-type]
            None,  # type: ignore[arg-type]
            [canvas],
            rules=Rules.banning(nothing, nothing),
            sampler=ABSORBING,
            steps=steps,
            specials=32,
            hints=[hint],
        )
    )


def test_more_steps_are_not_worse_than_one() -> None:
    """One step takes every coin toss at once and mixes them up; step by step the canvas agrees with itself."""
    assert len(set(agree(1)[-1].canvases[0].slot)) == 2
    assert len(set(agree(8)[-1].canvases[0].slot)) == 1


def test_a_hint_is_accepted_where_the_model_proposes_it() -> None:
    """Even positions lean to 40: a hint of 40s has them at once, and the rest follows; other hints change nothing."""
    (first, *_) = agree(8, hint=(40,) * 8)
    assert first.canvases[0].slot[::2] == (40,) * 4
    assert agree(8, hint=(50,) * 8) == agree(8)
