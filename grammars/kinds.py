"""Which kind of completion makes sense at a cursor: none, a line, or a block. Knows no trees.

RULES is the whole answer: the first rule that holds decides, and its reason goes into the journal.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from grammars.languages import Language
from grammars.lines import LINE_END, Follows

Kind = Literal["none", "line", "block"]
Position = Literal["code", "string", "comment"]

MAX_HEADER_LINES = 50  # of a header that spans lines

_QUOTED_LINE = re.compile(r'"+;?')
# What stands before a brace that opens an object and not a body.
_EXPRESSION = re.compile(
    r"(?:[$=(\[,:?&|!+*/%~^-]|\b(?:return|import|export|const|let|var|of|in|typeof|await|yield))\Z"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Situation:
    """What the rules look at. `code`: the text before the cursor, strings and comments painted over (see lexer)."""

    language: Language
    empty: bool  # the document has no text at all
    splits_word: bool
    position: Position
    follows: Follows
    rest: str
    blank: bool  # nothing visible on the cursor's line before the cursor
    nothing_else: bool  # the document holds nothing but white space and comments
    code: str


def _last_line(code: str) -> str:
    return code[max(code.rfind("\n"), code.rfind("\r")) + 1 :]


def _opens_block(code: str, language: Language) -> bool:
    """Whether the last code before the cursor opens a block that holds nothing yet but a docstring and comments."""
    code = code.rstrip()
    while _QUOTED_LINE.fullmatch(_last_line(code).strip()):
        code = code[: len(code) - len(_last_line(code))].rstrip()
    if language.block_style == "braces" and code.endswith("{"):
        return True
    if language.block_header is None:
        return False
    if language.block_style == "words" and language.block_header.match(_last_line(code)):
        return True
    logical = ""
    for line in reversed(LINE_END.split(code)[-MAX_HEADER_LINES:]):
        logical = f"{line}\n{logical}" if logical else line
        if all(logical.count(closer) <= logical.count(opener) for opener, closer in ("()", "[]", "{}")):
            return language.block_header.match(logical) is not None
    return False


def _fresh_body(at: Situation) -> bool:
    code = at.code.rstrip()
    if at.language.block_style != "braces" or not code.endswith("{") or not at.rest.lstrip().startswith("}"):
        return False
    before = code[:-1].rstrip()
    return not _EXPRESSION.search(before)


def _finished(at: Situation) -> bool:
    line = _last_line(at.code).strip()
    if at.follows != "nothing":
        return False
    if at.language.finished and at.language.finished.fullmatch(line):
        return all(at.code.count(opener) <= at.code.count(closer) for opener, closer in ("()", "[]"))
    return line.endswith(";") and line.count("(") <= line.count(")")


RULES: tuple[tuple[str, Kind, Callable[[Situation], bool]], ...] = (
    # Nothing to go by.
    ("empty document", "none", lambda at: at.empty),
    # nu|mpy: whatever is put in makes another word of what stands there. num|.zeros is another matter.
    ("inside a word", "none", lambda at: at.splits_word),
    # Prose and data have no blocks; a docstring's blank line neither.
    ("in a string or comment", "line", lambda at: at.position != "code"),
    # What follows must stay the end of this line, so the fill may not end it.
    ("code follows on the line", "line", lambda at: at.follows == "code"),
    # call(a);| is complete, and the next statement belongs on the next line, as it does behind `pass`, `end` or a
    # brace of its own. for (i = 0;| is not complete, nor is foo(() => {...}|.
    ("behind a finished statement", "none", _finished),
    # function f() {|}: the editor has closed the brace, the body is still to be written.
    ("in a fresh body", "block", _fresh_body),
    # f(a, |) and the like: an argument, an element, an object.
    ("only closers follow", "line", lambda at: at.follows == "closers"),
    # def f():| or the lines below it, {|, also below a docstring or comment: an empty body, or the start of one.
    ("behind a block's header", "block", lambda at: _opens_block(at.code, at.language)),
    # A file without code is an empty body too.
    ("nothing in the file yet", "block", lambda at: at.blank and at.nothing_else),
    # Between statements: one more of them.
    ("on a blank line", "line", lambda at: at.blank),
    # x = |: the rest of the statement.
    ("at the end of a line", "line", lambda at: True),
)


def completion_kind(at: Situation) -> tuple[Kind, str]:
    """The kind of completion that makes sense, and the reason in words."""
    return next((kind, reason) for reason, kind, holds in RULES if holds(at))
