"""Cuts off an end that repeats what follows the cursor, whatever its spacing: the rest of the line, or lines below."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.languages import language_for
from grammars.lines import follows, indent_of
from lsp_server.filters.brackets import closes_angle
from lsp_server.filters.surroundings import WORD, Rejected, at_line_start, compact, following_lines, rest_of_line

_TOKEN = re.compile(r"\w+|[^\w\s]")
# Brackets of their own may end another block than the one that ends below; comments and long strings do not nest.
_PROOF = re.compile(r"\w|\*/|-->|\"\"\"|\'\'\'")


def repeats_suffix(text: str, request: FillRequest) -> str | Rejected:
    rest = rest_of_line(request)
    behind = follows(rest)
    if behind == "code":
        return _without_rest(text, rest)
    return _without_lines(text, request, rest)


def _without_rest(text: str, rest: str) -> str:
    """The text without an end that is the rest of the line, or at least two tokens of its start."""
    tokens = list(_TOKEN.finditer(text))
    ahead = _TOKEN.findall(rest)
    for first in range(max(0, len(tokens) - len(ahead)), len(tokens)):
        token = tokens[first]
        tail = [later[0] for later in tokens[first:]]
        whole = tail == ahead
        started = len(tail) > 1 and tail == ahead[: len(tail)]
        doubled = len(tail) == 1 and tail == ahead[:1] and WORD.match(tail[0]) and not text[-1].isspace()
        angle = tail == [">"] == ahead[:1] and closes_angle(text)
        if whole or started or angle or (doubled and rest[:1].isspace()):
            start = token.start()
            return text[:start].rstrip() if rest[:1].isspace() or rest[0] in ")],;" else text[:start]
    return text


def _without_lines(text: str, request: FillRequest, rest: str) -> str | Rejected:
    """The text without lines that are the next lines of the document; before them, it has to write the closers that
    are the rest of the cursor's line."""
    below = following_lines(request)
    lines = text.split("\n")
    by_indent = language_for(request.language).block_style == "indent"
    for first in range(0 if at_line_start(request) else 1, len(lines)):
        same = _same_lines([line for line in lines[first:] if line.strip()], below, by_indent)
        kept = "\n".join(lines[:first])
        if lines[first].strip() and same and compact(kept).endswith(compact(rest)):
            return kept if kept.strip() else Rejected(reason="it repeats the next line")
    return text


def _same_lines(ours: list[str], theirs: list[str], by_indent: bool) -> bool:
    """Whether our lines are the first of theirs, or two of them are that say something."""
    same = 0
    for our, their in zip(ours, theirs, strict=False):
        if compact(our) != compact(their):
            break
        # `end` alone may well end another block than the one that ends below.
        if (by_indent or our.strip().isalnum()) and indent_of(our) != indent_of(their):
            break
        same += 1
    proofs = sum(bool(_PROOF.search(line)) for line in ours[:same])
    return proofs > 1 or (proofs == 1 and same == min(len(ours), len(theirs)))
