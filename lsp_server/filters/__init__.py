"""What a raw middle goes through before it is offered: FILTERS, in their order, each one pure function in one file.

Knows the request and the text. Line ends inside a text are "\\n" until the last filter.

A filter is `(text, request) -> text | Rejected`. Where the cursor's line holds nothing but white space before the
cursor, `text` starts at the line's start and holds that white space, too: so a filter sees and may change the
indentation of the first line like that of the others. What is left is placed with the smallest possible range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from diffusion.api import Candidate, FillRequest
from grammars.languages import PLAIN, language_for
from lsp_server.filters.body_newline import body_newline
from lsp_server.filters.brackets import closers_taken_over
from lsp_server.filters.chat import chat
from lsp_server.filters.closes_again import closes_again
from lsp_server.filters.comment_before_rest import comment_before_rest
from lsp_server.filters.control_characters import control_characters
from lsp_server.filters.dedent import dedent
from lsp_server.filters.double_space import double_space
from lsp_server.filters.first_indent import first_indent
from lsp_server.filters.indent_unit import indent_unit
from lsp_server.filters.leading_blank import leading_blank
from lsp_server.filters.line_ends import line_ends
from lsp_server.filters.nothing_left import nothing_left
from lsp_server.filters.one_line import one_line
from lsp_server.filters.repeats_suffix import repeats_suffix
from lsp_server.filters.retypes_line import retypes_line
from lsp_server.filters.runaway import runaway
from lsp_server.filters.runs_together import runs_together
from lsp_server.filters.special_tokens import special_tokens
from lsp_server.filters.surroundings import MARKUP, PROSE, Rejected, line_before, rest_of_line
from lsp_server.filters.thoughts import thoughts
from lsp_server.filters.too_long import too_long
from lsp_server.filters.trailing_blank import trailing_blank
from lsp_server.filters.unmatched import unmatched
from lsp_server.insertion import Insertion

__all__ = ["FILTERS", "Rejected", "code_of", "insertion"]

Filter = Callable[[str, FillRequest], str | Rejected]

FILTERS: tuple[Filter, ...] = (
    # What is no code at all.
    control_characters,
    too_long,
    thoughts,
    special_tokens,
    chat,
    runaway,
    # What stands before the cursor.
    retypes_line,
    double_space,
    leading_blank,
    body_newline,
    first_indent,
    dedent,
    indent_unit,
    # What stands behind it.
    one_line,
    comment_before_rest,
    repeats_suffix,
    closes_again,
    unmatched,
    runs_together,
    trailing_blank,
    # What is left.
    nothing_left,
    line_ends,
)

TALK: tuple[Filter, ...] = (control_characters, thoughts, special_tokens, chat)
"""Those that find the code in what a model says; the others know what fits at a cursor."""

ROUNDS = 6
_ALIASES = {"jsx": "javascriptreact"}


def insertion(candidate: Candidate, request: FillRequest) -> Insertion | Rejected:
    """What of a candidate can be offered at the place of `request`, or why nothing of it can.

    What one filter leaves may be something for another that came before it: the filters run until nothing changes.
    """
    request = replace(request, language=_named(request.language))
    before: Insertion | None = None
    for _ in range(ROUNDS):
        made = _filtered(candidate, request)
        if isinstance(made, Rejected) or made == before:
            return made
        if (made.text, made.before) == (candidate.text, candidate.replace_before):
            return made  # The next round would be the same again.
        before, candidate = made, replace(candidate, text=made.text, replace_before=made.before)
    return Rejected(reason="the filters do not come to an end with it")


def code_of(text: str, request: FillRequest, replaced: str) -> str | Rejected:
    """The code in an answer that is to take the place of `replaced`, at the place of `request`; line ends are "\\n". A
    filter that would change `replaced`, which is code, does not know this kind of code: it is left out."""
    request = replace(request, language=_named(request.language))
    for apply in TALK:
        if apply(replaced, request) == replaced:
            filtered = apply(text, request)
            if isinstance(filtered, Rejected):
                return replace(filtered, filter=apply.__name__)
            text = filtered
    return text


def _named(language: str) -> str:
    """The name that the filters know a language by, of the names that editors have for it."""
    language = language.lower()
    row = language_for(language)
    return _ALIASES.get(language) or (language if language in MARKUP | PROSE or row is PLAIN else row.id)


def _filtered(candidate: Candidate, request: FillRequest) -> Insertion | Rejected:
    text, rewritten, request = _opened(candidate, request)
    for apply in FILTERS:
        filtered = apply(text, request)
        if isinstance(filtered, Rejected):
            return replace(filtered, filter=apply.__name__)
        text = filtered
    return _placed(text, rewritten, request, candidate.confidence)


def _opened(candidate: Candidate, request: FillRequest) -> tuple[str, str, FillRequest]:
    """The text as the filters see it, the white space before the cursor that it stands for, and the request."""
    before = line_before(request)
    blank = not before.strip(" \t")
    space = len(before) - len(before.rstrip(" \t"))
    count = max(0, min(candidate.replace_before, space))
    if blank:
        return before[: space - count] + candidate.text, before, request
    prefix = request.prefix[: len(request.prefix) - count]
    return candidate.text, request.prefix[len(prefix) :], replace(request, prefix=prefix)


def _placed(text: str, rewritten: str, request: FillRequest, confidence: float | None) -> Insertion | Rejected:
    """The smallest replacement that makes the document read as the filters left it."""
    common = _common(rewritten, text)
    after = closers_taken_over(text, request)
    made = Insertion(text=text[common:], before=len(rewritten) - common, after=after, confidence=confidence)
    if made.text == rewritten[common:] + rest_of_line(request)[:after]:
        return Rejected(reason="it changes nothing")
    return made


def _common(one: str, other: str) -> int:
    """How many characters two texts have in common at their start."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)
