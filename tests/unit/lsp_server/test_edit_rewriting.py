"""What a model wrote for a selection, made fit for its place. Texts carry the selection between two marks."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lsp_server.filters import Rejected
from lsp_server.rewriting import Place, rewritten


def place(text: str, language: str = "python") -> Place:
    before, selected, after = text.replace("⟧", "⟦").split("⟦")
    return Place(before=before, selected=selected, after=after, language=language)


def check(text: str, *, answer: str, expect: str, language: str = "python") -> None:
    """The document after the edit is `expect`."""
    here = place(text, language)
    made = rewritten(answer, here)
    assert not isinstance(made, Rejected), made.reason
    assert here.before + made + here.after == expect


CASES: dict[str, tuple[str, str, str]] = {
    "as it should be": (
        "def f():\n⟦    a()\n    b()\n⟧c()\n",
        "    a()\n    if x:\n        b()\n",
        "def f():\n    a()\n    if x:\n        b()\nc()\n",
    ),
    "written from column 0 on": (
        "def f():\n⟦    a()\n    b()\n⟧c()\n",
        "a()\nif x:\n    b()",
        "def f():\n    a()\n    if x:\n        b()\nc()\n",
    ),
    "a block written from column 0 on": (
        "def f():\n⟦    a()\n⟧c()\n",
        "for x in y:\n    a(x)\n",
        "def f():\n    for x in y:\n        a(x)\nc()\n",
    ),
    "only the first line lacks its indentation": (
        "def f():\n⟦    a()\n    b()\n⟧c()\n",
        "a(1)\n    b(2)\n",
        "def f():\n    a(1)\n    b(2)\nc()\n",
    ),
    "only the first line of a block lacks it": (
        "class A:\n⟦    def f(self):\n        pass\n⟧",
        "def f(self):\n        return 1\n",
        "class A:\n    def f(self):\n        return 1\n",
    ),
    "a selection that begins behind its indentation": (
        "def f():\n    ⟦a()\n    b()⟧\nc()\n",
        "a()\n    b(1)",
        "def f():\n    a()\n    b(1)\nc()\n",
    ),
    "the same, and the model has written the indentation again": (
        "def f():\n    ⟦a()\n    b()⟧\nc()\n",
        "    a()\n    b(1)\n",
        "def f():\n    a()\n    b(1)\nc()\n",
    ),
    "the same, written from column 0 on": (
        "def f():\n    ⟦a()\n    b()⟧\nc()\n",
        "if x:\n    a()\nb(1)",
        "def f():\n    if x:\n        a()\n    b(1)\nc()\n",
    ),
    "a selection that begins within its indentation": (
        "def f():\n ⟦\ta()\n⟧c()\n",
        "\tb()\n",
        "def f():\n \tb()\nc()\n",
    ),
    "a part of a line": ("x = f(⟦a⟧, b)\n", "a + 1\n", "x = f(a + 1, b)\n"),
    "a value of several lines, from column 0 on": (
        "def f():\n    x = ⟦{\n        'a': 1,\n    }⟧\n    g(x)\n",
        "{\n    'a': 1,\n    'b': 2,\n}",
        "def f():\n    x = {\n        'a': 1,\n        'b': 2,\n    }\n    g(x)\n",
    ),
    "what goes on in column 0 on purpose": (
        "def f():\n⟦    return 1\n⟧",
        "    return 1\n\n\ndef g():\n    return 2\n",
        "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    ),
    "a fence and prose": (
        "def f():\n⟦    a()\n⟧c()\n",
        "Here is the code:\n\n```python\n    a(1)\n```\nIt now passes 1.",
        "def f():\n    a(1)\nc()\n",
    ),
    "a thought and the end of a turn": ("x = ⟦1⟧\n", "<think>two?</think>2<turn|>", "x = 2\n"),
    "tabs of the file": (
        "def f():\n⟦\ta()\n\tb()\n⟧\tc()\n",
        "    a()\n    if x:\n        b()\n",
        "def f():\n\ta()\n\tif x:\n\t\tb()\n\tc()\n",
    ),
    "spaces of the file": (
        "def f():\n⟦    a()\n    b()\n⟧    c()\n",
        "\ta()\n\tif x:\n\t\tb()\n",
        "def f():\n    a()\n    if x:\n        b()\n    c()\n",
    ),
    "line ends of the file": ("a\r\n⟦b\r\nc\r\n⟧d\r\n", "b\nx\nc", "a\r\nb\r\nx\r\nc\r\nd\r\n"),
    "mixed line ends stay where lines stay": ("a\n⟦b\r\nc\rd\n⟧e\n", "b\nx\nc\nd\n", "a\nb\r\nx\nc\rd\ne\n"),
    "blank lines around the selection": ("a\n⟦\nb\n\n⟧c\n", "\n\n\nb(1)", "a\n\nb(1)\n\nc\n"),
    "everything taken away": ("a\n⟦b\n⟧c\n", "\n", "a\nc\n"),
    "an empty line": ("def f():\n⟦⟧\nc()\n", "    return 1\n", "def f():\n    return 1\nc()\n"),
    "a form feed": ("a\n⟦\x0cb\nc\n⟧", "\x0cb\nd\n", "a\n\x0cb\nd\n"),
    "special tokens in code about them": (
        "x = 1\n⟦pad = '<mask>'\n⟧",
        "pad = ['<mask>', '<pad>']\n",
        "x = 1\npad = ['<mask>', '<pad>']\n",
    ),
}


@pytest.mark.parametrize(("text", "answer", "expect"), CASES.values(), ids=CASES)
def test_what_a_model_wrote_is_made_fit(text: str, answer: str, expect: str) -> None:
    check(text, answer=answer, expect=expect)


def test_prose_alone_is_refused() -> None:
    made = rewritten("I'm sorry, but I cannot do that with the code you have given me.", place("x = ⟦1⟧\n"))
    assert isinstance(made, Rejected)
    assert made.filter == "chat"


def test_prose_in_a_document_of_prose_is_an_answer() -> None:
    check(
        "⟦This is it.⟧\n",
        answer="Here is the text that you have.",
        expect="Here is the text that you have.\n",
        language="markdown",
    )


pieces = st.lists(
    st.sampled_from(
        [
            "a",
            "b()",
            "if x:",
            " ",
            "    ",
            "\t",
            "\n",
            "\r\n",
            "\r",
            "\x0c",
            "é",
            "🤦",
            "\u2028",
            "```",
            "<mask>",
            '"""',
            "#",
        ]
    ),
    max_size=12,
).map("".join)


@given(pieces, pieces, pieces)
def test_the_selection_written_again_stays_as_it_is(before: str, selected: str, after: str) -> None:
    """Whatever it is, but for blank lines and blanks at the ends of what is written."""
    here = Place(before=before, selected=selected, after=after, language="python")
    # No position of LSP lies in a line end.
    assume(
        not any(one.endswith("\r") and other.startswith("\n") for one, other in ((before, selected), (selected, after)))
    )
    made = rewritten(selected, here)
    if selected.strip():
        assert made == selected
    else:
        assert made == ""


@given(pieces, pieces, pieces, pieces)
def test_any_answer_leaves_no_foreign_line_ends(before: str, selected: str, after: str, answer: str) -> None:
    made = rewritten(answer, Place(before=before, selected=selected, after=after, language="python"))
    if not isinstance(made, Rejected) and "\r" not in before + selected + after:
        assert "\r" not in made
