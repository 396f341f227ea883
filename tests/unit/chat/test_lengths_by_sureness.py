"""Of several lengths, the one that a model is surest of beyond what any model is with so few positions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.lengths import bias, surest
from diffusion.profiles import load_profile

CHAT = load_profile("diffusiongemma-26b-a4b-it").chat
assert CHAT is not None
CURVE, LENGTHS = CHAT.length_bias, CHAT.lengths


def test_the_bias_falls_from_one_length_to_the_next() -> None:
    curve = [bias(length, CURVE) for length in LENGTHS]
    assert curve == sorted(curve, reverse=True) and curve[-1] > CURVE[-1]


@pytest.mark.parametrize("right", LENGTHS)
def test_a_planted_length_is_recovered(right: int) -> None:
    """Everywhere as sure as the bias says, at the right length a fifth surer: by themselves short ones would win."""
    sure = [bias(length, CURVE) * (1.2 if length == right else 1.0) for length in LENGTHS]
    assert surest(LENGTHS, sure, CURVE, 1) == [right]
    assert LENGTHS[sure.index(max(sure))] <= 4


@given(st.lists(st.floats(0.01, 1.0), min_size=len(LENGTHS), max_size=len(LENGTHS)), st.integers(1, 7))
def test_the_best_come_first(sure: list[float], most: int) -> None:
    best = surest(LENGTHS, sure, CURVE, most)
    quality = [sure[LENGTHS.index(length)] / bias(length, CURVE) for length in best]
    assert len(set(best)) == most and quality == sorted(quality, reverse=True)
