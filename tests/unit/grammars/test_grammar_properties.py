"""What holds for any text: an answer at every offset, and an update that equals a fresh parse."""

import pytest
from grammar_cursor import verified
from hypothesis import assume, given
from hypothesis import strategies as st

from grammars.languages import PLAIN, language_for, languages
from grammars.parser import ParsedDocument, shadow

LANGUAGES = [*languages(), PLAIN]

# Pieces of code, white space of every sort, and characters that break naive offsets.
PIECES = [
    *(
        "def f(a):\n    ",
        "class A(B):\n",
        "    return ",
        "if x:\n",
        "else:\n",
        "import os\n",
        "from a import (b,\n c)\n",
    ),
    *(
        "function g(x) {",
        "class C extends D {\n",
        "const h = (a) => {\n",
        "m(a) {\n",
        "interface I {\n  x: number;\n",
        "}\n",
    ),
    *("import {a} from 'b';\n", "const r = require('s');\n", "<li>{x}</li>", "type T = string;\n", "case 1:\n"),
    *("x", " = ", "1", "foo(", ")", "[", "]", "{", "}", ",", ";", ":", ".", "=>", "${", "@"),
    *("<?php ", "end\n", "do |x|\n", "<<~E\n", "cat <<EOF\n", "EOF\n", "$(", "#{", "\\(", "fi\n", "then\n", "[[", "]]"),
    *("<div>", "</div>", "<!-- ", "---\n", "- a: |\n", "# T\n", "[t]\n", "SELECT ", "'a", 'r#"', '@"', "--[[", "$$"),
    *('"', "'", "`", '"""', "'''", 'f"', "\\", "#", "//", "/*", "*/", "/"),
    *("\n", "\r\n", "\r", "\n\n", "  ", "    ", "\t", "\f", "\v", "\0", "\u2028", "\x85", "\ufeff", "\u00a0"),
    *("é", "名前", "🤦🏽", "𝐱", "\ud800", "\udc00", "\u200b", "e\u0301", "“"),
]
pieces = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
any_text = st.text(st.characters(), max_size=200) | pieces
clean_lines = st.lists(
    st.sampled_from(
        ["x = 1", "f(x)", "s = 'é🤦🏽'", "# c 名", "", "def f(a):\n    return a", "class A:\n    x = '''\n\n'''"]
    ),
    max_size=12,
)


@given(text=any_text, offset=st.integers(-2, 400), language=st.sampled_from(LANGUAGES))
def test_any_text_and_any_offset_give_an_answer(text, offset, language) -> None:
    verified(ParsedDocument(text, language), offset)


@given(text=pieces, data=st.data(), language=st.sampled_from(LANGUAGES))
def test_any_edit_gives_an_answer(text, data, language) -> None:
    document = ParsedDocument(text, language)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 10)))
        inserted = data.draw(st.sampled_from(PIECES))
        text = text[:start] + inserted + text[end:]
        document.update(text)
        assert document.text == text
        verified(document, start + len(inserted))


@given(text=any_text)
def test_the_shadow_has_a_byte_per_code_point_and_the_same_lines(text) -> None:
    data = shadow(text)
    assert len(data) == len(text)
    assert data.isascii() and 0 not in data
    assert [i for i, char in enumerate(text) if char == "\n" or (char == "\r" and text[i + 1 : i + 2] != "\n")] == [
        i for i, byte in enumerate(data) if byte == ord("\n")
    ]


@given(data=st.data(), language=st.sampled_from([row for row in languages() if row.grammar]))
def test_an_update_leaves_the_shadow_and_the_errors_that_a_fresh_parse_gives(data, language) -> None:
    text = data.draw(pieces)
    document = ParsedDocument(text, language)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, len(text)))
        text = text[:start] + data.draw(pieces) + text[end:]
        document.update(text)
        fresh = ParsedDocument(text, language)
        assert document._shadow == fresh._shadow
        assume(document.tree is not None and fresh.tree is not None)  # Else it went astray for too long.
        # Error recovery may find another way from another start, but not where there is nothing to recover from.
        assert bool(document.errors) == bool(fresh.errors)
        if not fresh.errors:
            assert str(document.tree.root_node) == str(fresh.tree.root_node)


@given(before=clean_lines, after=clean_lines, broken=pieces, newline=st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_break_and_its_repair_leave_the_tree_of_a_fresh_parse(before, after, broken, newline) -> None:
    python = language_for("python")
    first, last = newline.join(before).replace("\n", newline), newline.join(after).replace("\n", newline)
    document = ParsedDocument(first, python)
    document.update(first[: len(first) // 2] + broken + first[len(first) // 2 :])
    document.update(last)
    fresh = ParsedDocument(last, python)
    assert not fresh.errors
    assert str(document.tree.root_node) == str(fresh.tree.root_node)
    assert document.good is document.tree


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda language: language.id)
def test_every_offset_of_a_file_of_everything(language) -> None:
    text = "".join(PIECES)
    document = ParsedDocument(text, language)
    for offset in range(len(text) + 1):
        verified(document, offset)
