"""Brackets and quotes that are open or closed too often, outside of strings and comments.

Knows enough of all languages to tell strings and comments from code, and the grammar of none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from diffusion.api import FillRequest
from grammars.lines import follows
from lsp_server.filters.surroundings import compact, rest_of_line

_PAIRS = {")": "(", "]": "[", "}": "{"}
_QUOTES = ('"""', "'''", '"', "'", "`")
_COMMENT_ENDS = {"//": "\n", "#": "\n", "--": "\n", ";": "\n", "/*": "*/", "--[[": "]]"}
_BRACKETS = r"[(){}\[\]]"
_MARKS = r"\"\"\"|'''|[\"'`]|" + _BRACKETS
# Where a value is expected, a slash begins a regular expression.
_REGEX = r"(?:(?<=[=(,:\[!&|?{};])|(?<=return)|\A)[ \t]*/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/|"
# Literals that end otherwise than the strings of other languages.
_VERBATIM = r"(?:\$@|@\$|@)\"(?:[^\"]|\"\")*\"|"
_RUST = r"'(?:\\[^\n'][^\n']*|[^\\\n'])'|r#+\".*?\"#+|"
_TEMPLATES = frozenset(("javascript", "javascriptreact", "typescript", "typescriptreact", "vue", "svelte"))
_HASHES = (
    *("python", "ruby", "shellscript", "perl", "r", "yaml", "toml", "elixir", "makefile", "dockerfile", "julia", "nix"),
    *("powershell", "terraform", "graphql", "coffeescript"),
)
_CODE = re.compile(_MARKS + r"|//|/\*")
_CODE_OF = {
    language: re.compile(pattern, re.DOTALL)
    for languages, pattern in (
        (_TEMPLATES, _REGEX + _MARKS + r"|//|/\*"),
        (_HASHES, _MARKS + "|#"),
        (("php",), _MARKS + r"|//|/\*|#(?!\[)"),
        (("lua", "sql", "haskell", "elm", "ada", "vhdl"), _MARKS + r"|--\[\[|--|/\*"),
        (("rust",), _RUST + r"[\"]|" + _BRACKETS + r"|//|/\*"),
        (("csharp",), _VERBATIM + _MARKS + r"|//|/\*"),
        (("css", "html", "xml"), _MARKS + r"|/\*"),
        (("lisp", "clojure", "scheme", "racket", "commonlisp"), r"[\"]|" + _BRACKETS + "|;"),
    )
    for language in languages
}  # fmt: skip
_LITERALS_OF_LINES = ("csharp", "rust")
"""Languages in which one of these patterns may match more than one line."""
# In a string: an escape, which is passed over, or what ends the string, for good or for code in it.
_MORE_ENDS = {"'": r"|\n", '"': r"|\n", "`": r"|\$\{"}
_STRING_ENDS = {quote: re.compile(rf"\\.|{quote}{_MORE_ENDS.get(quote, '')}", re.DOTALL) for quote in _QUOTES}
_TRIPLE_LINE = re.compile(r"^(.*?)(\"\"\"|''')(.*)$", re.MULTILINE)
_STRING_PREFIX = re.compile(r"(?:.*\W)?(?:return|yield|[rRbBfFuU]{1,2})")


@dataclass(frozen=True, kw_only=True)
class Balance:
    """What a text leaves unbalanced: `closed` has its extra closers with their offsets, `misfits` the offsets of those
    that do not fit what is open, `opened` what stays open, the innermost last. A quote counts as a bracket, and so does
    the "${" of code in a template string. `comment`: where a comment starts that runs to the text's end or beyond, or
    None."""

    closed: tuple[tuple[int, str], ...]
    misfits: tuple[int, ...]
    opened: tuple[str, ...]
    comment: int | None

    @property
    def quote(self) -> str:
        """The quote of the string that is open at the end, or an empty string."""
        return _quote(self.opened)


