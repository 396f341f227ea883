"""Cuts a text before a bracket or a tag that it closes and nothing opens, where the document itself has none such."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.brackets import balance
from lsp_server.filters.brackets import closers_taken_over
from lsp_server.filters.surroundings import MARKUP, Rejected

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]*|(?=>))(?:[^<>\"'{}]|\"[^\"]*\"|'[^']*'|\{[^{}]*\})*?(/?)>")
TRIES = 10
"""So many places to cut at are tried, from the end, and the first one: a text with more of them is no code."""
NOTHING_OPENS = "it closes a bracket or a tag that nothing opens"

_VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)


def unmatched(text: str, request: FillRequest) -> str | Rejected:
    typed = request.prefix.rfind("\n") + 1
    whole = balance(request.prefix + request.suffix, request.language, typed=typed)
    brackets = not whole.defects and whole.comment is None
    tags = request.language in MARKUP and _tags(request.prefix + request.suffix) == ([], [])
    if not text.strip() or not (brackets or tags):
        return text
    cuts = [at for at, char in enumerate(text) if char in ")]}"] if brackets else []
    cuts += [at for at, _ in _tags(text)[0]] if tags else []
    cuts.sort(reverse=True)
    for at in (len(text), *cuts[:TRIES], *cuts[TRIES:][-1:]):
        kept = text if at == len(text) else text[:at].rstrip()
        made = request.prefix + kept + request.suffix[closers_taken_over(kept, request) :]
        left = balance(made, request.language, typed=typed)
        if not (brackets and (left.closed or left.misfits)) and not (tags and _tags(made)[0]):
            return kept if kept.strip() else Rejected(reason=NOTHING_OPENS)
    return Rejected(reason=NOTHING_OPENS)


def _tags(text: str) -> tuple[list[tuple[int, str]], list[str]]:
    """The closing tags of a text that close nothing in it, with their offsets, and the names that stay open."""
    closed: list[tuple[int, str]] = []
    opened: list[str] = []
    for tag in _TAG.finditer(text):
        ends, name, empty = tag[1], tag[2], tag[3]
        if ends and name in opened:
            del opened[len(opened) - 1 - opened[::-1].index(name) :]
        elif ends:
            closed.append((tag.start(), name))
        elif not empty and name.lower() not in _VOID:
            opened.append(name)
    return closed, opened
