"""Where a draft goes over into the suffix: "│" marks where the middle ends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.alignment import align

SUFFIX = "\n    return x + y\n\n\nprint(f(1))\n"


def middle(draft: str, suffix: str, **more) -> str | None:  # type: ignore[no-untyped-def]
    found = align(draft, suffix, **{"one_line": False, **more})
    return found.middle if found else None


@pytest.mark.parametrize(
    ("marked", "suffix", "exact"),
    [
        ("a = 1│\n    return x + y\n\n\nprint(", SUFFIX, True),
        ("a = 1\n│\n    return x + y\n", SUFFIX, True),  # a blank line of the model's own
        ("a = 1│\n  return x + y\n\n\n", SUFFIX, False),  # another indentation
        ("a = 1│\n\n\n      return x + y", SUFFIX, False),
        ("return x + y if a else b│\n    return x + y\n\n\nprint(f", SUFFIX, True),  # the longest match counts
        ("a)│)\n    return x\n", ")\n    return x\n", True),
        ("a│)\n    return x\n", ")\n    return x\n", True),
        ("a = 1│\n    retrun x + y\n\n\nprint(f", SUFFIX, False),  # alike
        ("a = 1│\n    retur", SUFFIX, True),  # as far as the canvas goes
        ("│\n    return x + y\n\n\nprint", SUFFIX, True),  # nothing is missing
    ],
)
def test_a_block_ends_where_the_suffix_begins(marked: str, suffix: str, exact: bool) -> None:
    found = align(marked.replace("│", ""), suffix, one_line=False)
    assert found is not None
    assert (found.middle, found.exact) == (marked.partition("│")[0], exact)


@pytest.mark.parametrize(
    ("marked", "suffix"),
    [
        ("a + 1│\n    return x + y\n", SUFFIX),
        ("a + 1│\nsomething else\n", SUFFIX),  # a newline is the end of a line, whatever follows
        ("a, b│)\n    return x\n", ")\n    return x\n"),
        ("a, (b)│)  \n", ")\n"),
        ("a│, b):\n    pass\n", ", b):\n    pass\n"),
    ],
)
def test_a_line_ends_where_the_rest_of_the_line_begins(marked: str, suffix: str) -> None:
    assert middle(marked.replace("│", ""), suffix, one_line=True) == marked.partition("│")[0]


def test_what_the_middle_has_to_begin_with_is_no_end_of_it() -> None:
    assert middle("\n    a = 1\n    return x + y", SUFFIX, one_line=True, first=1) == "\n    a = 1"
    assert middle("\n\n    return x + y", SUFFIX, first=1) == "\n"
    assert middle(")\n    return x\n", ")\n    return x\n", first=1) == ")"


@pytest.mark.parametrize(
    ("draft", "suffix", "more"),
    [
        ("a = 1\n    b = 2\n    c = ", SUFFIX, {}),
        ("foo(a)", ")", {}),  # a bracket alone may be the middle's own
        ("", SUFFIX, {}),
        ("a = 1", SUFFIX, {"one_line": True}),
        ("a = 1, b\n", ")  # and more to come\n", {"one_line": True}),
        ("a = 1\n", "", {}),
        ("a = 1\n", "\n\n", {}),
        ("�" * 40, SUFFIX, {}),
    ],
)
def test_what_is_not_there_is_not_found(draft: str, suffix: str, more: dict[str, bool]) -> None:
    assert middle(draft, suffix, **more) is None


def test_the_model_s_own_end_counts() -> None:
    assert middle("a = 1\n", "", over=True) == "a = 1"
    assert middle("foo(a)", ")", over=True) == "foo(a"
    assert middle("foo(a)\n", ")\n", over=True) == "foo(a"
    assert middle("a = 1", "\n", over=True, one_line=True) == "a = 1"
    assert middle("foo(a", ")", over=True) is None


words = st.text(alphabet="abc(). \n", max_size=40)


@given(
    words,
    st.builds(
        "x{}yzxyzxyz{}".format, st.text(alphabet="xyz)= \n", max_size=20), st.text(alphabet="xyz)=\n ", max_size=40)
    ),
    st.integers(0, 30),
    st.booleans(),
)
def test_a_planted_suffix_is_found(planted: str, suffix: str, extra: int, one_line: bool) -> None:
    """Nothing of the suffix's letters stands in the middle, so that there is one right answer."""
    planted = planted.replace("\n", "") if one_line else planted
    assert middle(planted + suffix + "a" * extra, suffix, one_line=one_line) == planted


@given(st.text(max_size=60), st.text(max_size=60), st.booleans(), st.booleans(), st.integers(0, 5))
def test_any_text_gets_a_beginning_or_nothing(draft: str, suffix: str, one_line: bool, over: bool, first: int) -> None:
    first = min(first, len(draft))
    found = middle(draft, suffix, one_line=one_line, over=over, first=first)
    assert found is None or draft.startswith(found)
    assert found is None or len(found) >= first or not suffix.strip()
    assert not (one_line and found and "\n" in found[first:])
