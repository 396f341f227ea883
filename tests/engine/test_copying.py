"""What a text says of its own next id, against the definition in loops over all places."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from diffusion.copying import ESCAPE, Copies

WEIGHTS = (0.0, 0.2, 0.4, 0.8)

ids = st.lists(st.integers(0, 3), max_size=30).map(tuple)


def naive(texts: list[tuple[int, ...]], tail: tuple[int, ...], longest: int) -> tuple[dict[int, float], int]:
    """The probability of each id behind `tail` by the places of `texts` that agree with its end, and with how much."""
    p: dict[int, float] = {}
    agree = 0
    for depth in range(1, min(longest, len(tail)) + 1):
        behind = [
            text[place]
            for text in texts
            for place in range(depth, len(text))
            if text[place - depth : place] == tail[len(tail) - depth :]
        ]
        if not behind:
            break
        weight = len(behind) / (len(behind) + ESCAPE * len(set(behind)))
        p = {
            token: weight * behind.count(token) / len(behind) + (1 - weight) * p.get(token, 0.0)
            for token in set(behind) | set(p)
        }
        agree = depth
    return p, agree


@given(ids, ids, ids)
def test_it_is_what_the_definition_says(
    before: tuple[int, ...], after: tuple[int, ...], written: tuple[int, ...]
) -> None:
    longest = len(WEIGHTS) - 1
    copied = Copies(before, after, WEIGHTS).after(written)
    p, agree = naive([before, after], (before[-longest:] + written)[-longest:], longest)
    assert copied.agree == agree and copied.weight == WEIGHTS[agree]
    assert copied.p.keys() == p.keys()
    assert all(math.isclose(copied.p[token], p[token]) for token in p)


@given(ids, ids, ids, st.integers(0, 3), st.floats(-20, 0))
def test_a_mixture_of_probabilities_is_one(
    before: tuple[int, ...], after: tuple[int, ...], written: tuple[int, ...], token: int, log_p: float
) -> None:
    copies = Copies(before, after, WEIGHTS)
    copied = copies.after(written)
    wanted = (1 - copied.weight) * math.exp(log_p) + copied.weight * copied.p.get(token, 0.0)
    assert math.isclose(copies.mixed(written, token, log_p), math.log(wanted), abs_tol=1e-9)
    assert sum(copied.p.values()) <= 1 + 1e-9


def test_text_before_and_after_the_cursor_is_copied() -> None:
    copies = Copies((5, 1, 2, 7, 1), (8, 1, 2, 9), WEIGHTS)
    assert copies.after(()).p.keys() == {2} and copies.after((2,)).p.keys() == {7, 9}
    # What ends one text is not followed by what begins the other.
    assert Copies((1, 2), (3, 4), WEIGHTS).after((2,)).p == {}
