"""Puts the newline before a body that begins on its header's line: `def f():return 1`, `if (a) {b();`."""

from __future__ import annotations

import re
from dataclasses import replace

from diffusion.api import FillRequest
from grammars.brackets import balance
from grammars.languages import language_for
from lsp_server.filters.brackets import before_cursor
from lsp_server.filters.indent_unit import indent_unit
from lsp_server.filters.surroundings import at_line_start, indent_unit_of, line_before, rest_of_line, split_indent

_COLON = re.compile(
    r"(?:.*[)\]]\s*(?:->.*)?|\s*(?:async\s+)?(?:def|class|if|elif|else|for|while|try|except|finally|with|match|case)\b.*):\s*\Z"
)
_WORDS = re.compile(r".*\b(?:then|do|else|repeat|begin)\s*\Z")
_END_WORD = re.compile(r"\b(?:end|fi|done|esac|until)\b")
TAB = 4
_ONE_LINERS = ("...", "pass")
_COMMENT = ("#", "//", "/*", "--")


def body_newline(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    header = line_before(request)
    if not body or body.startswith(_COMMENT) or rest_of_line(request).strip() or at_line_start(request):
        return text
    if not _begins_body(header, body, request) or (body.strip() in _ONE_LINERS and not later):
        return text
    # Written as if the cursor stood on the next line already, at the body's level; spaces become the file's unit.
    outer = split_indent(header)[0]
    level = outer + indent_unit_of(request)[0]
    below = replace(request, prefix=request.prefix + "\n" + level)
    columns = [len(split_indent(line)[0].expandtabs(TAB)) for line in later]
    deep, written = len(level.expandtabs(TAB)), len(indent.expandtabs(TAB)) if len(indent) > 1 else 0
    inner = [
        width for line, width in zip(later, columns, strict=True) if line.strip() and line.lstrip()[0] not in ")]}"
    ]
    shift = 0 if not written and inner and min(inner) >= deep else deep - written
    ends = {text.count("\n", 0, at) for at, _ in balance(text, request.language).closed}
    moved = [level + body]
    for number, (line, width) in enumerate(zip(later, columns, strict=True), start=1):
        said = line.lstrip(" \t")
        is_end = number in ends and said[:1] in tuple(")]}")  # What ends the body stands where its header does.
        moved.append(outer + said if is_end else " " * max(0, width + shift) * bool(said) + said)
    return "\n" + indent_unit("\n".join(moved), below)


def _begins_body(header: str, body: str, request: FillRequest) -> bool:
    """Whether the header has come to its end, and the body does not end on the same line."""
    before = before_cursor(request)
    if before.quote or before.comment is not None:
        return False
    header = header.rstrip()
    if request.language == "python":
        return bool(_COLON.fullmatch(header)) and not before.opened
    style = language_for(request.language).block_style
    if header.endswith("{") and style == "braces":
        return not header.endswith("${") and not balance(body, request.language).closed
    return style == "words" and bool(_WORDS.match(header)) and not _END_WORD.search(body)
