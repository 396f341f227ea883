"""The debounce in numbers: what was measured, what is allowed, what the client waits itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.debounce import FIRST_MS, Debounce


def after(*latencies: float) -> Debounce:
    debounce = Debounce()
    for ms in latencies:
        debounce.answered(ms)
    return debounce


@pytest.mark.parametrize(
    ("latencies", "most", "client", "waited"),
    [
        ((), 300, 0, FIRST_MS),
        ((), 300, 200, 0),
        ((100,), 300, 0, 50),
        ((100,), 300, 30, 20),
        ((100,), 300, 200, 0),
        ((10, 10, 5000), 300, 0, 5),  # one slow answer is no slow engine
        ((2000, 2000), 300, 0, 300),
        ((2000,), 300, 200, 100),
        ((100,), 0, 0, 0),
    ],
)
def test_half_of_what_an_answer_takes(latencies: tuple[float, ...], most: float, client: float, waited: float) -> None:
    assert after(*latencies).seconds(most_ms=most, client_ms=client) * 1000 == pytest.approx(waited)


@given(
    st.lists(st.floats(0, 1e6), max_size=30),
    st.integers(0, 5000),
    st.integers(0, 5000),
)
def test_never_longer_than_allowed(latencies: list[float], most: int, client: int) -> None:
    assert 0 <= after(*latencies).seconds(most_ms=most, client_ms=client) * 1000 <= max(0, most - client) + 1e-6


def test_what_is_long_ago_is_forgotten() -> None:
    assert after(*[2000.0] * 20, *[20.0] * 9).seconds(most_ms=300, client_ms=0) == pytest.approx(0.01)
