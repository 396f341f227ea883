"""Decisions: in one sentence and in full, found by place, and through the file that the command line reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.journal import LENGTH, MAX_REASON, MAX_URI, Decision, Journal, as_line, from_line, last


def decision(**details: Any) -> Decision:
    plain: dict[str, Any] = {
        "uri": "file:///src/a.py",
        "line": 3,
        "explicit": False,
        "outcome": "shown",
        "reason": "from embedded",
    }
    return Decision(**(plain | details))


def test_the_sentence_and_everything() -> None:
    made = decision(
        outcome="nothing", reason="filtered: nothing but white space", source="engine", filter="nothing_left",
        confidence=0.75, forwards=4, encodes=2, engine_ms=31.0, ms=40.4, starts=2, finish="deadline", at=0.0,
    )  # fmt: skip
    assert made.sentence() == "a.py:3 (automatic): nothing: filtered: nothing but white space"
    lines = made.full().splitlines()
    assert lines[0] == made.sentence()
    facts = {line[:14].strip(): line[14:] for line in lines[1:]}
    assert facts.pop("time").startswith(("1970", "1969"))
    assert facts == {
        "file": "file:///src/a.py",
        "filter": "nothing_left",
        "confidence": "0.75",
        "took": "40 ms",
        "answered by": "the engine: 4 decoder calls, 2 encoder calls, 31 ms in the engine",
        "began from": "2 earlier answers or lines found nearby",
        "ended": "deadline",
    }


def test_the_last_two_hundred_are_found_by_place_newest_first() -> None:
    journal = Journal()
    for number in range(LENGTH + 10):
        journal.add(decision(uri=f"file:///{number % 2}.py", line=number))
    assert len(journal.decisions()) == LENGTH
    assert [each.line for each in journal.decisions("file:///1.py")][:2] == [LENGTH + 9, LENGTH + 7]
    assert [each.line for each in journal.decisions("file:///1.py", 21)] == [21]
    assert journal.decisions("file:///0.py", 21) == []


@pytest.mark.parametrize(
    ("outcomes", "told"),
    [
        ([], None),
        (["dropped", "shown"], "shown"),
        (["dropped", "prefetched"], "dropped"),
        (["failed", "shown"], "failed"),
    ],
)
def test_what_ran_to_its_end_is_told_first(outcomes: list[Any], told: str | None) -> None:
    found = last([decision(outcome=outcome) for outcome in outcomes])
    assert (found.outcome if found else None) == told


decisions = st.builds(
    Decision,
    uri=st.text(max_size=MAX_URI),
    line=st.integers(1, 10**6),
    explicit=st.booleans(),
    outcome=st.sampled_from(["shown", "nothing", "dropped", "failed", "prefetched"]),
    reason=st.text(max_size=MAX_REASON),
    at=st.floats(0, 4e9),
    ms=st.floats(0, 1e9),
    source=st.sampled_from(["", "cache", "engine"]),
    gate=st.text(max_size=9),
    filter=st.text(max_size=9),
    confidence=st.none() | st.floats(0, 1),
    forwards=st.integers(0, 999),
    encodes=st.integers(0, 999),
    engine_ms=st.floats(0, 1e9),
    starts=st.integers(0, 9),
    finish=st.none() | st.sampled_from(["stop", "length", "deadline", "superseded"]),
)


@given(decisions)
def test_a_decision_comes_back_from_the_file_as_it_was(made: Decision) -> None:
    line = json.loads(json.dumps(as_line(made)))
    if made.confidence == 0:
        assert line["confidence"] == 0
    assert from_line(line) == made


def test_a_line_has_a_bounded_length() -> None:
    line = as_line(decision(uri="file:///" + "x" * 10_000, reason="y" * 10_000))
    assert len(json.dumps(line)) < 2 * (MAX_URI + MAX_REASON)


anything = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers())


@given(st.dictionaries(st.sampled_from([*Decision.__dataclass_fields__, "server", "other"]), anything))
def test_lines_of_another_kind_are_no_decisions_and_no_error(line: dict[str, Any]) -> None:
    found = from_line(line)
    assert found is None or found.full().startswith(found.sentence())
