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
from grammars.lines import LINE_END, indent_of, line_end, line_start
from grammars.queries import Found
from grammars.view import View

MAX_SIGNATURE = 400  # characters; a longer header says no more
MAX_SIBLINGS = 16
SIBLING_REACH = 8_192  # either side of the cursor

_WORDS = re.compile(r"[ \t]*(?:\w+[ \t]+)*")
_LINE = re.compile(r"[^\r\n]+")
_END_WORD = re.compile(r"(?:\b(?:end|fi|done|esac)|\}|</[\w:.-]+>)\s*\Z")
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
    style = document.language.block_style
    trees = [document.tree]
    if document.good is not document.tree:
        trees.append(document.good)
    for tree in filter(None, trees):
        for item in queries.structure(document, tree, max(0, min(anchor, offset) - 1), offset + 1):
            if item.kind == "member" or item.header_end > offset:
                continue
            if style == "words" and _header_goes_on(document.text, item.header_end, offset):
                continue
            inside = offset < item.end
            if not inside:
                # A body that is indented goes on as long as nothing else follows; one in braces or words only without
                # the brace or word that ends it.
                if style == "braces":
                    closed = item.whole or document.text[item.end - 1 : item.end] == "}"
                else:
                    closed = style == "words" and _is_closed(document.text, item)
                inside = item.end >= anchor and not closed
            if inside:
                start = _statement_start(view, item.start)
                scope = Scope(start=start, header_end=item.header_end, container=item.kind == "container")
                yield scope, item.whole and (offset < item.end or style == "words")
    if document.tree is None or document.errors:
        for scope in _by_indentation(view):
            yield scope, False


def _header_goes_on(text: str, header_end: int, offset: int) -> bool:
    """Whether a header without a token that ends it goes on up to `offset`: it ends with its line."""
    return text[header_end - 1] not in "(>{" and offset <= line_end(text, header_end)


def _is_closed(text: str, item: Found) -> bool:
    """Whether a body that words or tags end has ended: with one of them, or with its only line."""
    if text[item.header_end - 1] == "(":
        return text[item.end - 1] == ")"
    one_line = not LINE_END.search(text, item.start, item.end)
    return one_line or _END_WORD.search(text, max(item.header_end, item.end - MAX_SIGNATURE), item.end) is not None


def _by_indentation(view: View) -> Iterator[Scope]:
    """Walks up over lines that are indented less and less; those that look like a header are scopes.

    The cursor's own line counts only if its header is complete: `def f(): |`.
    """
    indent = view.indent + 1
    for line in reversed(list(_LINE.finditer(view.code))):
        words = line[0].lstrip(" \t")
        own = line.end() > view.indent_line - view.start
        # A closing bracket ends what began further up at the same depth: `) -> int:`, `} else {`.
        if not words.strip() or words[0] in ")]}" or indent_of(line[0]) >= indent:
            continue
        indent = view.indent if own else indent_of(line[0])
        start = view.start + line.end() - len(words)
        if header := _header_at(view, start, view.start + line.end()):
            end = _header_end(view, start)
            if not own or (_opener(view) and view.document.text[end - 1] == _opener(view)):
                yield Scope(start=start, header_end=end, container=header.container)
        if not indent:
            return


def _opener(view: View) -> str:
    """What ends a header; nothing where the end of the line does."""
    return {"indent": ":", "braces": "{", "words": ""}[view.document.language.block_style]


def _header_at(view: View, start: int, end: int) -> ScopeHeader | None:
    for header in view.document.language.scope_headers:
        if header.pattern.match(view.document.text, start, min(end, start + MAX_SIGNATURE)):
            return header
    return None


