"""Every language of the table: what its query and its row answer, with the tree and without a grammar."""

from __future__ import annotations

import dataclasses

import pytest
from grammar_cursor import at, check, split, typed
from grammar_places import BODIES, FINISHED, POSITIONS
from grammar_samples import SAMPLES

from grammars.languages import language_for, languages
from grammars.parser import ParsedDocument
from grammars.syntax import context

OLDER = {"python", "javascript", "typescript", "typescriptreact"}
"""These have files of tests of their own."""


TREE_ONLY = ("'x│'", "<<", "%w", "$(", "\\(", "<a│.h>", "a: |", 'class="')
"""Strings that only a tree shows."""


def rows(table: dict[str, list[str]] | dict[str, list[tuple[str, str]]]) -> list[object]:
    return [
        pytest.param(language, row, id=f"{language}-{n}") for language in table for n, row in enumerate(table[language])
    ]


def test_every_language_has_its_examples() -> None:
    ids = {language.id for language in languages()} - OLDER
    assert SAMPLES.keys() == ids - {"scss"}
    assert POSITIONS.keys() == FINISHED.keys() == ids
    assert BODIES.keys() == ids - {"markdown"}


@pytest.mark.parametrize("language", SAMPLES)
def test_what_stands_around_the_cursor(language: str) -> None:
    sample = SAMPLES[language]
    assert at(sample.text, language).parsed
    check(
        sample.text,
        language,
        kind=sample.kind,
        scopes=sample.scopes,
        siblings=sample.siblings,
        imports=sample.imports,
        position="code",
    )


@pytest.mark.parametrize("language", SAMPLES)
def test_any_line_ends_and_a_call_that_is_still_open(language: str) -> None:
    sample = SAMPLES[language]
    crlf = at(sample.text.replace("\n", "\r\n"), language)
    assert [span.text.replace("\r\n", "\n") for span in crlf.scopes] == sample.scopes
    if sample.kind == "block" and language != "html":
        broken = typed(sample.text.replace("│", ""), sample.text.replace("│", "foo(│"), language)
        # Of a namespace whose members are not indented a broken tree says nothing.
        assert [span.text for span in broken.scopes][-2:] == sample.scopes[-2:]


@pytest.mark.parametrize(("language", "row"), rows(POSITIONS))
def test_string_comment_or_code(language: str, row: tuple[str, str]) -> None:
    check(row[0], language, position=row[1])


@pytest.mark.parametrize("language", FINISHED)
def test_nothing_follows_a_finished_statement(language: str) -> None:
    finished, unfinished = FINISHED[language]
    for marked in finished:
        answer = at(marked, language)
        assert (answer.kind, answer.reason) == ("none", "behind a finished statement"), marked
    for marked in unfinished:
        assert at(marked, language).reason != "behind a finished statement", marked


@pytest.mark.parametrize(("language", "marked"), rows(BODIES))
def test_an_empty_body_is_a_block(language: str, marked: str) -> None:
    check(marked, language, kind="block")


@pytest.mark.parametrize("language", sorted(SAMPLES.keys() - {"html", "markdown", "c", "csharp", "toml"}))
def test_without_a_grammar_lines_and_delimiters_tell(language: str) -> None:
    """The innermost scope at least; that of HTML, and headers whose brace stands on the next line, need the tree."""
    sample = SAMPLES[language]
    row = dataclasses.replace(language_for(language), id=f"{language} alone", grammar="")
    text, offset = split(sample.text)
    answer = context(ParsedDocument(text, row), offset)
    assert not answer.parsed
    assert answer.scopes[-1].text.rstrip(" {") == sample.scopes[-1].rstrip(" {")
    assert answer.kind == sample.kind
    for marked, position in POSITIONS[language]:
        if not any(only in marked for only in TREE_ONLY):
            text, offset = split(marked)
            assert context(ParsedDocument(text, row), offset).position == position, marked
