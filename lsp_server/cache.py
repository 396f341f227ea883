"""Completions that were offered, found again while their text is typed, deleted or accepted in parts.

Knows the text around the cursor that a completion was made for; no documents, no model.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice, takewhile

from lsp_server.insertion import Insertion

LENGTH = 64
MAX_CLOSED = 3
CLOSERS = frozenset(")]}>\"'`")

STARTS = 3
"""Leftovers of earlier answers that a new generation starts from."""
LOOKED_AT = 4
"""Earlier answers that leftovers are taken from, the newest ones."""
RESYNC = 12
"""Typed characters that are looked for in an earlier answer at most, to find where it goes on."""
_WORD = re.compile(r"\w*")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A cursor: code points before it in the document `uri`, and the windows of text on both sides."""

    uri: str
    offset: int
    prefix: str
    suffix: str


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was offered at a place, and whether it was asked for. `middles`: what the model had to say there, also where
    nothing of it was good enough to be offered."""

    place: Place
    insertions: tuple[Insertion, ...] = ()
    explicit: bool = False
    middles: tuple[str, ...] = ()


class Cache:
    """The last completions, newest first."""

    def __init__(self, length: int = LENGTH, starts: int = STARTS) -> None:
        """`length`: answers that are remembered; `starts`: leftovers of them that a generation starts from."""
        self._starts = starts
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

    def leftovers(self, place: Place) -> tuple[str, ...]:
        """What may still be right of the last answers near this place, for a generation to start from."""
        near = islice((entry for entry in self._entries if entry.place.uri == place.uri), LOOKED_AT)
        found = (left for entry in near for middle in entry.middles for left in _leftovers(entry.place, middle, place))
        return tuple(islice(dict.fromkeys(left for left in found if left.strip()), self._starts))


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


def _leftovers(made_for: Place, middle: str, now: Place) -> Iterator[str]:
    """What may be left of a middle, likeliest first, once the cursor has moved and something else was typed."""
    if _closed(made_for.suffix, now.suffix) is None:
        return
    gone = made_for.offset - now.offset
    if 0 < gone <= len(made_for.prefix):
        head, deleted = made_for.prefix[:-gone], made_for.prefix[-gone:]
        if head.endswith(now.prefix) or now.prefix.endswith(head):
            yield deleted + middle
        return
    typed = _typed(made_for, 0, now)
    if typed is None:
        return
    if middle.startswith(typed):
        yield middle[len(typed) :]
        return
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(typed, middle, strict=False)))
    for length in range(min(RESYNC, len(typed) - common), 0, -1):
        tail = typed[-length:]
        if (length > 1 or not tail.isalnum()) and (at := middle.find(tail, common)) >= 0:
            yield middle[at + length :]  # The answer goes on behind what has just been typed.
            return
    word = _WORD.match(middle, common)
    yield middle[word.end() if word else common :]  # Another word is being typed instead of that one.