def _header_end(view: View, start: int) -> int:
    """Behind the colon or brace that ends the header at `start`; without one, the end of its line."""
    opener = _opener(view)
    painted = view.start <= start < view.offset
    text, at = (view.code, start - view.start) if painted else (view.document.text, start)
    text = text[at : at + MAX_SIGNATURE]
    depth = 0
    for index, char in enumerate(text):
        if char == opener and not depth:
            return start + index + 1
        depth += _PAIRS.get(char, 0)
    line = _LINE.match(text)
    return start + len(line[0].rstrip()) if line else start


def _by_start(candidate: tuple[Scope, bool]) -> int:
    return candidate[0].start


def enclosing(view: View) -> list[Scope]:
    """The scopes that the cursor is in, outermost first. A cursor in a header is not yet in its scope."""
    text = view.document.text
    first_of: dict[int, tuple[Scope, bool]] = {}
    for scope, certain in _candidates(view):
        first_of.setdefault(scope.start, (scope, certain))
    # A named function that is bound to another name is one scope: const f = function g() {
    one_of = {scope.header_end: (scope, certain) for scope, certain in sorted(first_of.values(), key=_by_start)[::-1]}
    found: list[Scope] = []
    limit = view.indent
    inner_line = view.indent_line
    for scope, certain in sorted(one_of.values(), key=_by_start)[::-1]:
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


def siblings(view: View, scopes: list[Scope]) -> tuple[Span, ...]:
    """Signatures of the other members of the innermost class, or else of the file, nearest first."""
    document = view.document
    inner = {scope.start for scope in scopes}
    container = next((scope for scope in reversed(scopes) if scope.container), None)
    tree = document.good if document.errors else document.tree
    members = list(_members_by_tree(view, container, tree)) if tree else []
    if not members or (document.errors and tree is document.tree):
        # One brace too few moves the rest of a class into a method, one too many the rest of a method into the class,
        # and both are small errors. Here too indentation decides.
        depth = _member_depth(view, scopes, container)
        members = [item for item in members if _indent_at(view, item.start) == depth]
        members = [*_members_by_lines(view, depth), *members]
    spans: dict[int, Span] = {}
    for item in sorted(members, key=lambda item: abs(item.start - view.offset)):
        start = _statement_start(view, item.start)
        in_header = start < view.offset <= item.header_end  # it is being written
        gone = document.text[start : item.header_end].strip()[:1] in ("", *")]};,")  # overwritten since
        if start not in inner and start not in spans and not in_header and not gone:
            spans[start] = _span(view, start, item.header_end, first_line=item.kind == "member")
            if len(spans) == MAX_SIBLINGS:
                break
    return tuple(sorted(spans.values(), key=lambda span: abs(span.start - view.offset)))


def _members_by_tree(view: View, container: Scope | None, tree: tree_sitter.Tree) -> Iterator[Found]:
    node: tree_sitter.Node | None = tree.root_node
    end = 0
    if container:
        node = tree.root_node.descendant_for_byte_range(container.start, container.header_end)
        end = container.header_end
        if node is None or node.id == tree.root_node.id:
            return  # it does not know the class
    low, high = max(0, view.offset - SIBLING_REACH), min(len(view.document.text), view.offset + SIBLING_REACH)
    for item in queries.structure(view.document, tree, low, high, node):
        if item.start >= end:  # else inside the previous member
            end = item.end
            yield item


def _member_depth(view: View, scopes: list[Scope], container: Scope | None) -> int:
    """How far the members of the container are indented: as the one is that the cursor is in, or as the cursor."""
    if container is None:
        return 0
    inside = scopes[scopes.index(container) + 1 :]
    return _indent_at(view, inside[0].start) if inside else view.indent


def _members_by_lines(view: View, depth: int) -> Iterator[Found]:
    """Lines that look like headers and are indented by `depth`, up to the first that is indented less."""
    text = view.document.text
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
    tree = view.document.tree
    if view.document.errors:
        tree = view.document.good or tree
    if tree is None:
        return ()
    return tuple(_span(view, start, end) for start, end in queries.imports(view.document, tree))