@dataclass(frozen=True, kw_only=True)
class _State:
    """Of a scan that has come to `at`. `outer`: the string `quote` was begun before the text."""

    at: int = 0
    quote: str = ""
    template: bool = False
    outer: bool = False
    outer_templates: tuple[bool, ...] = ()
    balance: Balance = Balance(closed=(), misfits=(), opened=(), comment=None)


@lru_cache(maxsize=16)
def balance(text: str, language: str, *, quote: str = "", template: bool = False, typed: int = 0) -> Balance:
    """Scan a text that starts inside the string `quote`, or in code; `template`: in the code of a template string.

    While something is typed behind text[:typed], whole lines, these are not scanned again.
    """
    state = _State(quote=quote, template=template, outer=bool(quote))
    # Literals that go on over the border of two lines would look otherwise in the first of them.
    if typed and language not in _LITERALS_OF_LINES and not text.endswith("\\\n", 0, typed):
        lines = _above(text[:typed], language, state)
        state = state if lines.balance.comment is not None else lines
    state = _scan(text, language, state)
    opened = (*state.balance.opened, *([state.quote] if state.quote else []))
    return replace(state.balance, opened=opened)


@lru_cache(maxsize=4)
def _above(text: str, language: str, state: _State) -> _State:
    return replace(_scan(text, language, state), at=len(text))


def _scan(text: str, language: str, state: _State) -> _State:
    code = _CODE_OF.get(language, _CODE)
    quote, template, outer, comment = state.quote, state.template, state.outer, state.balance.comment
    closed, opened, misfits = list(state.balance.closed), list(state.balance.opened), list(state.balance.misfits)
    outer_templates = list(state.outer_templates)
    at = state.at
    while found := (_STRING_ENDS[quote] if quote else code).search(text, at):
        mark, at = found[0], found.end()
        if quote:
            if mark == quote and outer:
                closed.append((found.start(), quote))
            if mark == "${" and language in _TEMPLATES:
                opened += [mark] if outer else [quote, mark]
                outer_templates.append(outer)
            elif mark not in (quote, "\n"):  # At a line's end: a string that was never closed, or an apostrophe.
                continue
            quote, outer = "", False
        elif mark in _QUOTES:
            quote = mark
        elif len(mark) > 1 and mark not in _COMMENT_ENDS:  # A whole literal.
            continue
        elif mark in _COMMENT_ENDS:
            end = text.find(_COMMENT_ENDS[mark], at)
            comment = found.start() if end < 0 else None
            at = len(text) if end < 0 else end
        elif mark in "([{":
            opened.append(mark)
        elif opened and opened[-1] == "${" and mark == "}":
            opened.pop()
            quote, outer = "`", outer_templates.pop()
            if not outer:
                opened.pop()
        elif opened and opened[-1] == _PAIRS[mark]:
            opened.pop()
        elif not opened:
            closed.append((found.start(), mark))
            if template and mark == "}":
                quote, outer, template = "`", True, False
        else:
            misfits.append(found.start())
    found_so_far = Balance(closed=tuple(closed), misfits=tuple(misfits), opened=tuple(opened), comment=comment)
    return _State(
        at=at,
        quote=quote,
        template=template,
        outer=outer,
        outer_templates=tuple(outer_templates),
        balance=found_so_far,
    )


def _quote(opened: Sequence[str]) -> str:
    return opened[-1] if opened and opened[-1] in _QUOTES else ""


def balance_in_place(text: str, request: FillRequest) -> Balance:
    """Scan a text that stands at the cursor."""
    before = before_cursor(request)
    return balance(text, request.language, quote=before.quote, template="${" in before.opened)


def before_cursor(request: FillRequest) -> Balance:
    """What the prefix leaves open. It may begin within a long string: the first line with its quotes tells."""
    typed = request.prefix.rfind("\n") + 1
    return balance(request.prefix, request.language, quote=_string_at_start(request.prefix), typed=typed)


