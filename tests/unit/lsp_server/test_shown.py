"""What counts as accepted: the document with an offer in it, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsp_server.insertion import Insertion
from lsp_server.shown import LENGTH, Shown

CURSOR = "│"


def shown(marked: str, *items: Insertion) -> Shown:
    offers = Shown()
    prefix, suffix = marked.split(CURSOR)
    offers.add("u", prefix + suffix, len(prefix), items)
    return offers


def accepted(offers: Shown, marked: str) -> bool:
    prefix, suffix = marked.split(CURSOR)
    at = offers.accepted("u", prefix + suffix)
    assert at in (None, len(prefix))
    return at is not None


def test_the_cursor_stands_behind_what_was_inserted() -> None:
    assert accepted(shown("x = │\n", Insertion(text="foo(a)")), "x = foo(a)│\n")
    assert accepted(shown("f(│)\n", Insertion(text="a)", after=1)), "f(a)│\n")
    assert accepted(shown("    │\n", Insertion(text="else:", before=4)), "else:│\n")
    assert accepted(shown("x = │", Insertion(text="1"), Insertion(text="2")), "x = 2│")


def test_a_part_or_something_else_is_not_accepted() -> None:
    call = Insertion(text="foo(a)")
    for now in ("x = foo│\n", "x = foo(b)│\n", "y = foo(a)│\n", "x = │\n"):
        assert not accepted(shown("x = │\n", call), now)


def test_once_is_enough_and_each_document_has_its_own() -> None:
    offers = shown("x = │", Insertion(text="1"))
    assert offers.accepted("other", "x = 1") is None
    assert offers.accepted("u", "x = 1") == 5
    assert offers.accepted("u", "x = 1") is None


@given(prefix=st.text("ab ", max_size=6), text=st.text("ab", min_size=1, max_size=6), suffix=st.text("ab", max_size=6))
def test_typing_it_by_hand_is_accepting_it(prefix: str, text: str, suffix: str) -> None:
    offers = Shown()
    for typed in range(min(len(text), LENGTH)):
        item = Insertion(text=text[typed:])
        offers.add("u", prefix + text[:typed] + suffix, len(prefix) + typed, (item,))
    assert offers.accepted("u", prefix + text + suffix) == len(prefix) + len(text)
