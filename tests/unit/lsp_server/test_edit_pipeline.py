"""The pipeline of edits with an engine that says what the test wants: nothing outside of the selection ever changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from edit_desk import Desk, applied
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import EditRequest, EngineError, FillRequest
from lsp_server.context import Around
from lsp_server.edit import Refusal, Rewrite
from lsp_server.settings import Settings

pieces = st.lists(
    st.sampled_from(
        [
            "a",
            "b()",
            "x = (",
            ")",
            "if x:",
            " ",
            "    ",
            "\t",
            "\n",
            "\r\n",
            "é",
            "🤦",
            "\ud83e",
            "```",
            "<mask>",
            '"""',
            "# c",
            "}",
        ]
    ),
    max_size=10,
).map("".join)


@given(
    pieces, pieces, pieces, pieces, st.sampled_from(["do it", None]), st.sampled_from(["python", "javascript", "go"])
)
def test_nothing_outside_of_the_selection_changes(
    before: str, selected: str, after: str, answer: str, instruction: str | None, language: str
) -> None:
    desk = Desk(f"{before}⟦{selected}⟧{after}", answer, language=language)
    said = desk.run(desk.wish(instruction))
    if isinstance(said, Refusal):
        assert said.message
        return
    result = applied(said)
    assert len(result) >= len(before + after)
    assert result.startswith(before)
    assert result.endswith(after)
    assert result != before + selected + after


@given(
    pieces,
    pieces,
    pieces,
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8), pieces), max_size=3),
    st.sampled_from(["do it", None]),
)
def test_what_changes_meanwhile_stays_as_it_is(
    before: str, selected: str, after: str, changes: list[tuple[int, int, str]], instruction: str | None
) -> None:
    """The edit goes where the selection has gone, and is refused as soon as that has been touched."""
    desk, where = Desk(f"{before}⟦{selected}⟧{after}", "written()"), [before, selected, after]

    def meanwhile() -> None:
        for at, length, new in changes:
            assert desk.document is not None
            text = desk.document.text
            start = min(at, len(text))
            end = min(start + length, len(text))
            head = len(where[0])
            if end <= head:
                where[0] = where[0][:start] + new + where[0][end:]
            elif start >= head + len(where[1]):
                start_after, end_after = start - head - len(where[1]), end - head - len(where[1])
                where[2] = where[2][:start_after] + new + where[2][end_after:]
            else:
                where[1] = ""
                desk.engine.meanwhile = lambda: None
            desk.change(start, end, new)
            if not where[1]:
                return

    desk.engine.meanwhile = meanwhile
    said = desk.run(desk.wish(instruction))
    if isinstance(said, Rewrite):
        assert desk.document is said.document
        assert said.document.text[said.start : said.end] == selected
        assert applied(said) == where[0] + said.text + where[2]


def test_changes_beside_the_selection_move_the_edit() -> None:
    desk = Desk("a = 1\n⟦b = 2\n⟧c = 3\n", "b = 3\n")

    def meanwhile() -> None:
        desk.change(16, 17, "4")
        desk.change(0, 0, "# a\n")

    desk.engine.meanwhile = meanwhile
    said = desk.run(desk.wish())
    assert isinstance(said, Rewrite)
    assert applied(said) == "# a\na = 1\nb = 3\nc = 4\n"
    assert said.document.version == 3


@pytest.mark.parametrize("instruction", ["do it", None])
def test_a_change_within_the_selection_refuses_the_edit(instruction: str | None) -> None:
    desk = Desk("a = 1\n⟦b = 2\n⟧c = 3\n", "b = 3")
    desk.engine.meanwhile = lambda: desk.change(10, 11, "7")
    said = desk.run(desk.wish(instruction))
    assert isinstance(said, Refusal)
    assert said.message == "the selection was changed meanwhile, so nothing was changed: ask again"
    assert "changed meanwhile" in desk.journal.why()


