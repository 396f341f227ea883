"""Which part of a long text the parser gets to see: the beginning, with its imports, and what is around the cursor.

A parse after an edit costs something for every top-level node of the file. The far ones say nothing about the cursor,
so the parser sees blanks and line ends in their place: offsets and lines stay as they are. The text is only cut where a
top-level node begins, as a parse of the whole has shown. Knows offsets and bytes; no trees and no languages.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

LONG = 100_000  # a shorter text is always seen as a whole
HEAD = 16_384  # of the beginning: as far as imports are looked for
BEFORE, BEHIND = 24_576, 16_384  # of the cursor's neighbourhood
MARGIN = 10_000  # of it has to be left, further than siblings are looked for; else another part is chosen

_BLANK = bytes(byte if byte == 0x0A else 0x20 for byte in range(256))


@dataclass(frozen=True, kw_only=True, slots=True)
class Focus:
    """What is seen of a text of `size`: [0, head) and [low, high), each ending and beginning with a top-level node."""

    head: int
    low: int
    high: int
    size: int

    def near(self, offset: int) -> bool:
        """Whether enough is seen around `offset`."""
        before = not self.low or (self.low + MARGIN <= offset and self.head >= HEAD)
        return before and (self.high == self.size or offset <= self.high - MARGIN)

    def moved(self, start: int, old_end: int, new_end: int) -> Focus | None:
        """The same after a replacement inside of what is seen; None if it was elsewhere."""
        grown = new_end - old_end
        if (not self.low or self.low < start) and (self.high == self.size or old_end < self.high):
            return replace(self, high=self.high + grown, size=self.size + grown)
        if self.low and old_end < self.head:
            return Focus(head=self.head + grown, low=self.low + grown, high=self.high + grown, size=self.size + grown)
        return None

    def seen(self, data: bytes) -> bytes:
        """`data`, the whole text in bytes of one character each, with blanks for what is not seen."""
        return b"".join(
            (
                data[: self.head],
                data[self.head : self.low].translate(_BLANK),
                data[max(self.head, self.low) : self.high],
                data[self.high :].translate(_BLANK),
            )
        )


def choose(tops: Sequence[int], offset: int, size: int) -> Focus:
    """What to see around `offset`, where top-level nodes begin at `tops`, in order. All, if nothing can be cut."""
    before = bisect_right(tops, offset - BEFORE)
    behind = bisect_left(tops, offset + BEHIND)
    low = tops[before - 1] if before else 0
    high = tops[behind] if behind < len(tops) else size
    at = bisect_left(tops, HEAD)
    head = tops[at] if at < len(tops) else size
    return Focus(head=head, low=low, high=high, size=size) if head < low else Focus(head=0, low=0, high=high, size=size)
