"""Runs a language's context query over a part of a tree. Knows no cursor.

Every pattern of a context.scm starts at the beginning of a line. Captures that it may use:

@scope        a function, class, ...; with @scope.open, the token or the last node of its header (`:`, `{`, `(a, b)`)
@container    on a @scope that has members: class, interface, namespace
@member       a member without a body: field, declared method, type
@import       an import; with @import.call only if that function is in the language's import_calls
@string       a string or what is like one (template, regular expression), quotes included; @string.quoted only if it
               begins with a quote
@comment      a comment
@code         code inside a string, braces included
"""

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import tree_sitter

from grammars.languages import Language, grammar, query_source
from grammars.lexer import Region
from grammars.parser import ParsedDocument

MEMBER_DEPTH = 5  # export > class > body > declaration > declarator > function
IMPORT_DEPTH = 3  # module > if TYPE_CHECKING > block > import
IMPORT_REACH = 16_384  # of the file's beginning: looking through all of a large one at every keystroke takes too long
MAX_IMPORTS = 100

_PATTERN = re.compile(r"^(?=\()", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A capture: its range, the end of its header (scopes only, else `end`), and whether it can be trusted."""

    kind: Literal["scope", "container", "member"]
    start: int
    end: int
    header_end: int
    whole: bool  # no error inside, tree up to date


@functools.cache
def _query(language: Language, imports: bool) -> tree_sitter.Query:
    """The patterns for imports, or all others: two queries, since compiling one costs up to 0.1 s (Swift)."""
    compiled = grammar(language)
    assert compiled is not None
    patterns = _PATTERN.split(query_source(language))
    return tree_sitter.Query(compiled, "".join(pattern for pattern in patterns if ("@import" in pattern) is imports))


def _matches(
    language: Language,
    node: tree_sitter.Node,
    start: int,
    end: int,
    depth: int | None = None,
    imports: bool = False,
) -> Iterator[dict[str, list[tree_sitter.Node]]]:
    if start >= end:  # to tree-sitter, an end of 0 is no end
        return
    cursor = tree_sitter.QueryCursor(_query(language, imports))
    cursor.set_byte_range(start, end)
    if depth is not None:
        cursor.set_max_start_depth(depth)
    for _, captures in cursor.matches(node):
        if captures:
            yield captures


def _header_is_whole(scope: tree_sitter.Node, opener: tree_sitter.Node) -> bool:
    """False where an error has swallowed whole lines up to an opener that is another scope's."""
    return not scope.has_error or not any(
        child.is_error and child.end_byte <= opener.start_byte and child.start_point.row < child.end_point.row
        for child in scope.children
    )


def structure(
    document: ParsedDocument,
    tree: tree_sitter.Tree,
    start: int,
    end: int,
    node: tree_sitter.Node | None = None,
) -> list[Found]:
    """Scopes and members of `tree` that touch [start, end), in order; below `node` only its near descendants."""
    found: list[Found] = []
    depth = None if node is None else MEMBER_DEPTH
    for captures in _matches(document.language, node or tree.root_node, start, end, depth):
        if scopes := captures.get("scope"):
            scope, opener = scopes[0], captures["scope.open"][0]
            # The good tree may be older than the text: the opener must still be there.
            said = document.text[opener.start_byte : opener.end_byte]
            gone = not said if opener.is_named else said != opener.type
            if gone or not _header_is_whole(scope, opener):
                continue
            whole = tree is document.tree and not scope.has_error
            kind: Literal["scope", "container"] = "container" if "container" in captures else "scope"
            found.append(
                Found(
                    kind=kind,
                    start=scope.start_byte,
                    end=scope.end_byte,
                    header_end=scope.start_byte + len(document.text[scope.start_byte : opener.end_byte].rstrip()),
                    whole=whole,
                )
            )
        for member in captures.get("member", ()):
            at, to = member.byte_range
            found.append(Found(kind="member", start=at, end=to, header_end=to, whole=not member.has_error))
    # Where a field with a function in it is both, the scope comes first.
    return sorted(found, key=lambda item: (item.start, -item.end, item.kind == "member"))


def regions(document: ParsedDocument, tree: tree_sitter.Tree, start: int, end: int) -> list[Region]:
    """Strings, comments and code in strings of `tree` that touch [start, end), outer ones first."""
    found: list[Region] = []
    text, language = document.text, document.language
    to_line_end = tuple(
        opener
        for opener, closer in ((language.line_comment, "\n"), *language.block_comments)
        if opener and closer == "\n"
    )
    kinds: tuple[Literal["string", "code"], ...] = ("string", "code")
    for captures in _matches(document.language, tree.root_node, start, end):
        for kind in kinds:
            for node in captures.get(kind, ()):
                # Of some languages the code's own brackets are no part of it, or it has none: "$name".
                is_open = kind == "code" and text[node.end_byte - 1 : node.end_byte] not in tuple(")]}")
                found.append(Region(kind=kind, start=node.start_byte, end=node.end_byte, open=is_open))
        found.extend(
            Region(kind="string", start=node.start_byte, end=node.end_byte)
            for node in captures.get("string.quoted", ())
            if text[node.start_byte : node.start_byte + 1] in tuple("'\"`")
        )
        for node in captures.get("comment", ()):
            # Some grammars count the line's end as part of the comment.
            end = node.start_byte + len(text[node.start_byte : node.end_byte].rstrip("\r\n"))
            is_open = text.startswith(to_line_end, node.start_byte)
            found.append(Region(kind="comment", start=node.start_byte, end=end, open=is_open))
    return sorted(found, key=lambda region: (region.start, -region.end))


def imports(document: ParsedDocument, tree: tree_sitter.Tree) -> list[tuple[int, int]]:
    """The ranges of the imports at the beginning of the file, in order, at most MAX_IMPORTS."""
    calls = document.language.import_calls
    found: set[tuple[int, int]] = set()
    root = tree.root_node
    end = min(root.end_byte, IMPORT_REACH)
    for captures in _matches(document.language, root, root.start_byte, end, IMPORT_DEPTH, imports=True):
        callee = captures.get("import.call")
        if callee is None or document.text[callee[0].start_byte : callee[0].end_byte] in calls:
            found.update(node.byte_range for node in captures.get("import", ()))
            if len(found) >= MAX_IMPORTS:
                break
    return sorted(found)