def test_a_document_that_is_closed_meanwhile_is_left_alone() -> None:
    desk = Desk("⟦b = 2\n⟧", "b = 3")
    desk.engine.meanwhile = lambda: setattr(desk, "document", None)
    said = desk.run(desk.wish())
    assert isinstance(said, Refusal)
    assert "closed" in said.message


def test_an_outdated_document_is_not_asked_about() -> None:
    desk = Desk("⟦b = 2\n⟧", "b = 3")
    wish = desk.wish()
    desk.change(0, 0, "\n")
    said = desk.run(wish)
    assert isinstance(said, Refusal)
    assert "has changed since" in said.message
    assert desk.engine.asked == []


@pytest.mark.parametrize(
    ("details", "instruction", "says"),
    [
        ({"around": Around(refusal="left alone: it may hold secrets")}, "do it", "secrets"),
        ({"around": Around(refusal="left alone: it may hold secrets")}, None, "secrets"),
        ({}, " \n", "the instruction is empty"),
    ],
)
def test_what_is_not_done_is_not_asked(details: Any, instruction: str | None, says: str) -> None:
    desk = Desk("⟦b = 2\n⟧", "b = 3")
    said = desk.run(desk.wish(instruction, **details))
    assert isinstance(said, Refusal)
    assert says in said.message
    assert desk.engine.asked == []


def test_nothing_is_done_while_completion_is_switched_off() -> None:
    desk = Desk("⟦b = 2\n⟧", "b = 3")
    wish = desk.wish()
    said = desk.run(replace(wish, ask=replace(wish.ask, settings=Settings(enabled=False))))
    assert isinstance(said, Refusal)
    assert "switched off" in said.message


def test_a_model_without_instructions_offers_to_fill() -> None:
    error = EngineError("it takes no instructions", "choose another", "unsupported")
    desk = Desk("⟦b = 2\n⟧", failure=error)
    said = desk.run(desk.wish())
    assert isinstance(said, Refusal)
    assert said.fill
    assert said.message.startswith("it takes no instructions (choose another); ")


def test_a_fill_leaves_the_selection_out_and_takes_another_text() -> None:
    desk = Desk("def f(a):\n⟦    return a\n⟧\n\nf(1)\n", "    return a", "    return a + 1")
    said = desk.run(desk.wish(None))
    assert isinstance(said, Rewrite)
    (request,) = desk.engine.asked
    assert isinstance(request, FillRequest)
    # Its indentation stays, and may not be written anew.
    assert (request.prefix, request.suffix) == ("def f(a):\n    ", "\n\n\nf(1)\n") and request.keep_indent
    assert (request.mode, request.max_lines, request.client) == ("line", 1, "")
    assert applied(said) == "def f(a):\n    return a + 1\n\n\nf(1)\n"


def test_another_seed_gives_another_of_the_answers() -> None:
    texts = []
    for seed in range(3):
        desk = Desk("x = ⟦1⟧\n", "2", "1", "3")
        said = desk.run(replace(desk.wish(None), seed=seed))
        assert isinstance(said, Rewrite)
        texts.append(said.text)
    assert texts == ["2", "3", "2"]


def test_the_engine_sees_the_selection_and_what_stands_around_it() -> None:
    desk = Desk("import os\n\n\ndef f():\n⟦    a()\n⟧\n\nf()\n", "    b()\n")
    desk.run(desk.wish("call b"))
    (request,) = desk.engine.asked
    assert isinstance(request, EditRequest)
    assert (request.before, request.selected, request.after) == ("import os\n\n\ndef f():\n", "    a()\n", "\n\nf()\n")
    assert (request.instruction, request.language, request.client) == ("call b", "python", "me")
    assert request.deadline_ms is None


def test_an_empty_document_can_be_written() -> None:
    desk = Desk("⟦⟧", "print('hello')\n")
    said = desk.run(desk.wish("say hello"))
    assert isinstance(said, Rewrite)
    assert applied(said) == "print('hello')"
