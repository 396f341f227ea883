"""Requests of other tools as they become ours, and candidates as they become text to insert."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion import tool_forms
from diffusion.api import BadRequest, Candidate, Result
from diffusion.tool_forms import before_stop, from_infill, from_openai, lines_allowed


@pytest.mark.parametrize(
    ("suffix", "tokens", "stop", "lines"),
    [
        ("", 64, (), 5),
        ("", 16, (), 1),
        ("\nnext", 64, (), 5),
        ("  \nnext", 64, (), 5),
        (")\n", 64, (), 1),
        ("", 64, ("\n",), 1),
        ("", 64, ("\n\n",), 5),
        ("", 100_000, (), tool_forms.MAX_LINES),
    ],
)
def test_lines(suffix: str, tokens: int, stop: tuple[str, ...], lines: int) -> None:
    assert lines_allowed(suffix, tokens, stop) == lines
    request = from_openai({"prompt": "x", "suffix": suffix, "max_tokens": tokens, "stop": [*stop]}).request
    assert (request.mode, request.max_lines) == ("line" if lines == 1 else "block", lines)


def test_what_openai_asks_becomes_a_request() -> None:
    body = {
        "model": "any", "prompt": ["a = "], "suffix": None, "n": 3, "max_tokens": 32, "stop": ";", "seed": 7,
        "temperature": 0.2, "stream": True, "stream_options": {"include_usage": True}, "path": "x/y/z/a.py",
    }  # fmt: skip
    asked = from_openai(body)
    request = asked.request
    assert (request.prefix, request.suffix, request.n, request.seed, request.client) == ("a = ", "", 3, 7, "")
    assert (request.path, request.language, request.deadline_ms) == ("z/a.py", "python", None)
    assert (asked.stop, asked.stream, asked.stream_usage) == ((";",), True, True)


def test_what_llama_plugins_ask_becomes_a_request() -> None:
    chunks = [{"filename": f"/p/{i}.ts", "text": str(i), "time": [1, 2]} for i in range(30)]
    body = {
        "input_prefix": "const a = 1\n", "input_suffix": "\nlog(a)\n", "input_extra": chunks, "prompt": "const b = ",
        "n_predict": 128, "n_indent": 0, "top_k": 40, "top_p": 0.99, "stream": False, "cache_prompt": True,
        "samplers": ["top_k", "top_p", "infill"], "t_max_prompt_ms": 500, "t_max_predict_ms": 1000,
        "response_fields": ["content", "timings/prompt_n"],
    }  # fmt: skip
    asked = from_infill(body)
    request = asked.request
    assert (request.prefix, request.suffix) == ("const a = 1\nconst b = ", "\nlog(a)\n")
    assert (request.language, request.deadline_ms, request.mode) == ("typescript", 1500, "block")
    assert [item.text for item in request.context] == [str(i) for i in range(22, 30)]
    assert asked.response_fields == ("content", "timings/prompt_n")
    assert from_infill({**body, "n_predict": -1}).request.max_lines == 5
    assert from_infill({**body, "t_max_predict_ms": 0}).request.deadline_ms is None


@pytest.mark.parametrize(
    "prompt",
    [
        "<fim_prefix>a = f(<fim_suffix>)\nb<fim_middle>",
        "<|fim_prefix|>a = f(<|fim_suffix|>)\nb<|fim_middle|>",
        "<PRE> a = f( <SUF>)\nb <MID>",
    ],
)
def test_both_sides_of_the_cursor_between_markers(prompt: str) -> None:
    stop = [f"<{number}>" for number in range(14)]  # as many as Zed sends
    asked = from_openai({"model": "m", "prompt": prompt, "max_tokens": 64, "stop": stop, "temperature": None})
    assert (asked.request.prefix, asked.request.suffix, asked.request.max_lines) == ("a = f(", ")\nb", 1)
    told = from_openai({"prompt": prompt, "suffix": "s"}).request
    assert (told.prefix, told.suffix) == (prompt, "s")
    assert from_openai({"prompt": f"x{prompt}"}).request.prefix == f"x{prompt}"


@pytest.mark.parametrize(
    ("prompt", "language"),
    [
        ("# language: python\n# indentation: use 4 spaces for a tab\nx", "python"),
        ("// language: typescript\nx", "typescript"),
        ("<!-- language: html -->\n", "html"),
        ("x = 'language: lua'", "plaintext"),
    ],
)
def test_a_language_that_the_first_line_names(prompt: str, language: str) -> None:
    assert from_openai({"prompt": prompt, "suffix": ""}).request.language == language


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ([], "JSON object"),
        ({}, "prompt"),
        ({"prompt": ["a", "b"]}, "prompt"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"prompt": "a", "n": "3"}, "n must be int"),
        ({"prompt": "a", "n": True}, "n must be int"),
        ({"prompt": "a", "n": 0}, "n must lie"),
        ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
        ({"prompt": "a", "stop": [1]}, "stop"),
        ({"prompt": "a", "stop": ["x"] * 17}, "stop"),
        ({"prompt": "a", "stream_options": 1}, "stream_options"),
        ({"prompt": "\ud800"}, "surrogates"),
        ({"prompt": "a", "deadline_ms": "soon"}, "deadline_ms"),
        ({"prompt": "a", "deadline_ms": -1}, "deadline_ms"),
        ({"prompt": "a", "seed": 2**80}, "seed"),
    ],
)
def test_wrong_openai_bodies_name_the_field(body: Any, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        from_openai(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"input_suffix": ""}, "input_prefix"),
        ({"input_prefix": "", "input_suffix": 1}, "input_suffix"),
        ({"input_prefix": "", "input_suffix": "", "input_extra": ["x"]}, "input_extra"),
        ({"input_prefix": "", "input_suffix": "", "input_extra": [{"text": 1}]}, "text must be str"),
        ({"input_prefix": "", "input_suffix": "", "response_fields": "content"}, "response_fields"),
    ],
)
def test_wrong_infill_bodies_name_the_field(body: Any, said: str) -> None:
    with pytest.raises(BadRequest, match=said):
        from_infill(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    "prompt", "suffix", "n", "max_tokens", "stop", "stream", "stream_options", "seed", "path", "language",
    "deadline_ms", "input_prefix", "input_suffix", "input_extra", "n_predict", "t_max_prompt_ms", "t_max_predict_ms",
    "response_fields",
]  # fmt: skip


@given(st.dictionaries(st.sampled_from(FIELDS), json_values) | json_values)
def test_any_body_is_a_request_or_a_bad_one(body: Any) -> None:
    for parse in (from_openai, from_infill):
        try:
            asked = parse(body)
        except BadRequest:
            continue
        assert len(asked.request.prefix) <= tool_forms.PREFIX_CHARS


def test_blanks_before_the_cursor_are_expressed_as_an_insertion_or_not_at_all() -> None:
    asked = from_openai({"prompt": "def f():\n    ", "stop": "#"})
    candidates = (
        Candidate(text="        deeper", replace_before=4),
        Candidate(text="dedented", replace_before=4),
        Candidate(text="same # comment"),
        Candidate(text="same "),
    )
    assert asked.texts(Result(candidates=candidates)) == [("    deeper", False), ("same ", False)]
    assert asked.texts(Result(candidates=candidates[1:2])) == [("", False)]
    limited = asked.texts(Result(candidates=candidates, finish="length"))
    assert limited == [("    deeper", True), ("same ", False)]  # a stop string ended the second


@given(st.text("ab\n"), st.lists(st.text("ab\n", min_size=1), max_size=3))
def test_no_stop_string_is_left(text: str, stop: list[str]) -> None:
    kept = before_stop(text, tuple(stop))
    assert text.startswith(kept) and not any(word in kept for word in stop)
    assert kept == text or any(text[len(kept) :].startswith(word) for word in stop)
