"""What a request may know beside its own document: values only, made by whoever knows what is open."""

from __future__ import annotations

from dataclasses import dataclass

from lsp_server.documents import Document


@dataclass(frozen=True, kw_only=True)
class OpenFile:
    """A document that is open or was looked at recently. `path` as the model sees it."""

    path: str
    document: Document


@dataclass(frozen=True, kw_only=True)
class EditedLines:
    """Lines [first, last] of a document that were changed lately."""

    document: Document
    path: str
    first: int
    last: int

    @property
    def text(self) -> str:
        return "".join(self.document.lines[self.first : self.last + 1])


@dataclass(frozen=True, kw_only=True)
class Around:
    """`refusal`: why the document may not be completed, or "". `lead`: earlier notebook cells as one text that stands
    before the document. `files`: the last looked at first. `edits`: the newest first. Nothing of a document that is
    secret, ignored or beyond the limits is in here."""

    refusal: str = ""
    lead: str = ""
    files: tuple[OpenFile, ...] = ()
    edits: tuple[EditedLines, ...] = ()
