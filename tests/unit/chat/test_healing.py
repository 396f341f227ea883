"""What healing takes out of a prefix, and which ids may spell it again; the search against trying everything."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.healing import LIMIT, Healed, Speller, heal


@pytest.mark.parametrize(
    ("prefix", "taken", "forced"),
    [
        ("x = fo", " fo", " fo"),
        ("x = ", " ", " "),
        ("foo(", "(", "("),
        ("a ==", " ==", " =="),
        ("self.mo", "mo", "mo"),
        ("    ret", "ret", "ret"),  # a longer run of blanks is a token of its own
        ("a:\n ret", " ret", " ret"),
        ("x =  ", "", ""),
        ("größ", "größ", "größ"),
        ("a" * 60, "", ""),  # too long to be spelled again
        ("a:\n\n    ", "\n\n    ", "\n\n"),  # the indentation may be another one
        ("a:\n", "\n", "\n"),
        ("    ", "    ", ""),
        ("", "", ""),
    ],
)
def test_what_is_unfinished_is_taken_out(prefix: str, taken: str, forced: str) -> None:
    assert heal(prefix) == Healed(kept=prefix[: len(prefix) - len(taken)], taken=taken, forced=forced)


@given(st.text(alphabet="ab_$(=. \n\té", max_size=80), st.text(alphabet="ab (\n", max_size=10))
def test_nothing_gets_lost(prefix: str, more: str) -> None:
    healed = heal(prefix)
    assert healed.kept + healed.taken == prefix and healed.taken.startswith(healed.forced)
    assert len(healed.taken) <= LIMIT
    assert healed.answer(healed.taken + more) == (more, 0)
    text, replaced = healed.answer(healed.forced + more)
    assert prefix[: len(prefix) - replaced] + text == healed.kept + healed.forced + more
    assert not prefix[len(prefix) - replaced :].strip(" \t")


def test_an_answer_replaces_blanks_only_where_it_has_others() -> None:
    healed = heal("if a:\n    b\n    ")
    assert healed.answer("\n    c()") == ("c()", 0)
    assert healed.answer("\nelse:") == ("else:", 4)


TEXTS = ["", "a", "b", "ab", "abc", "bc", "ca", "\n", "\n\n", "�", "abcab", "a", " a"]


@given(st.text(alphabet="abc\n ", min_size=1, max_size=5), st.integers(1, 4), st.data())
def test_the_likeliest_spelling_is_the_best_of_all(text: str, positions: int, data: st.DataObject) -> None:
    speller = Speller(TEXTS)
    log_p = [
        data.draw(st.lists(st.integers(-9, 0), min_size=len(TEXTS), max_size=len(TEXTS))) for _ in range(positions)
    ]

    def end(position: int, at: int) -> float:
        return max((log_p[position][i] for i in speller.beginning(text[at:])), default=-math.inf)

    found = speller.likeliest(text, positions, lambda position, i: log_p[position][i], end)
    ways = []
    # The first of two ids with one text stands for both where it is followed by more; any of them may come last.
    useful = [i for i, t in enumerate(TEXTS) if t and "�" not in t]
    for count in range(1, positions + 1):
        for ids in product(useful, repeat=count):
            spelled = "".join(TEXTS[i] for i in ids)
            before = "".join(TEXTS[i] for i in ids[:-1])
            if (
                spelled.startswith(text)
                and len(before) < len(text)
                and all(TEXTS.index(TEXTS[i]) == i for i in ids[:-1])
            ):
                ways.append((sum(log_p[position][i] for position, i in enumerate(ids)), ids))
    if not ways:
        assert found is None
    else:
        assert found is not None
        at = len(text) - len(found.rest)
        assert "".join(TEXTS[i] for i in found.exact) == text[:at]
        score = sum(log_p[position][i] for position, i in enumerate(found.exact)) + end(len(found.exact), at)
        assert score == max(ways)[0]
    fewest = min((len(ids) for _, ids in ways), default=None)
    if fewest is not None:
        assert speller.shortest(text) == fewest


def test_what_no_id_spells_is_known() -> None:
    assert Speller(["a", "b"]).shortest("az") is None
    assert Speller(["a", "b"]).shortest("ab") == 2
    assert Speller([]).shortest("a") is None
    assert Speller(["\U0010ffffx"]).beginning("\U0010ffff") == (0,)
