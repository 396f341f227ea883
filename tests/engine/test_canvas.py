"""Canvas values: pins stay, committed ids stay, lengths and widths fit. And the lengths' distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffusion.canvas import Canvas, closed_canvas, open_canvas
from diffusion.lengths import distribution, likeliest, monotone
from diffusion.profiles import load_profile
from diffusion.samplers import BANNED, accept, propose

PROFILE = load_profile("embedded")
END, MASK = PROFILE.tokens["end"], PROFILE.tokens["mask"]


@given(
    width=st.sampled_from(PROFILE.layout.widths),
    cut=st.integers(1, 500),
    pins=st.lists(st.integers(32, 8191), max_size=32),
    data=st.data(),
)
def test_closing_commits_the_end_and_keeps_the_rest(width: int, cut: int, pins: list[int], data: st.DataObject) -> None:
    canvas = open_canvas(PROFILE, width, cut, tuple(pins))
    length = data.draw(st.integers(0, width))
    shrunk = data.draw(st.sampled_from([w for w in PROFILE.layout.widths if w >= max(length, 1)]))
    closed = closed_canvas(canvas, length, shrunk)
    assert closed.slot == (MASK,) * length + (END,) * (shrunk - length)
    assert closed.free == (True,) * length + (False,) * (shrunk - length)
    assert closed.pins == tuple(pins)
    # The suffix head stands where it stood, whatever the width.
    assert closed.positions[shrunk:] == canvas.positions[width:] == tuple(range(cut + 64, cut + 64 + len(pins)))
    assert len(closed.middle) == length


def test_a_committed_position_cannot_change() -> None:
    canvas = closed_canvas(open_canvas(PROFILE, 8, 3, ()), 2, 8)
    assert canvas.written((50, 51) + (END,) * 6, (False,) * 8).middle == (50, 51)
    with pytest.raises(ValueError, match="committed"):
        canvas.written((50, 51, 52) + (END,) * 5, (False,) * 8)
    with pytest.raises(ValueError, match="committed"):
        canvas.written((50, 51, END), (False,) * 3)
    with pytest.raises(ValueError, match="fit"):
        Canvas(slot=(1,) * 65, free=(True,) * 65, pins=(), cut=1, gap=64, end=END)
    with pytest.raises(ValueError, match="fit"):
        closed_canvas(canvas, 9, 8)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=64))
def test_lengths_are_a_distribution(ends: list[float]) -> None:
    p = distribution(np.array(ends))
    assert len(p) == len(ends) + 1
    assert (p >= -1e-12).all()
    assert p.sum() == pytest.approx(1.0)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=12))
def test_monotone_is_the_nearest_non_decreasing_sequence(values: list[float]) -> None:
    fitted = monotone(np.array(values))
    assert (np.diff(fitted) >= -1e-9).all()
    # Optimality of a projection on a cone: the residual is orthogonal to the fit and to no step's gain.
    residual = np.array(values) - fitted
    assert residual @ fitted == pytest.approx(0.0, abs=1e-6)
    assert all(residual[start:].sum() <= 1e-6 for start in range(len(values)))


@given(st.integers(0, 31), st.floats(0.0, 0.2), st.integers(0, 1000))
def test_a_planted_length_is_found(length: int, noise: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    ends = np.where(np.arange(32) >= length, 0.9, 0.1) + random.uniform(-noise, noise, 32)
    assert likeliest(distribution(ends), 1) == [length]


def test_the_shortest_length_is_kept_and_ties_go_to_the_shorter() -> None:
    p = np.array([0.6, 0.1, 0.2, 0.1])
    assert likeliest(p, 3, shortest=1) == [2, 1, 3]
    assert likeliest(p, 3, mass=0.8) == [0, 2]
    assert likeliest(p, 3, least=3, mass=0.5) == [0, 2, 1]
    assert likeliest(p, 1, mass=0.9) == [0]
    assert likeliest(p, 9, least=9) == [0, 2, 1, 3]


@given(st.integers(1, 4), st.integers(1, 10), st.floats(0, 3), st.integers(0, 9999))
def test_acceptance_equals_a_naive_loop(batch: int, width: int, bound: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    entropy = torch.rand(batch, width, generator=generator) * 2
    candidates = torch.rand(batch, width, generator=generator) < 0.7
    naive = torch.zeros_like(candidates)
    for row in range(batch):
        total = 0.0
        for column in sorted(range(width), key=lambda c: entropy[row, c].item()):
            if candidates[row, column]:
                if total <= bound:
                    naive[row, column] = True
                total += entropy[row, column].item()
    accepted = accept(entropy, candidates, bound)
    assert (accepted | ~naive).all() and (accepted & ~candidates).sum() == 0
    assert torch.equal(accepted.any(-1), candidates.any(-1))
    # float32 sums may differ from the loop's in the last position only.
    assert (accepted ^ naive).sum(-1).max() <= 1


def test_temperature_zero_is_argmax_and_sampling_follows_the_seed() -> None:
    logits = torch.randn(5, 3, 20, generator=torch.Generator().manual_seed(1))
    logits[..., :4] += BANNED
    proposal = propose(logits, 0.0, None)
    oracle = torch.distributions.Categorical(logits=logits.double())
    assert torch.equal(proposal.ids, logits.argmax(-1)) and torch.equal(proposal.ids, proposal.likeliest)
    torch.testing.assert_close(proposal.log_p.double(), oracle.log_prob(proposal.ids), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(proposal.entropy.double(), oracle.entropy(), atol=1e-5, rtol=1e-5)
    first, again = (propose(logits, 1.0, torch.Generator().manual_seed(7)).ids for _ in range(2))
    assert torch.equal(first, again) and (first >= 4).all()
