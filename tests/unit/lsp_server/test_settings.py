"""Settings: what clients send, what is taken over, and what is named instead."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.settings import Settings, read


def test_names_are_camel_case_and_types_are_kept() -> None:
    body = {"debounceMs": 0, "minConfidence": 1, "disabledLanguages": ["c"], "enabled": False, "other": 1}
    settings, problems = read(body, Settings())
    assert problems == ()
    assert settings == Settings(debounce_ms=0, min_confidence=1.0, disabled_languages=("c",), enabled=False)


def test_a_section_may_be_wrapped_and_null_means_unset() -> None:
    base = Settings(max_lines=3)
    assert read({"midfill": {"debounceMs": 5, "maxLines": None}}, base) == (Settings(max_lines=3, debounce_ms=5), ())
    assert read(None, base) == (base, ())


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"debounceMs": "fast"}, "debounceMs"),
        ({"debounceMs": True}, "debounceMs"),
        ({"debounceMs": -1}, "debounceMs"),
        ({"maxLines": 2.5}, "maxLines"),
        ({"minConfidence": float("nan")}, "minConfidence"),
        ({"enabled": "no"}, "enabled"),
        ({"disabledLanguages": "python"}, "disabledLanguages"),
        ({"disabledLanguages": [1]}, "disabledLanguages"),
        (["debounceMs"], "an object, not ['debounceMs']"),
        ("off" * 1000, "an object, not 'off"),
        ({"maxLines": 10**400}, "maxLines"),
    ],
)
def test_a_bad_value_is_named_and_left_out(body: Any, named: str) -> None:
    settings, (problem,) = read(body, Settings(max_lines=7))
    assert settings == Settings(max_lines=7)
    assert named in problem
    assert len(problem) < 200


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["enabled", "maxLines", "x"]), inner),
)


@given(anything)
def test_nothing_a_client_sends_breaks_the_settings(body: Any) -> None:
    settings, problems = read(body, Settings())
    assert type(settings.enabled) is bool
    assert 1 <= settings.max_lines <= 100
    assert all(isinstance(problem, str) for problem in problems)
