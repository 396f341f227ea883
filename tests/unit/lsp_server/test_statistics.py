"""Counting completions: once each, in characters that were really saved, and summed by day and language."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server import statistics
from lsp_server.ledger import Line
from lsp_server.statistics import DAYS, KNOWN, Count, Counts, summed


class Editor(Counts):
    """Keeps what it records."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        super().__init__(self.lines.append)

    def total(self) -> Count:
        return sum(summed(self.lines).values(), Count())


def offered(length: int = 10, before: int = 0) -> Editor:
    editor = Editor()
    editor.shown("")
    editor.offered("a", "python", length=length, before=before)
    return editor


def test_parts_and_the_rest_add_up_to_the_whole() -> None:
    editor = offered()
    editor.accepted_part("a", 4)
    editor.accepted_part("a", 6)
    editor.accepted("a")
    assert editor.total() == Count(accepted=1, partial=2, chars=10)


def test_a_rest_that_is_offered_again_counts_from_its_own_start() -> None:
    editor = offered()
    editor.accepted_part("a", 4)
    editor.offered("a", "python", length=6, before=0)
    editor.accepted_part("a", 2)
    editor.accepted("a")
    assert editor.total() == Count(accepted=1, partial=2, chars=10)


def test_what_a_completion_replaces_is_not_saved() -> None:
    editor = offered(length=10, before=4)
    editor.accepted_part("a", 3)
    assert editor.total() == Count(partial=1)
    editor.accepted("a")
    assert editor.total() == Count(accepted=1, partial=1, chars=6)


@given(st.lists(st.tuples(st.sampled_from(["offered", "shown", "accepted", "part"]), st.integers(-5, 30))))
def test_counts_never_shrink_and_stay_within_what_was_offered(events: list[tuple[str, int]]) -> None:
    editor = offered()
    before, most = Count(), 10
    for event, number in events:
        if event == "offered":
            most += max(0, number)
            editor.offered("a", "python", length=number, before=0)
        elif event == "part":
            editor.accepted_part("a", number)
        else:
            getattr(editor, event)("a")
        now = editor.total()
        assert all(value >= getattr(before, name) for name, value in asdict(now).items())
        before = now
    assert before.shown <= 1
    assert before.accepted <= 1
    assert before.chars <= most


def test_only_the_last_completions_are_remembered() -> None:
    editor = offered()
    for number in range(KNOWN):
        editor.offered(str(number), "python", length=1, before=0)
    editor.accepted("a")
    editor.accepted("0")
    assert editor.total() == Count(accepted=1, chars=1)


day_lines = st.fixed_dictionaries(
    {"day": st.sampled_from(["2026-01-01", "2026-01-02"]), "language": st.sampled_from(["python", "go"])},
    optional={name: st.integers(0, 9) for name in asdict(Count())},
)


@given(st.lists(day_lines))
def test_folding_changes_no_sum(lines: list[Line]) -> None:
    folded = statistics._folded(lines)
    assert summed(folded) == summed(lines)
    assert len(folded) == len(summed(lines))


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["day", "language", "shown", "chars"]), st.none() | st.text() | st.booleans())
    )
)
def test_lines_of_another_kind_are_left_out(lines: list[Any]) -> None:
    assert sum(summed(lines).values(), Count()) == Count()


def test_days_long_gone_are_forgotten() -> None:
    lines = [{"day": f"{1000 + number}-01-01", "language": "python", "shown": 1} for number in range(DAYS + 5)]
    kept = [line["day"] for line in statistics._folded(lines)]
    assert kept == [line["day"] for line in lines[5:]]


@pytest.mark.parametrize("language", ["", "x" * 1000])
def test_a_language_has_a_name_of_bounded_length(language: str) -> None:
    editor = Editor()
    editor.offered("a", language, length=1, before=0)
    ((_, name),) = summed(editor.lines)
    assert 0 < len(name) <= 40
