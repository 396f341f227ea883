"""What encloses the cursor and what stands beside it: scopes, sibling signatures, imports.

A broken tree is the normal case while somebody types. So a scope of the tree is believed as it is only if there is no
error in it; otherwise indentation has the last word, and headers are also looked for line by line and in the last good
tree. Knows no completion.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import tree_sitter

from grammars import queries
from grammars.languages import ScopeHeader
from grammars.lines import indent_of, line_start
from grammars.queries import Found
from grammars.view import View

MAX_SIGNATURE = 400  # characters; a longer header says no more
MAX_SIBLINGS = 16
SIBLING_REACH = 16_384  # either side of the cursor

_WORDS = re.compile(r"[ \t]*(?:\w+[ \t]+)*")
_LINE = re.compile(r"[^\r\n]+")
_PAIRS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, kw_only=True, slots=True)
class Span:
    """A piece of the document: text[start:end]."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """An enclosing scope: where its header starts and ends, and whether it has members."""

    start: int
    header_end: int
    container: bool


def _span(view: View, start: int, end: int, first_line: bool = False) -> Span:
    text = view.document.text[start : min(end, start + MAX_SIGNATURE)]
    if first_line and (line := _LINE.match(text)):
        text = line[0]
    text = text.rstrip()
    return Span(start=start, end=start + len(text), text=text)


def _statement_start(view: View, start: int) -> int:
    """Where the line of `start` begins to say something, if only words (export, static, ...) stand between."""
    begin = line_start(view.document.text, start)
    lead = view.document.text[begin:start]
    return begin + len(lead) - len(lead.lstrip(" \t")) if _WORDS.fullmatch(lead) else start


def _indent_at(view: View, offset: int) -> int:
    return indent_of(view.document.text[line_start(view.document.text, offset) : offset + 1])


def _candidates(view: View) -> Iterator[tuple[Scope, bool]]:
    """Scopes that may enclose the cursor, the most reliable source first, and whether they certainly do."""
    document, offset, anchor = view.document, view.offset, view.anchor
    braces = document.language.block_style == "braces"
    trees = [document.tree]
    if document.good is not document.tree:
        trees.append(document.good)
    for tree in filter(None, trees):
        for item in queries.structure(document, tree, max(0, min(anchor, offset) - 1), offset + 1):
            if item.kind == "member" or item.header_end > offset:
                continue
            inside = offset < item.end
            if not inside:
                # A body that is indented goes on as long as nothing else follows; one in braces only without its brace.
                closed = braces and (item.whole or document.text[item.end - 1 : item.end] == "}")
                inside = item.end >= anchor and not closed
            if inside:
                start = _statement_start(view, item.start)
                scope = Scope(start=start, header_end=item.header_end, container=item.kind == "container")
                yield scope, item.whole and offset < item.end
    if document.tree is None or document.errors:
        for scope in _by_indentation(view):
            yield scope, False


def _by_indentation(view: View) -> Iterator[Scope]:
    """Walks up over lines that are indented less and less; those that look like a header are scopes."""
    indent = view.indent
    for line in reversed(list(_LINE.finditer(view.code, 0, max(0, view.indent_line - view.start)))):
        words = line[0].lstrip(" \t")
        # A closing bracket ends what began further up at the same depth: `) -> int:`, `} else {`.
        if not words.strip() or words[0] in ")]}" or indent_of(line[0]) >= indent:
            continue
        indent = indent_of(line[0])
        start = view.start + line.end() - len(words)
        if header := _header_at(view, start, view.start + line.end()):
            yield Scope(start=start, header_end=_header_end(view, start), container=header.container)
        if not indent:
            return


def _header_at(view: View, start: int, end: int) -> ScopeHeader | None:
    for header in view.document.language.scope_headers:
        if header.pattern.match(view.document.text, start, min(end, start + MAX_SIGNATURE)):
            return header
    return None


def _header_end(view: View, start: int) -> int:
    """Behind the colon or brace that ends the header at `start`; without one, the end of its line."""
    opener = ":" if view.document.language.block_style == "indent" else "{"
    text = view.code[start - view.start :] if view.start <= start < view.offset else view.document.text[start:]
    text = text[:MAX_SIGNATURE]
    depth = 0
    for index, char in enumerate(text):
        if char == opener and not depth:
            return start + index + 1
        depth += _PAIRS.get(char, 0)
    line = _LINE.match(text)
    return start + len(line[0].rstrip()) if line else start


def enclosing(view: View) -> list[Scope]:
    """The scopes that the cursor is in, outermost first. A cursor in a header is not yet in its scope."""
    text = view.document.text
    first_of: dict[int, tuple[Scope, bool]] = {}
    for scope, certain in _candidates(view):
        first_of.setdefault(scope.start, (scope, certain))
    found: list[Scope] = []
    limit = view.indent
    inner_line = view.indent_line
    for scope, certain in sorted(first_of.values(), key=lambda item: -item[0].start):
        indent = _indent_at(view, scope.start)
        same_line = line_start(text, scope.header_end) == inner_line
        empty = not found and scope.header_end == view.anchor
        if certain or same_line or empty or indent < limit:
            found.append(scope)
            limit = min(limit, indent)
            inner_line = line_start(text, scope.start)
    return found[::-1]


def headers(view: View, scopes: list[Scope]) -> tuple[Span, ...]:
    """The header texts of scopes."""
    return tuple(_span(view, scope.start, scope.header_end) for scope in scopes)


def _outline_tree(view: View) -> tree_sitter.Tree | None:
    """The tree to read the file's structure from: one with few errors, or None."""
    document = view.document
    return document.tree if not document.errors else document.good


