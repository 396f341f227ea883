"""Tests of grammars speak in text with a cursor mark: `before│after`."""

from grammars.languages import language_for
from grammars.parser import ParsedDocument
from grammars.syntax import SyntaxContext, context

MARK = "│"


def split(marked: str) -> tuple[str, int]:
    """The text without its mark, and where the mark was."""
    before, mark, after = marked.partition(MARK)
    assert mark and MARK not in after, "exactly one cursor mark"
    return before + after, len(before)


def at(marked: str, language: str = "python") -> SyntaxContext:
    """The context at the mark of a document that was never seen before."""
    text, offset = split(marked)
    return verified(ParsedDocument(text, language_for(language)), offset)


def typed(before: str, marked: str, language: str = "python") -> SyntaxContext:
    """The context at the mark of a document that was `before` a moment ago."""
    document = ParsedDocument(before, language_for(language))
    text, offset = split(marked)
    document.update(text)
    return verified(document, offset)


def verified(document: ParsedDocument, offset: int) -> SyntaxContext:
    """The context at an offset, with what must hold for every context."""
    answer = context(document, offset)
    assert 0 <= answer.offset <= len(document.text)
    for span in (*answer.scopes, *answer.imports, *answer.siblings):
        assert 0 <= span.start <= span.end <= len(document.text)
        assert document.text[span.start : span.end] == span.text
    assert all(a.start < b.start for a, b in zip(answer.scopes, answer.scopes[1:], strict=False))
    assert all(scope.start < answer.offset for scope in answer.scopes)
    assert {scope.start for scope in answer.scopes}.isdisjoint(item.start for item in answer.siblings)
    assert answer.indent_unit in ("\t", "  ", "   ", "    ", " " * 8)
    assert answer.line_ending in ("\n", "\r\n")
    return answer


def check(
    marked: str,
    language: str = "python",
    *,
    before: str | None = None,
    kind: str | None = None,
    scopes: list[str] | None = None,
    siblings: list[str] | None = None,
    imports: list[str] | None = None,
    position: str | None = None,
    follows: str | None = None,
) -> None:
    """Asserts what is given about the context at the mark; `before`: what the document was a moment ago."""
    answer = at(marked, language) if before is None else typed(before, marked, language)
    if kind is not None:
        assert (answer.kind, marked) == (kind, marked), answer.reason
    if scopes is not None:
        assert [span.text for span in answer.scopes] == scopes
    if siblings is not None:
        assert [span.text for span in answer.siblings] == siblings
    if imports is not None:
        assert [span.text for span in answer.imports] == imports
    if position is not None:
        assert (answer.position, marked) == (position, marked)
    if follows is not None:
        assert (answer.follows, marked) == (follows, marked)
