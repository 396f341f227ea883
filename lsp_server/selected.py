"""Completing what the editor's menu has selected: the pipeline sees the text as if that entry had been accepted.

The insertion then gets the entry in front: it starts with the selected text and keeps its range, or there is none.
Knows texts and offsets in code points only.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lsp_server.insertion import Insertion


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The selected entry: `text` would replace the document from `start` to `end`."""

    start: int
    end: int
    text: str

    def fits(self, text: str, offset: int) -> bool:
        """Whether an insertion at `offset` can cover what the entry replaces: on one line, around the cursor."""
        return self.start <= offset <= self.end and not {"\r", "\n"} & set(text[self.start : self.end])

    def accepted(self, text: str) -> tuple[str, int]:
        """The text with the entry in it, and the offset behind the entry."""
        return text[: self.start] + self.text + text[self.end :], self.start + len(self.text)

    def in_front_of(self, insertions: Iterable[Insertion], offset: int) -> tuple[Insertion, ...]:
        """The insertions for the text as it is. Those that would change the entry are left out."""
        return tuple(
            replace(
                item,
                text=self.text + item.text,
                before=offset - self.start,
                after=self.end - offset + item.after,
            )
            for item in insertions
            if item.before == 0
        )
