"""The neighbourhood of a cursor: its line, and the code before it with strings and comments painted over.

Strings and comments come from the tree where it is whole, and from their delimiters where it is not. Everything here
is bounded by REACH, whatever the size of the document. Knows no scopes.
"""

from dataclasses import dataclass

from grammars import lexer, queries
from grammars.lines import indent_of, line_end, line_start
from grammars.parser import ParsedDocument

REACH = 16_384  # how far back an error spoils the tree, and how far back we read where it is spoilt
TREE_REACH = 4_096  # how far back we read where it is whole: only the last statements matter then


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What stands around `offset` (all offsets in code points of the document).

    `start`, `code`        `code` is the painted text[start:offset]; `start` is a line start
    `line_start/line_end`  the cursor's line, its line end not counted
    `region`               the string or comment (or code in a string) the cursor is inside of
    `anchor`               where the last code before the cursor ends, `start` if there is none
    `indent`               how deep the cursor stands: its line's indentation, on a blank line the white space before
                           it, in a string the indentation of the line where the string begins
    `indent_line`          the start of the line that `indent` was taken from
    """

    document: ParsedDocument
    offset: int
    start: int
    code: str
    line_start: int
    line_end: int
    region: lexer.Region | None
    anchor: int
    indent: int
    indent_line: int

    @property
    def before(self) -> str:
        """The cursor's line up to the cursor."""
        return self.document.text[self.line_start : self.offset]

    @property
    def rest(self) -> str:
        """The cursor's line from the cursor on."""
        return self.document.text[self.offset : self.line_end]


def _broken_near(document: ParsedDocument, low: int, offset: int) -> bool:
    return any(start < offset and end >= low for start, end in document.errors)


def _lexed(document: ParsedDocument, low: int, offset: int) -> list[lexer.Region]:
    """The regions of text[low:offset] by their delimiters; only what `low` itself is in comes from a tree."""
    tree = document.good or document.tree
    around = None
    if tree is not None and low:
        around = lexer.innermost(queries.regions(document, tree, low, low + 1), low)
    if around is None or around.kind == "code" or around.end >= offset:
        return lexer.lex(document.text, low, offset, document.language)
    return [around, *lexer.lex(document.text, around.end, offset, document.language)]


def view(document: ParsedDocument, offset: int) -> View:
    """Looks around `offset`, which must be in the text."""
    text, tree, language = document.text, document.tree, document.language
    low = line_start(text, max(0, offset - REACH))
    if tree is not None and not _broken_near(document, low, offset):
        low = line_start(text, max(0, offset - TREE_REACH))
        regions = queries.regions(document, tree, low, offset)
    elif language.strings or language.line_comment or language.block_comments:
        regions = _lexed(document, low, offset)
    else:
        regions = []
    code = lexer.paint(text, low, offset, regions)
    region = lexer.innermost(regions, offset)
    begin, end = line_start(text, offset), line_end(text, offset)
    indent_line, line = begin, text[begin:end]
    if region is not None and region.kind == "string" and region.start < begin:
        indent_line = line_start(text, region.start)
        line = text[indent_line : region.start + 1]
    elif not line.strip():
        line = text[begin:offset]
    return View(
        document=document,
        offset=offset,
        start=low,
        code=code,
        line_start=begin,
        line_end=end,
        region=region,
        anchor=low + len(code.rstrip()),
        indent=indent_of(line),
        indent_line=indent_line,
    )
