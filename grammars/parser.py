"""A text, its syntax tree, and the last tree of it that was not badly broken.

tree-sitter never sees the text itself but its shadow: the same text with one ASCII character per code point, so that a
byte offset in the tree *is* a code point offset in the text. `shadow` says what stands for what. Knows no queries.

A document is not safe for use by several threads at once.
"""

import re
import time
from collections.abc import Mapping

import tree_sitter

from grammars import focus
from grammars.languages import Language, grammar

# Beyond these there is no tree, and the answers come from the neighbourhood of the cursor. A megabyte takes 0.15 s to
# parse, at every opening of a file; a line of more than 10,000 characters is minified or data, not written by hand.
MAX_TEXT = 1_000_000
MAX_LINE = 10_000
# Source code of that size parses in a tenth of this. Text in another language than said, or a binary file, sends the
# error recovery astray for seconds: it is not worth a tree.
MAX_PARSE_SECONDS = 1.0

MAX_ERRORS = 1000  # a tree with more is as bad as one gets

# Work of one incremental parse, in the parser's own count, so that the same edits give the same trees everywhere. An
# open bracket may send the error recovery through all that follows: at a keystroke in a long file, that takes too long.
MORE_CALLS = 150  # than any update took that left the tree whole: about 5 ms
CALLS_PER_CHAR = 1 / 20  # of the text that is put in
PATIENCE = 32  # so many updates in a row may do without a tree; then one is parsed to its end

GOOD_ERROR_SHARE = 0.05  # of the text in ERROR nodes
GOOD_DRIFT_SHARE = 0.2  # of the text changed since the good tree was parsed; beyond, it says little
GOOD_DRIFT_CHARS = 500

_CHUNK = 1024  # bytes handed to tree-sitter per read: small enough to cost nothing after an edit

Range = tuple[int, int]


