"""The smallest changes between two texts, and stretches of a document that follow what is changed around them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.anchors import CHANGED, CLOSED, Anchors
from lsp_server.documents import Document
from lsp_server.hunks import Hunk, hunks, with_ends_of

texts = st.text(st.sampled_from("ab\r\n\x0c\u2028é🤦"), max_size=16)
few = st.text(st.sampled_from("ab\n"), max_size=10)


def applied(old: str, changes: tuple[Hunk, ...]) -> str:
    for hunk in reversed(changes):
        old = old[: hunk.start] + hunk.text + old[hunk.end :]
    return old


@given(texts, texts)
def test_the_changes_lead_from_one_text_to_the_other(old: str, new: str) -> None:
    changes = hunks(old, new)
    assert applied(old, changes) == new
    assert all(one.end <= other.start for one, other in itertools.pairwise(changes))
    for hunk in changes:
        assert all(old[at - 1 : at + 1] != "\r\n" or at == 0 for at in (hunk.start, hunk.end))


def test_only_what_differs_is_changed() -> None:
    old = "one\ntwo\nthree\nfour\n"
    assert hunks(old, old) == ()
    assert hunks(old, "one\ntoo\nthree\nfour\nfive\n") == (
        Hunk(start=5, end=6, text="o"),
        Hunk(start=19, end=19, text="five\n"),
    )
    assert hunks(old, "one\nfour\n") == (Hunk(start=4, end=14, text=""),)


def test_long_texts_without_anything_in_common_are_one_change() -> None:
    old, new = ("\n".join(f"{name} {number}" for number in range(3000)) for name in ("a", "b"))
    assert len(hunks(f"x\n{old}\nz", f"x\n{new}\nz")) == 1


@given(texts, texts)
def test_line_ends_change_no_line(old: str, new: str) -> None:
    new = new.replace("\r\n", "\n").replace("\r", "\n")
    made = with_ends_of(old, new, "\r\n")
    assert made.replace("\r\n", "\n").replace("\r", "\n") == new


def document(text: str, uri: str = "file:///a.py") -> Document:
    return Document(uri=uri).with_text(text, 1)


@given(few, few, few, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), few, st.booleans()), max_size=4))
def test_a_stretch_is_where_its_text_is_or_lost(
    before: str, selected: str, after: str, changes: list[tuple[int, int, str, bool]]
) -> None:
    """Marks that no change can hold tell where the stretch really is. `whole`: the client sends the whole text."""
    text, anchors = before + selected + after, Anchors()
    true: tuple[int, int] | None = len(before), len(before) + len(selected)
    with anchors.held("file:///a.py", len(before), len(before) + len(selected)) as anchor:
        for one, other, new, whole in changes:
            start, end = sorted((min(one, len(text)), min(other, len(text))))
            changed = text[:start] + new + text[end:]
            if true is not None and end <= true[0]:
                true = true[0] + len(changed) - len(text), true[1] + len(changed) - len(text)
            elif true is not None and start < true[1]:
                true = None
            span = None if whole else (start, end)
            anchors.changed(document(text), document(changed), span, len(changed if whole else new))
            text = changed
            if not whole and not any(whole for *_, whole in changes):
                assert (not anchor.lost) == (true is not None)
            if true is not None and not anchor.lost:
                assert (anchor.start, anchor.end) == true
        if not anchor.lost:
            assert text[anchor.start : anchor.end] == selected
    assert not anchors.wanted("file:///a.py")


def test_a_repeated_text_that_may_have_moved_is_lost() -> None:
    """Which of the three equal lines is new? Only a client that sends the range has said so."""
    old, new = document("a\na\n"), document("a\na\na\n")
    for span, length, expected in ((None, 6, CHANGED), ((0, 0), 2, ""), ((4, 4), 2, "")):
        anchors = Anchors()
        with anchors.held(old.uri, 2, 4) as anchor:
            anchors.changed(old, new, span, length)
            assert anchor.lost == expected


def test_a_stretch_in_a_closed_document_is_lost() -> None:
    anchors = Anchors()
    with anchors.held("file:///a.py", 0, 1) as anchor, anchors.held("file:///b.py", 0, 1) as other:
        anchors.gone("file:///a.py")
        assert (anchor.lost, other.lost) == (CLOSED, "")