@lru_cache(maxsize=4)
def _string_at_start(prefix: str) -> str:
    """The triple quote of the string in which a prefix begins, as far as the first one in it shows, or nothing."""
    for line in _TRIPLE_LINE.finditer(prefix):
        quote = line[2]
        if line[0].count(quote) % 2 == 0:
            continue
        before, after = line[1].strip(), line[3].strip()
        if before and before[-1] not in "=([{,:+" and not _STRING_PREFIX.fullmatch(before):
            return quote
        if before or (after and after[0] not in "),]}.;:"):
            return ""
        # Quotes on a line of their own end a text, unless a header or nothing stands above.
        above = prefix[: line.start()].rstrip()
        return "" if not above or above[-1] in ":=([{," else quote
    return ""


def redundant_closers(text: str, request: FillRequest) -> tuple[tuple[int, str], ...]:
    """The closers of a text that close what the suffix closes anyway, with their offsets in the text.

    They are the last ones: so many of the others are kept that the closers of the suffix fit best to what is left open.
    """
    before = before_cursor(request)
    inside = balance_in_place(text, request)

    def misfit(kept: int) -> tuple[bool, int, int]:
        left = [*before.opened[: max(0, len(before.opened) - kept)], *inside.opened]
        suffix = balance(request.suffix, request.language, quote=_quote(left), template="${" in left)
        behind = [closer for _, closer in suffix.closed]
        pairs = [
            opener == _PAIRS.get(closer, closer) or (opener, closer) == ("${", "}")
            for opener, closer in zip(reversed(left), behind, strict=False)
        ]
        fitting = pairs.index(False) if False in pairs else len(pairs)
        # Both windows end somewhere: that one has more than the other is a weaker sign than a wrong pair.
        surplus = abs(len(before.opened) - kept + len(inside.opened) - len(behind))
        return False in pairs, -fitting if False in pairs else 0, surplus

    kept = min(range(len(inside.closed) + 1), key=misfit) if inside.closed else 0
    return inside.closed[kept:]


def closes_angle(text: str) -> bool:
    """Whether the text closes an angle bracket that it does not open, as far as this can be told from arrows."""
    return text.count(">") - text.count("=>") - text.count("->") > text.count("<")


def closers_taken_over(text: str, request: FillRequest) -> int:
    """How many characters behind the cursor the text writes itself: closers that an editor has put there. They are
    replaced, so that accepting leaves the cursor behind them."""
    rest = rest_of_line(request)
    redundant = redundant_closers(text, request)
    if follows(rest) == "closers" and compact(text).endswith(compact(rest)):
        only_separators = not rest.strip(" \t;,")
        if redundant or only_separators or (">" in rest and closes_angle(text)):
            return len(rest.rstrip())
    elif rest.strip() and not rest.strip(" \t;,") and compact(text.split("\n", 1)[0]).endswith(compact(rest)):
        return len(rest.rstrip())  # The line's end stands in the text, and more lines after it.
    if before_cursor(request).quote and _ends_code_in_string(text, rest):
        return len(rest.rstrip())
    taken = last = 0
    for at, closer in redundant:
        gap = len(rest) - taken - len(rest[taken:].lstrip())
        if not rest.startswith(closer, taken + gap):
            break
        taken += gap + len(closer)
        last = at + len(closer)
    if taken and compact(rest[taken:]) and compact(text[last:]).endswith(compact(rest[taken:])):
        return len(rest.rstrip())  # The text writes something between the closers and what follows them.
    for char in text[last:].strip() if taken else "":
        if char not in ";,>" or not rest.startswith(char, taken):
            break
        taken += 1
    return taken


def _ends_code_in_string(text: str, rest: str) -> bool:
    """Whether the text ends the code in a string, goes on with the string and ends that, too: all that is left."""
    ends = compact(rest)
    letters = iter(compact(text))
    in_order = ends[:1] == "}" and follows(rest) == "closers" and all(closer in letters for closer in ends)
    return in_order and len(ends) > 1 and next(letters, None) is None
