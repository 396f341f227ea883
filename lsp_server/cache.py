"""Completions that were offered, found again while their text is typed, deleted or accepted in parts.

Knows the text around the cursor that a completion was made for; no documents, no model.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from lsp_server.insertion import Insertion

LENGTH = 64
MAX_CLOSED = 3
CLOSERS = frozenset(")]}>\"'`")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A cursor: code points before it in the document `uri`, and the windows of text on both sides."""

    uri: str
    offset: int
    prefix: str
    suffix: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was offered at a place, and whether it was asked for."""

    place: Place
    insertions: tuple[Insertion, ...]
    explicit: bool


class Cache:
    """The last completions, newest first."""

    def __init__(self, length: int = LENGTH) -> None:
        self._entries: deque[Entry] = deque(maxlen=length)

    def add(self, entry: Entry) -> None:
        self._entries.appendleft(entry)

    def clear(self) -> None:
        self._entries.clear()

    def find(self, place: Place, *, explicit: bool) -> tuple[Insertion, ...]:
        """What is left of an earlier completion at this place; empty if there is none.

        An explicit request asks for several candidates: only the answer to an explicit one will do.
        """
        for entry in self._entries:
            if entry.place.uri != place.uri or (explicit and not entry.explicit):
                continue
            found = tuple(rest for item in entry.insertions if (rest := _rest(entry.place, item, place)))
            if found:
                return found
        return ()


def _rest(made_for: Place, item: Insertion, now: Place) -> Insertion | None:
    """What is left of `item` once the cursor has come from one place to the other, or None if it no longer fits."""
    closed = _closed(made_for.suffix, now.suffix)
    if closed is None:
        return None
    # Typed by hand: what the item replaces is still there. A part accepted: it has been replaced already.
    for before in {item.before, 0}:
        typed = _typed(made_for, item.before - before, now)
        if typed is None or len(typed) >= len(item.text) or not item.text.startswith(typed):
            continue
        text = item.text[len(typed) :]
        written = iter(text)
        if not all(char in written for char in closed):
            continue  # The item would not write again what the editor has closed.
        after = item.after + len(closed)
        return (
            replace(item, before=before + len(typed), after=after)
            if before
            else replace(item, text=text, before=0, after=after)
        )
    return None


def _typed(made_for: Place, removed: int, now: Place) -> str | None:
    """What was typed since, after the last `removed` characters had gone; None if the text before differs."""
    count = now.offset - (made_for.offset - removed)
    if not 0 <= count <= len(now.prefix):
        return None
    old = made_for.prefix[: len(made_for.prefix) - removed]
    head, typed = now.prefix[: len(now.prefix) - count], now.prefix[len(now.prefix) - count :]
    return typed if head.endswith(old) or old.endswith(head) else None


def _closed(old: str, new: str) -> str | None:
    """The brackets and quotes that an editor has put before the old suffix while typing, or None if more differs."""
    for count in range(MAX_CLOSED + 1):
        closed, rest = new[:count], new[count:]
        if not CLOSERS.issuperset(closed):
            return None
        if rest == old or (count and len(rest) > 500 and old.startswith(rest)):
            return closed
    return None
