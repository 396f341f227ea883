"""Where a stretch of an open document is now: it moves with what is changed outside of it, and is lost as soon as
something in it changes.

Knows documents and offsets in code points; neither LSP nor what the stretches are for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from lsp_server.documents import Document
from lsp_server.hunks import common

Span = tuple[int, int]

CHANGED = "the selection was changed meanwhile"
CLOSED = "the document was closed meanwhile"


@dataclass(eq=False, kw_only=True)
class Anchor:
    """The code points `start` to `end` of a document, as it is now. `lost`: why it is nowhere any more, or ""."""

    start: int
    end: int
    lost: str = ""

    def changed(self, span: Span, length: int) -> None:
        """`length` code points have taken the place of `span`. What only touches the stretch is outside of it."""
        if span[1] <= self.start:
            moved = length - (span[1] - span[0])
            self.start, self.end = self.start + moved, self.end + moved
        elif span[0] < self.end:
            self.lost = self.lost or CHANGED


@dataclass(kw_only=True)
class Anchors:
    """The anchors that somebody holds, by document."""

    _held: dict[str, list[Anchor]] = field(default_factory=dict)

    @contextlib.contextmanager
    def held(self, uri: str, start: int, end: int) -> Iterator[Anchor]:
        """An anchor that is kept up to date until the block is left."""
        anchor = Anchor(start=start, end=end)
        self._held.setdefault(uri, []).append(anchor)
        try:
            yield anchor
        finally:
            self._held[uri].remove(anchor)
            if not self._held[uri]:
                del self._held[uri]

    def wanted(self, uri: str) -> bool:
        return uri in self._held

    def changed(self, before: Document, after: Document, span: Span | None, length: int) -> None:
        """`length` code points have taken the place of `span` in `before`; None: of the whole text. A span that does
        not account for the change (it cut a character in two) counts as the whole text, too."""
        if span is None or len(after.text) - len(before.text) != length - (span[1] - span[0]):
            spans = _differing(before.text, after.text)
        else:
            spans = (span, length), (span, length)
        for anchor in self._held.get(before.uri, ()):
            early, late = spans
            # A repeated text can be told in two ways; only what both say is certain.
            other = Anchor(start=anchor.start, end=anchor.end, lost=anchor.lost)
            anchor.changed(*early)
            other.changed(*late)
            if (anchor.start, anchor.lost) != (other.start, other.lost):
                anchor.lost = anchor.lost or CHANGED

    def gone(self, uri: str) -> None:
        """The document has been closed, or has another name now."""
        for anchor in self._held.get(uri, ()):
            anchor.lost = anchor.lost or CLOSED


def _differing(old: str, new: str) -> tuple[tuple[Span, int], tuple[Span, int]]:
    """What of `old` has been replaced by how much, told as early and as late in the text as can be."""
    head = common(old, new)
    tail = common(old[::-1], new[::-1])
    if head == len(old) == len(new):
        return ((0, 0), 0), ((0, 0), 0)
    shorter = min(len(old), len(new))
    late_tail, early_head = min(tail, shorter - head), min(head, shorter - tail)
    early = (early_head, len(old) - tail), len(new) - tail - early_head
    late = (head, len(old) - late_tail), len(new) - late_tail - head
    return early, late
