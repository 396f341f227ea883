"""What a cursor stands in: the one question the rest of the program asks about syntax.

Any text and any offset give an answer, in bounded time; where there is no tree it comes from the text around the
cursor. All offsets are code points.
"""

from dataclasses import dataclass, field
from functools import cached_property

from grammars import scopes as _scopes
from grammars.kinds import Kind, Position, Situation, completion_kind
from grammars.lines import Follows, follows, splits_word, style
from grammars.parser import ParsedDocument
from grammars.scopes import Scope, Span
from grammars.view import View, view

__all__ = ["Follows", "Kind", "Position", "Span", "SyntaxContext", "context"]


@dataclass(frozen=True, kw_only=True)
class SyntaxContext:
    """What the cursor at `offset` stands in. A Span's text is what the document says at its offsets.

    Scopes, imports and siblings are looked for when they are asked for, which has to be before the document changes.

    `language`      our id of the document's language, "plaintext" for all that have no row
    `parsed`        whether there is a syntax tree
    `scopes`        headers of the enclosing scopes, outermost first: `class A(B):`, `function g(x) {`
    `imports`       the file's imports, in order
    `siblings`      signatures of the other members of the innermost class or else of the file, nearest first
    `position`      whether the cursor is in a string, in a comment, or in code (also: code inside a string)
    `follows`       what stands behind the cursor on its line: nothing, only closers (brackets, quotes, `;`, `,`), code
    `blank`         whether the line has nothing but white space before the cursor
    `indent_unit`   a tab, or 2, 3, 4 or 8 spaces
    `line_ending`   that of most lines, "\\n" or "\\r\\n"
    `kind`, `reason`  what kind of completion makes sense, and the rule in kinds.py that says so
    """

    language: str
    offset: int
    parsed: bool
    position: Position
    follows: Follows
    blank: bool
    indent_unit: str
    line_ending: str
    kind: Kind
    reason: str
    _view: View = field(repr=False, compare=False)

    @cached_property
    def scopes(self) -> tuple[Span, ...]:
        return _scopes.headers(self._view, self._enclosing)

    @cached_property
    def imports(self) -> tuple[Span, ...]:
        return _scopes.imports(self._view)

    @cached_property
    def siblings(self) -> tuple[Span, ...]:
        return _scopes.siblings(self._view, self._enclosing)

    @cached_property
    def _enclosing(self) -> list[Scope]:
        return _scopes.enclosing(self._view)


def context(document: ParsedDocument, offset: int) -> SyntaxContext:
    """The syntactic context of `offset`; one outside of the document is clamped."""
    text = document.text
    offset = max(0, min(offset, len(text)))
    document.look_at(offset)
    around = view(document, offset)
    region = around.region
    position: Position = "code" if region is None else region.kind
    behind = follows(around.rest)
    blank = not around.before.strip()
    no_code = not around.start and not around.code.strip()
    kind, reason = completion_kind(
        Situation(
            language=document.language,
            empty=not text,
            splits_word=splits_word(text, offset),
            position=position,
            follows=behind,
            rest=around.rest,
            blank=blank,
            nothing_else=no_code and not text[offset:].strip(),
            code=around.code,
        )
    )
    indent_unit, line_ending = style(text, document.language.indent_unit)
    return SyntaxContext(
        language=document.language.id,
        offset=offset,
        parsed=document.tree is not None,
        position=position,
        follows=behind,
        blank=blank,
        indent_unit=indent_unit,
        line_ending=line_ending,
        kind=kind,
        reason=reason,
        _view=around,
    )
