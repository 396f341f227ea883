"""Brackets and quotes that are open or closed too often, outside of strings and comments.

Knows enough of all languages to tell strings and comments from code, and the grammar of none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

PAIRS = {")": "(", "]": "[", "}": "{"}
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
        return quote_of(self.opened)

    @property
    def defects(self) -> int:
        """How many closers and openers have no partner."""
        return len(self.closed) + len(self.misfits) + len(self.opened)


def quote_of(opened: Sequence[str]) -> str:
    """The quote of the string that is open where these are, or an empty string."""
    return opened[-1] if opened and opened[-1] in _QUOTES else ""


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
        elif opened and opened[-1] == PAIRS[mark]:
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


@lru_cache(maxsize=4)
def string_at_start(prefix: str) -> str:
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