def siblings(view: View, scopes: list[Scope]) -> tuple[Span, ...]:
    """Signatures of the other members of the innermost class, or else of the file, nearest first."""
    inner = {scope.start for scope in scopes}
    container = next((scope for scope in reversed(scopes) if scope.container), None)
    spans = []
    for item in _members(view, scopes, container):
        start = _statement_start(view, item.start)
        in_header = start < view.offset <= item.header_end  # it is being written
        if start not in inner and not in_header:
            spans.append(_span(view, start, item.header_end, first_line=item.kind == "member"))
    spans.sort(key=lambda span: abs(span.start - view.offset))
    return tuple(spans[:MAX_SIBLINGS])


def _members(view: View, scopes: list[Scope], container: Scope | None) -> Iterator[Found]:
    tree = _outline_tree(view)
    node = tree.root_node if tree else None
    if tree and container:
        node = tree.root_node.descendant_for_byte_range(container.start, container.header_end)
        if node is None or node.id == tree.root_node.id:
            tree = None  # it does not know the class
    if tree is None or node is None:
        yield from _members_by_lines(view, scopes, container)
        return
    low, high = max(0, view.offset - SIBLING_REACH), min(len(view.document.text), view.offset + SIBLING_REACH)
    end = container.header_end if container else 0
    for item in queries.structure(view.document, tree, low, high, node):
        if item.start >= end:  # else inside the previous member
            end = item.end
            yield item


def _members_by_lines(view: View, scopes: list[Scope], container: Scope | None) -> Iterator[Found]:
    """Lines that look like headers, at the depth of the container's members, up to where the container ends."""
    text = view.document.text
    inside = scopes[scopes.index(container) + 1 :] if container else scopes
    depth = _indent_at(view, inside[0].start) if inside else view.indent if container else 0
    low, high = max(view.start, view.offset - SIBLING_REACH), min(len(text), view.offset + SIBLING_REACH)
    above = reversed(list(_LINE.finditer(view.code, low - view.start)))
    below = _LINE.finditer(text, view.line_end, high)
    for lines, base in ((above, view.start), (below, 0)):
        for line in lines:
            words = line[0].lstrip(" \t")
            if not words.strip():
                continue
            if indent_of(line[0]) < depth:
                break
            start = base + line.end() - len(words)
            if indent_of(line[0]) == depth and _header_at(view, start, base + line.end()):
                end = _header_end(view, start)
                yield Found(kind="scope", start=start, end=end, header_end=end, whole=False)


def imports(view: View) -> tuple[Span, ...]:
    """The imports of the file, in order."""
    tree = _outline_tree(view) or view.document.tree
    if tree is None:
        return ()
    return tuple(_span(view, start, end) for start, end in queries.imports(view.document, tree))