class _Shadows(dict[int, str]):
    """The ASCII stand-in of each other character: a letter, a space, a form feed, or a character no grammar knows."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        if char in "\u200b\u2060\ufeff":
            stand_in = "\f"  # invisible and, as a form feed, no indentation
        elif ("a" + char).isidentifier():
            stand_in = "x"
        else:
            stand_in = " " if char.isspace() else "\x01"
        self[code] = stand_in
        return stand_in


_SHADOWS: Mapping[int, str] = _Shadows()
_FOREIGN = re.compile(r"[^\x01-\x7f]+")
_LONE_CR = re.compile(r"\r(?!\n)")


def shadow(text: str) -> bytes:
    """The text with one ASCII byte per code point, same offsets, same lines.

    Letters of any script become `x`, other characters of no use to a grammar (lone surrogates, NUL, emoji) `\\x01`,
    and a carriage return that ends a line by itself a newline, because grammars do not take it for one.
    """
    if not text.isascii() or "\0" in text:
        text = _FOREIGN.sub(lambda match: match[0].translate(_SHADOWS), text)
    if "\r" in text:
        text = _LONE_CR.sub("\n", text)
    return text.encode("ascii")


def _common_prefix(a: str, b: str) -> int:
    """Length of the longest common prefix, by halving: every comparison is one of slices."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_suffix(a: str, b: str, limit: int) -> int:
    """Length of the longest common suffix, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def _difference(old: str, new: str) -> tuple[int, int, int]:
    """The one replacement that turns `old` into `new`: start, end in old, end in new."""
    start = _common_prefix(old, new)
    suffix = _common_suffix(old, new, min(len(old), len(new)) - start)
    # A carriage return at the border means something else beside another neighbour (see shadow).
    if start and new[start - 1 : start] == "\r":
        start -= 1
    if suffix and new[len(new) - suffix] == "\n":
        suffix -= 1
    return start, len(old) - suffix, len(new) - suffix


Edit = tuple[int, int, int, tuple[int, int], tuple[int, int], tuple[int, int]]
"""A replacement as tree-sitter wants to know it: start, end in the old and in the new text, as bytes and as points."""


def _replacement(old: bytes, new: bytes, start: int, old_end: int, new_end: int, known: tuple[int, int]) -> Edit:
    """Counts the lines before the replacement once: what stands there is the same in both. `known`: an offset in `old`
    and how many lines end before it, to count from."""
    at, row = known
    row += old.count(b"\n", at, start) - old.count(b"\n", start, at)
    line = new.rfind(b"\n", 0, start) + 1

    def point(data: bytes, offset: int) -> tuple[int, int]:
        rows = data.count(b"\n", start, offset)
        return row + rows, offset - (data.rfind(b"\n", start, offset) + 1 if rows else line)

    return start, old_end, new_end, (row, start - line), point(old, old_end), point(new, new_end)


def error_ranges(tree: tree_sitter.Tree) -> tuple[Range, ...]:
    """The outermost ERROR and the MISSING nodes (those are empty ranges) in order, at most MAX_ERRORS."""
    found: list[Range] = []
    stack = [tree.root_node]
    while stack and len(found) < MAX_ERRORS:
        node = stack.pop()
        if node.is_error or node.is_missing:
            found.append(node.byte_range)
        elif node.has_error:
            stack.extend(reversed([child for child in node.children if child.has_error or child.is_missing]))
    return tuple(found)


class ParsedDocument:
    """A text with its tree, reparsed incrementally by `update`.

    `text`     the document, code points
    `tree`     its tree, or None: no grammar, too large, not parsable in time; after an update perhaps None only for now
    `errors`   the broken parts of the tree
    `good`     the last tree with few errors (often `tree` itself), moved along with later edits; or None.
               Its nodes may be out of date: check what they say against the text.
    """

    def __init__(self, text: str, language: Language) -> None:
        self.text = text
        self.language = language
        self.tree: tree_sitter.Tree | None = None
        self.good: tree_sitter.Tree | None = None
        self.errors: tuple[Range, ...] = ()
        self._base: tree_sitter.Tree | None = None  # the last tree, moved along: where the next parse sets out
        self._grammar = grammar(language)
        self._parser = tree_sitter.Parser(self._grammar) if self._grammar else None
        self._shadow = b""
        self._row = (0, 0)  # an offset in the shadow, and how many lines end before it
        self._good_errors = 0
        self._drift = 0
        self._hopeless = False
        self._calls = 0  # of the last parse
        self._most = 0  # calls of an update that left the tree whole, 0: not known yet
        self._stopped = 0  # updates since the last tree
        self._focus: focus.Focus | None = None  # what the parser sees of a long text; None: all
        self._tops: tuple[list[int], list[int]] = ([], [])  # beginnings before and behind the focus
        self._reset()

    def update(self, text: str) -> None:
        """Makes `text` the document's text. Costs what the change costs, not what the text costs to parse."""
        if text == self.text:
            return
        start, old_end, new_end = _difference(self.text, text)
        old, self.text = self.text, text
        if self._parser is None or (self._hopeless and 2 * (new_end - start) < len(text)):
            return
        moved = self._focus.moved(start, old_end, new_end) if self._focus else None
        if self._base is None or 2 * (old_end - start) > len(old) or (self._focus and not moved):
            self._reset()
            return
        if self._focus and old_end < self._focus.low:
            self._tops[0][:] = [top if top < start else top + new_end - old_end for top in self._tops[0]]
        self._focus = moved
        data = self._shadow[:start] + shadow(text[start:new_end]) + self._shadow[old_end:]
        if _too_large(data, start, new_end):
            self._reset()
            return
        edit = _replacement(self._shadow, data, start, old_end, new_end, self._row)
        self._row = start, edit[3][0]
        self._base.edit(*edit)
        if self.good is not None and self.good is not self._base:
            self.good.edit(*edit)
        self._shadow = data
        self._drift += old_end - start + new_end - start
        self._stopped += 1
        limit = self._most + MORE_CALLS + CALLS_PER_CHAR * (new_end - start)
        if not self._most or self._stopped > PATIENCE:
            limit = float("inf")
        # From a whole tree the way back to one is short.
        old_tree = self.good or self._base
        tree = self._parse(data, old_tree, limit)
        if tree is None:
            self.tree, self.errors = None, ((start, new_end),)
        else:
            self._take(tree)
            if self.good is tree:
                self._most = max(self._most, self._calls)

    def look_at(self, offset: int) -> None:
        """Says where the cursor is. In a long text only what is near it is parsed from now on."""
        if self.tree is None or len(self.text) < focus.LONG or (self._focus and self._focus.near(offset)):
            return
        size, (before, behind) = len(self.text), self._tops
        tops = [*before, *self._beginnings(), *(size - left for left in behind)]
        chosen = focus.choose(tops, offset, size)
        if chosen == self._focus or (self._focus is None and (chosen.low, chosen.high) == (0, size)):
            return
        self._focus = chosen
        before_it = [top for top in tops if top < chosen.low]
        self._tops = before_it, [size - top for top in tops if top >= chosen.high]
        self._shadow = chosen.seen(shadow(self.text))
        self.good = None
        self._take(self._parse(self._shadow, None))
        self._most = 0

    def _beginnings(self) -> list[int]:
        """Where top-level nodes begin, as far as they are seen and whole, at the start of their line."""
        assert self.tree is not None
        low, high = (self._focus.low, self._focus.high) if self._focus else (0, len(self.text))
        children = self.tree.root_node.named_children
        starts = {child.start_byte for child in children if not child.has_error and not child.start_point[1]}
        return sorted(start for start in starts if low <= start < high)

    def _reset(self) -> None:
        self.tree = self.good = self._base = self._focus = None
        self.errors = ()
        self._tops = ([], [])
        self._row = 0, 0
        self._shadow = b""
        self._hopeless = False
        if self._parser is None or len(self.text) > MAX_TEXT:
            return
        data = shadow(self.text)
        if not _too_large(data):
            self._shadow = data
            self._take(self._parse(data, None))
            self._most = 0

    def _parse(self, data: bytes, old: tree_sitter.Tree | None, limit: float = float("inf")) -> tree_sitter.Tree | None:
        """None if it takes too long, or more work than `limit` calls of `stop`."""
        assert self._parser is not None
        deadline = time.monotonic() + MAX_PARSE_SECONDS

        def read(offset: int, point: object) -> bytes:
            return data[offset : offset + _CHUNK]

        def stop(offset: int, has_error: bool) -> bool:
            self._calls += 1
            return self._calls > limit or time.monotonic() > deadline

        self._calls = 0
        try:
            if old is None:
                return self._parser.parse(read, progress_callback=stop)
            return self._parser.parse(read, old, progress_callback=stop)
        except ValueError:  # stopped
            self._parser.reset()
            return None

    def _take(self, tree: tree_sitter.Tree | None) -> None:
        """Makes `tree` the current one, and the good one if it is at least as whole as that."""
        self.tree = self._base = tree
        self._stopped = 0
        self.errors = error_ranges(tree) if tree is not None else ()
        if tree is None:
            self.good, self._hopeless = None, True
            return
        size = max(len(self.text), 1)
        if self.good is not None and self._drift > max(GOOD_DRIFT_CHARS, GOOD_DRIFT_SHARE * size):
            self.good = None
        broken = sum(max(end - start, 1) for start, end in self.errors)
        if broken <= (GOOD_ERROR_SHARE * size if self.good is None else self._good_errors):
            self.good, self._good_errors, self._drift = tree, broken, 0


def _too_large(data: bytes, start: int = 0, end: int | None = None) -> bool:
    """Whether there is too much of it, or a line that touches [start, end) is too long; the others are known."""
    if end is not None:
        start = data.rfind(b"\n", 0, start) + 1
        end = data.find(b"\n", end)
    lines = data[start : None if end == -1 else end].split(b"\n")
    return len(data) > MAX_TEXT or max(map(len, lines)) > MAX_LINE
