"""Where the user has edited: line numbers that stay right through later edits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.documents import Document
from lsp_server.history import LENGTH, MAX_LINES, History, changed_lines

TEN = "".join(f"line {number}\n" for number in range(10))


def document(text: str, uri: str = "file:///a.py") -> Document:
    return Document(uri=uri).with_text(text, 1)


def edited(history: History, old: Document, start: int, end: int, text: str) -> Document:
    """Replace lines [start, end) by `text`."""
    new = old.with_edit((start, 0), (end, 0), text, "utf-32", 2)
    history.changed(old, new)
    return new


def spans(history: History) -> list[tuple[int, int]]:
    return [(edit.first, edit.last) for edit in history.newest_first()]


@given(old=st.lists(st.sampled_from("ab")), new=st.lists(st.sampled_from("ab")))
def test_the_changed_lines_make_one_version_of_the_other(old: list[str], new: list[str]) -> None:
    span = changed_lines(tuple(old), tuple(new))
    if span is None:
        assert old == new
        return
    first, old_end, new_end = span
    assert old[:first] + new[first:new_end] + old[old_end:] == new


def test_edits_far_apart_are_two_and_move_along() -> None:
    history = History()
    text = edited(history, document(TEN), 8, 9, "eight\n")
    text = edited(history, text, 1, 2, "one\n")
    assert spans(history) == [(1, 1), (8, 8)]
    text = edited(history, text, 3, 3, "new\nlines\n")
    assert spans(history) == [(1, 4), (10, 10)]
    assert "".join(text.lines[10:11]) == "eight\n"


def test_typing_on_is_one_edit() -> None:
    history, text = History(), document(TEN)
    for end in range(1, 6):
        text = edited(history, text, 5, 6, "typed"[:end] + "\n")
    assert spans(history) == [(5, 5)]


def test_edits_of_several_documents_do_not_meet() -> None:
    history = History()
    edited(history, document(TEN, "file:///a.py"), 5, 6, "a\n")
    edited(history, document(TEN, "file:///b.py"), 0, 0, "b\n")
    assert [(edit.uri[-4:], edit.first) for edit in history.newest_first()] == [("b.py", 0), ("a.py", 5)]
    history.renamed("file:///a.py", "file:///c.py")
    history.forget("file:///b.py")
    assert [(edit.uri[-4:], edit.first) for edit in history.newest_first()] == [("c.py", 5)]


def test_a_large_edit_is_no_edit_and_the_number_is_bounded() -> None:
    history = History()
    edited(history, document(TEN), 0, 10, "x\n" * (MAX_LINES + 5))
    assert spans(history) == []
    text = document("x\n" * 1_000)
    for line in range(0, 900, 10):
        text = edited(history, text, line, line + 1, "y\n")
    assert len(spans(history)) == LENGTH


@given(data=st.data())
def test_spans_always_lie_within_the_document(data: st.DataObject) -> None:
    history, text = History(), document(TEN)
    for _ in range(data.draw(st.integers(1, 8))):
        start = data.draw(st.integers(0, len(text.lines)))
        end = data.draw(st.integers(start, len(text.lines) + 2))
        text = edited(history, text, start, end, data.draw(st.text(st.sampled_from("a\n"), max_size=6)))
        assert all(0 <= first <= last < len(text.lines) for first, last in spans(history))
