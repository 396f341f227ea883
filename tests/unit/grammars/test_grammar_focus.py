"""A long text of which only a part is parsed: the same answers as from all of it, and cuts only between definitions."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grammars import focus, lexer, queries
from grammars.languages import language_for, languages
from grammars.parser import ParsedDocument
from grammars.syntax import context

TOKENS = [
    *("\n", "\n", "\n", "\r\n", " ", "a", "(", ")", "{", "}", "[", "${", "#{", "\\", "$", "@"),
    *('"', "'", "`", '"""', "'''", 'r"', 'f"', "#", "//", "/*", "*/", "--", "--[[", "]]", "<!--", "-->", "=begin"),
]


def definitions(count: int) -> str:
    """A Python file with imports, functions, classes, and strings that look like code from their middle on."""
    parts = ["import os\nfrom a import b\n"]
    for number in range(count):
        parts += [
            f"def f{number}(a, b):\n    if a:\n        return g(b, {number})\n    return '''\n\ndef no():\n'''\n",
            f"class C{number}(B):\n    x = {number}\n\n    def m(self):\n        return self.x\n",
        ]
    return "\n\n".join(parts)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts are long from 2,000 characters on."""
    for name, value in {"LONG": 2_000, "HEAD": 60, "BEFORE": 600, "BEHIND": 500, "MARGIN": 300}.items():
        monkeypatch.setattr(focus, name, value)
    monkeypatch.setattr(queries, "IMPORT_REACH", focus.HEAD)


def answer(document: ParsedDocument, offset: int) -> tuple[object, ...]:
    found = context(document, offset)
    near = [span for span in found.siblings if abs(span.start - offset) < focus.MARGIN]
    return found, found.scopes, found.imports, near


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("seed", range(6))
def test_what_is_typed_in_a_long_text_gets_the_answers_of_a_parse_of_all_of_it(seed: int) -> None:
    chance = random.Random(seed)
    text = definitions(60)
    document = ParsedDocument(text, language_for("python"))
    for _ in range(12):
        place = chance.choice([0, 30, chance.randrange(len(text)), len(text)])
        place = text.rfind("\n", 0, place) + 1
        for char in chance.choice(["    y = f(1)\n", "import sys\n", "def h(q):\n    return q\n\n\n", "# c\n"]):
            text = text[:place] + char + text[place:]
            place += 1
            document.update(text)
            context(document, place)
        whole = ParsedDocument(text, language_for("python"))
        whole.look_at = lambda offset: None  # type: ignore[method-assign]
        assert document._focus is not None and document._focus.size == len(text)
        if not whole.errors and not document.errors:
            assert answer(document, place) == answer(whole, place)


@pytest.mark.usefixtures("small")
def test_only_what_is_near_is_seen_and_every_line_stays_where_it_is() -> None:
    text = definitions(60)
    document = ParsedDocument(text, language_for("python"))
    middle = text.index("def f30")
    context(document, middle)
    seen = document._shadow.decode()
    assert len(seen) == len(text) and seen.count("\n") == text.count("\n")
    assert "def f30(" in seen and "import os" in seen
    assert "def f2(" not in seen and "def f58(" not in seen
    assert not document.errors
    # A change elsewhere, as a formatter makes it: all is seen again, then what is near the cursor.
    document.update(text.replace("def f2(", "def f02("))
    assert "def f02(" in document._shadow.decode()
    context(document, document.text.index("def f58"))
    assert "def f58(" in document._shadow.decode() and "def f30(" not in document._shadow.decode()


@pytest.mark.usefixtures("small")
def test_what_has_no_beginnings_is_seen_as_a_whole() -> None:
    text = "class A:\n" + "    def m(self):\n        return 1\n" * 200
    document = ParsedDocument(text, language_for("python"))
    assert [span.text for span in context(document, len(text) // 2).scopes][:1] == ["class A:"]
    assert document._shadow.decode() == text


@given(
    text=st.lists(st.sampled_from(TOKENS), max_size=40).map("".join),
    language=st.sampled_from(languages()),
    end=st.integers(0, 80),
)
def test_strings_and_comments_are_the_same_where_the_lines_above_are_remembered(text, language, end) -> None:
    end = min(end, len(text))
    assert lexer.lex(text, 0, end, language) == lexer._lex(text, 0, end, language)
