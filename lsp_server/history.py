"""Where the user has edited lately: line numbers only, moved along with later edits, never a text.

So nothing of a document can linger here: who wants to know what was written there looks into the document. Knows
documents.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

from lsp_server.documents import Document

LENGTH = 24
MAX_LINES = 40
"""Lines of one edit; a larger one is a paste or a reformatting and says little."""
NEAR = 2
"""An edit so few lines from another one is part of it."""


@dataclass(frozen=True, kw_only=True)
class Touched:
    """Lines [first, last] of the document `uri`."""

    uri: str
    first: int
    last: int


@dataclass(kw_only=True)
class History:
    """The last edits, the newest last."""

    _edits: deque[Touched] = field(default_factory=lambda: deque(maxlen=LENGTH))

    def changed(self, old: Document, new: Document) -> tuple[int, int, int] | None:
        """A document has become another version of itself; which lines are others, as changed_lines says."""
        span = changed_lines(old.lines, new.lines)
        if span is None:
            return None
        first, old_end, new_end = span
        moved = new_end - old_end
        joined = Touched(uri=new.uri, first=first, last=max(first, new_end - 1))
        kept = []
        for edit in self._edits:
            if edit.uri != new.uri or edit.last < first - NEAR:
                kept.append(edit)
            elif edit.first >= old_end + NEAR:
                kept.append(replace(edit, first=edit.first + moved, last=edit.last + moved))
            else:
                last = max(joined.last, edit.last + moved)
                joined = replace(joined, first=min(joined.first, edit.first), last=min(last, len(new.lines) - 1))
        self._edits.clear()
        self._edits.extend(kept)
        if joined.last - joined.first < MAX_LINES:
            self._edits.append(joined)
        return span

    def newest_first(self) -> tuple[Touched, ...]:
        return tuple(reversed(self._edits))

    def renamed(self, old: str, new: str) -> None:
        self._keep([replace(edit, uri=new) if edit.uri == old else edit for edit in self._edits])

    def forget(self, uri: str) -> None:
        self._keep([edit for edit in self._edits if edit.uri != uri])

    def _keep(self, edits: list[Touched]) -> None:
        self._edits.clear()
        self._edits.extend(edits)


def changed_lines(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[int, int, int] | None:
    """The one replacement of lines between two versions: first line, end in `old`, end in `new`; None: no difference.

    By halving over slices, so that unchanged lines, which the versions share, are compared at the speed of C."""
    if old == new:
        return None
    first = _common(old, new, min(len(old), len(new)), from_end=False)
    tail = _common(old, new, min(len(old), len(new)) - first, from_end=True)
    return first, len(old) - tail, len(new) - tail


def _common(old: tuple[str, ...], new: tuple[str, ...], limit: int, *, from_end: bool) -> int:
    """How many lines the two have in common at the start, or at the end, at most `limit`."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if from_end:
            same = old[len(old) - middle : len(old) - low] == new[len(new) - middle : len(new) - low]
        else:
            same = old[low:middle] == new[low:middle]
        low, high = (middle, high) if same else (low, middle - 1)
    return low
