"""The text in an answer: between the marks of a chat model, and no more lines than are wanted."""

from __future__ import annotations

import itertools

import pytest
from asking import edit, fill
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import EditRequest, FillRequest
from diffusion.remote.prompts import BEGIN, END, middle_ended, said_middle, without_frame
from diffusion.remote.work import cut


@pytest.mark.parametrize(
    ("answer", "middle"),
    [
        ("<middle>x</middle>", "x"),
        ("Here:\n<middle>\n  x\n</middle>\nthere", "\n  x\n"),
        ("<think>of <middle>a</middle></think><middle>b</middle>", "b"),
        ("```python\n  x\n```", "  x"),
        ("  x", "  x"),
        ("<middle>x", "x"),
        ("<think>never ends", ""),
        ("", ""),
    ],
)
def test_the_text_in_an_answer(answer: str, middle: str) -> None:
    assert said_middle(answer, complete=True) == middle


@pytest.mark.parametrize(
    ("request_", "answer", "shown"),
    [
        (fill("a = │"), "\n1\n", "1\n"),
        (fill("def f():\n    │", mode="block", max_lines=3), "\n    a\n    b", "    a\n    b"),
        (fill("def f():│", mode="block", max_lines=3), "\n    a", "\n    a"),
        (edit("a│x│b"), "\ny\n", "y"),
        (edit("a│x\n│b"), "\ny\n", "y\n"),
        (edit("a│\nx│b"), "\ny", "\ny"),
    ],
)
def test_line_breaks_beside_the_marks(request_: FillRequest | EditRequest, answer: str, shown: str) -> None:
    assert without_frame(answer, request_) == shown


PLAIN = st.text(alphabet="ab<>/ \n").filter(lambda text: BEGIN not in text and END not in text)


@given(PLAIN, PLAIN, PLAIN)
def test_what_a_growing_answer_shows_only_grows(before: str, middle: str, after: str) -> None:
    answer = before + BEGIN + middle + END + after
    shown = [said_middle(answer[:end], complete=False) for end in range(len(answer) + 1)]
    assert shown[-1] == middle and all(later.startswith(earlier) for earlier, later in itertools.pairwise(shown))
    assert middle_ended(answer)


@given(st.text(alphabet="ab\n"), st.integers(1, 4))
def test_no_more_lines_than_allowed(answer: str, lines: int) -> None:
    shown, more = cut(answer, fill("│", mode="block", max_lines=lines))
    assert answer.startswith(shown) and shown.count("\n") < lines
    assert more == (shown != answer)
