"""Which canvases are sent, and how what comes back is scored. Ids are small numbers here; 0 to 9 are no text."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.profiles import ModelProfile, load_profile
from diffusion.remote.canvases import LEAST_PINS, Canvas, Plan, Read, floated, middle_of, spread, text_ids


def small() -> ModelProfile:
    shipped = load_profile("diffusiongemma-26b-a4b-it")
    assert shipped.chat is not None
    chat = replace(shipped.chat, first_text=10, last_text=999, restored=3)
    return replace(shipped, chat=chat, architecture={"vocab_size": 1000})


PROFILE = small()
WIDTHS = (16, 32, 64)


def plan(forced: tuple[int, ...] = (11, 12), seed: int = 0) -> Plan:
    return Plan(profile=PROFILE, forced=forced, after=tuple(range(100, 164)), widths=WIDTHS, seed=seed)


@given(
    st.lists(st.integers(10, 999), max_size=20).map(tuple),
    st.lists(st.integers(1, 60), max_size=6),
    st.lists(st.lists(st.integers(10, 999), min_size=1, max_size=60).map(tuple), max_size=2),
    st.integers(1, 64),
)
def test_canvases_hold_together(
    forced: tuple[int, ...], lengths: list[int], starts: list[tuple[int, ...]], floating: int
) -> None:
    made = plan(forced)
    *known, floats = made.first(lengths, starts, floating)
    assert floats.floats and len(floats.seed) in WIDTHS and floats.pinned == tuple(range(len(forced)))
    for canvas in known:
        width = len(canvas.seed)
        free = [at for at in range(width) if at not in canvas.pinned]
        end = canvas.start + canvas.middle + canvas.restored
        assert width in WIDTHS and canvas.seed[: len(forced)] == forced and not canvas.floats
        assert free == list(range(canvas.start, end)) and width - end >= LEAST_PINS
        # What is pinned behind is the suffix as it goes on after the ids that are to be restored.
        assert canvas.seed[end:] == made.after[canvas.restored : canvas.restored + width - end]
    sizes = [*lengths, *map(len, starts)]
    room = [size for size in sizes if len(forced) + size + 3 + LEAST_PINS <= WIDTHS[-1]]
    assert sorted(canvas.middle for canvas in known) == sorted(room)


def test_the_same_seed_gives_the_same_noise() -> None:
    assert plan().first([4], [], 16) == plan().first([4], [], 16) != plan(seed=1).first([4], [], 16)


def read(ids: list[int], score: float | None = -0.1) -> Read:
    return Read(ids=tuple(ids), scores=(score,) * len(ids))


def known(middle: int) -> Canvas:
    return plan(()).first([middle], [], 16)[0]


def test_a_restored_suffix_counts_for_more_than_another_one() -> None:
    canvas = known(2)
    filler = [50] * 11
    right = middle_of(canvas, read([20, 21, 100, 101, 102, *filler]), PROFILE)
    half = middle_of(canvas, read([20, 21, 100, 30, 102, *filler]), PROFILE)
    none = middle_of(canvas, read([20, 21, 30, 31, 32, *filler]), PROFILE)
    assert right.ids == half.ids == none.ids == (20, 21)
    assert right.score > half.score > none.score
    assert right.score == pytest.approx(-0.2)


def test_without_probabilities_ids_alone_decide() -> None:
    canvas = known(2)
    right = middle_of(canvas, read([20, 21, 100, 101, 102, *[50] * 11], None), PROFILE)
    none = middle_of(canvas, read([20, 21, 100, 101, 30, *[50] * 11], None), PROFILE)
    assert right.score == 0.0 > none.score


@given(st.floats(-50, 0))
def test_a_wrong_id_never_counts_as_much_as_a_right_one_may(score: float) -> None:
    canvas = known(2)
    wrong = middle_of(canvas, read([20, 21, 30, 31, 32, *[50] * 11], score), PROFILE)
    assert math.isfinite(wrong.score) and wrong.behind <= -1.0


def test_a_special_id_ends_the_middle_and_counts_against_its_length() -> None:
    canvas = known(4)
    whole = middle_of(canvas, read([20, 21, 22, 23, 100, 101, 102, *[50] * 9]), PROFILE)
    ended = middle_of(canvas, read([20, 21, 3, 23, 100, 101, 102, *[50] * 9]), PROFILE)
    assert ended.ids == (20, 21) and ended.score < whole.score


def test_a_floating_canvas() -> None:
    canvas = plan(()).first([], [], 16)[0]
    exact = floated(canvas, read([20, 21, 100, *[50] * 13]), (20, 21), exact=True)
    alike = floated(canvas, read([20, 21, 100, *[50] * 13]), (20, 21), exact=False)
    empty = floated(canvas, read([100, *[50] * 15]), (), exact=True)
    assert exact.score > empty.score and exact.score > alike.score


def test_clamped_canvases_go_on_from_the_middle_with_the_suffix_pinned_at_once() -> None:
    middle = middle_of(known(2), read([20, 21, *[50] * 14]), PROFILE)
    canvas = plan((11,)).clamped(middle)
    assert canvas is not None and canvas.seed == (11, 20, 21, *range(100, 113))
    assert canvas.pinned == (0, *range(3, 16)) and canvas.restored == 0
    assert plan((11,)).clamped(replace(middle, ids=(20,) * 60)) is None


@given(st.lists(st.integers(0, 999)).map(tuple))
def test_text_ids_are_those_before_the_first_special_one(ids: tuple[int, ...]) -> None:
    found = text_ids(ids, PROFILE)
    assert ids[: len(found)] == found and all(i >= 10 for i in found)
    assert len(found) == len(ids) or ids[len(found)] < 10


@pytest.mark.parametrize(
    ("count", "lengths"),
    [(5, [2, 8, 12, 16, 32]), (7, [2, 4, 8, 12, 16, 24, 32]), (9, [2, 4, 8, 12, 16, 24, 32]), (1, [2])],
)
def test_spread(count: int, lengths: list[int]) -> None:
    assert spread((2, 4, 8, 12, 16, 24, 32), count) == lengths
