"""The cache in text: where a completion was made, what was offered, and what is left of it somewhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.cache import Cache, Entry, Place
from lsp_server.insertion import Insertion

CURSOR = "│"


def place(marked: str, uri: str = "u", window: int = 1000) -> Place:
    prefix, suffix = marked.split(CURSOR)
    return Place(uri=uri, offset=len(prefix), prefix=prefix[-window:], suffix=suffix)


def found(made_at: str, item: Insertion, now: str, *, explicit: bool = False) -> list[tuple[str, int, int]]:
    cache = Cache()
    cache.add(Entry(place=place(made_at), insertions=(item,), explicit=False))
    return [(left.text, left.before, left.after) for left in cache.find(place(now), explicit=explicit)]


CALL = Insertion(text="foo(a)")
CLOSED = Insertion(text='"hi", x)', after=1)
ELSE = Insertion(text="else:\n    x", before=4)


@pytest.mark.parametrize(
    ("made_at", "item", "now", "left"),
    [
        ("x = │\n", CALL, "x = │\n", ("foo(a)", 0, 0)),
        ("x = │\n", CALL, "x = fo│\n", ("o(a)", 0, 0)),
        ("x = │\n", CALL, "x = foo(│)\n", ("a)", 0, 1)),
        ("x = │\n", CALL, "x = foo(a)│\n", None),
        ("x = │\n", CALL, "x = g│\n", None),
        ("x = │\n", CALL, "x =│\n", None),
        ("x = │\n", CALL, "y = │\n", None),
        ("x = │\n", CALL, "x = │\ny\n", None),
        ("x = │\n", CALL, "x = foo│]\n", None),
        ("f(│)\n", CLOSED, 'f("│")\n', ('hi", x)', 0, 2)),
        ("f(│)\n", CLOSED, 'f("hi",│)\n', (" x)", 0, 1)),
        # The item rewrites the indentation: typed over it by hand, or one word of it accepted.
        ("if a:\n    │\n", ELSE, "if a:\n    el│\n", ("else:\n    x", 6, 0)),
        ("if a:\n    │\n", ELSE, "if a:\nelse:│\n", ("\n    x", 0, 0)),
        ("a│", Insertion(text="aaaa"), "aaa│", ("aa", 0, 0)),
    ],
)
def test_what_is_left(made_at: str, item: Insertion, now: str, left: tuple[str, int, int] | None) -> None:
    assert found(made_at, item, now) == ([] if left is None else [left])


def test_an_explicit_request_wants_the_answer_to_one() -> None:
    assert found("x = │\n", CALL, "x = │\n", explicit=True) == []


def test_another_document_is_another_place() -> None:
    cache = Cache()
    cache.add(Entry(place=place("x = │"), insertions=(CALL,), explicit=False))
    assert cache.find(place("x = │", uri="other"), explicit=False) == ()


def test_windows_that_start_elsewhere_still_meet() -> None:
    cache = Cache()
    cache.add(Entry(place=place("0123456789│"), insertions=(CALL,), explicit=False))
    (left,) = cache.find(place("0123456789fo│", window=6), explicit=False)
    assert left.text == "o(a)"


@given(
    prefix=st.text("ab\n ", max_size=8),
    text=st.text("ab\n", min_size=2, max_size=8),
    suffix=st.text("ab\n"),
    data=st.data(),
)
def test_typing_on_ends_in_the_same_document(prefix: str, text: str, suffix: str, data: st.DataObject) -> None:
    typed = data.draw(st.integers(0, len(text) - 1))
    cache = Cache()
    cache.add(Entry(place=place(prefix + CURSOR + suffix), insertions=(Insertion(text=text),), explicit=False))
    now = prefix + text[:typed]
    (left,) = cache.find(place(now + CURSOR + suffix), explicit=False)
    assert left.applied(now, suffix) == prefix + text + suffix


def leftovers(made_at: str, middle: str, now: str) -> tuple[str, ...]:
    cache = Cache()
    cache.add(Entry(place=place(made_at), middles=(middle,)))
    return cache.leftovers(place(now))


@pytest.mark.parametrize(
    ("made_at", "middle", "now", "left"),
    [
        # Typed along, where it was not good enough to be shown.
        ("x = │\n", "foo(a)", "x = fo│\n", ("o(a)",)),
        # Another word instead of that one.
        ("x = │\n", "self.value = a", "x = self.n│\n", (" = a",)),
        # The answer goes on behind what was typed.
        ("f(│)\n", "value, other=1", "f(name, │)\n", ("other=1",)),
        ("f(│)\n", "ab", "f(c│)\n", ()),
        # Backspace.
        ("foo.b│\n", "ar()", "foo.│\n", ("bar()",)),
        ("foo.b│\n", "ar()", "f│\n", ("oo.bar()",)),
        # Elsewhere, or with another text behind it.
        ("x = │\n", "foo(a)", "y = f│\n", ()),
        ("x = │\n", "foo(a)", "x = g│\nz", ()),
        ("x = │\n", "foo", "x = foo│\n", ()),
    ],
)
def test_what_a_generation_may_start_from(made_at: str, middle: str, now: str, left: tuple[str, ...]) -> None:
    assert leftovers(made_at, middle, now) == left


def test_few_leftovers_of_the_newest_answers_of_the_same_document() -> None:
    cache = Cache()
    for number in range(20):
        cache.add(Entry(place=place("x = │\n"), middles=(f"{number:02}a", f"{number:02}b")))
    cache.add(Entry(place=place("x = │\n", uri="other"), middles=("other",)))
    assert cache.leftovers(place("x = │\n")) == ("19a", "19b", "18a")


@given(made=st.text("ab .(", max_size=6), middle=st.text("ab .(", max_size=8), now=st.text("ab .(", max_size=14))
def test_leftovers_are_bounded_and_never_blank(made: str, middle: str, now: str) -> None:
    left = leftovers(made + CURSOR, middle, now + CURSOR)
    assert len(set(left)) == len(left) <= 3
    assert all(text.strip() and text in made + middle for text in left)
