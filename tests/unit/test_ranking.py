"""How middles are ranked by their scores: what was known before counts like any other probability."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.profiles import FEATURES
from diffusion.ranking import Middle, features

nats = st.floats(-80, 0)
middles = st.builds(
    Middle, ids=st.just((1,)), length_score=nats, decoder_score=nats, encoder_score=nats, suffix_score=nats, least=nats,
    known=st.floats(0, 1),
)  # fmt: skip


def test_a_known_probability_is_mixed_with_the_model_s() -> None:
    middle = Middle(encoder_score=math.log(0.1), suffix_score=math.log(0.3))
    assert math.exp(middle.score) == pytest.approx(0.03)
    assert math.exp(replace(middle, known=0.4).score) == pytest.approx((0.4 + 0.6 * 0.1) * 0.3)
    assert math.exp(replace(middle, known=1.0).score) == pytest.approx(0.3)


@given(middles, st.floats(0, 1))
def test_what_is_likelier_before_never_ranks_lower(middle: Middle, more: float) -> None:
    low, high = sorted((middle.known, more))
    worst, best = replace(middle, known=low), replace(middle, known=high)
    assert best.score >= worst.score - 1e-9 and math.isfinite(best.score) == (high > 0 or math.isfinite(worst.score))


@given(st.lists(middles, min_size=1, max_size=6))
def test_features_are_finite_and_shares_sum_to_one(found: list[Middle]) -> None:
    rows = features(found)
    assert all(len(row) == FEATURES and all(map(math.isfinite, row)) for row in rows)
    assert sum(math.exp(row[4]) for row in rows) == pytest.approx(1)
    best = max(range(len(found)), key=lambda index: found[index].score)
    assert rows[best][5] >= 0
