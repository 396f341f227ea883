"""What the editor has open and has had open: documents, notebooks, edits; and which of it may be shown to a model.

Knows documents, the workspace's folders and the rules of secrets.py, ignored.py and limits.py; no LSP types and no
pipeline.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from lsp_server import limits, secrets
from lsp_server.context import Around, EditedLines, OpenFile
from lsp_server.documents import Document
from lsp_server.history import History
from lsp_server.ignored import Ignored

MAX_CLOSED = 4
"""So many closed documents are remembered as recently viewed."""
MAX_FILES = 8
"""So many other documents are looked at for context."""
MAX_CONTEXT_FILE = 200_000
"""Code points; a larger document serves no other one as context."""
CELL_GAP = "\n\n"
RULES_SECONDS = 2.0
"""How long at most a change of .gitignore and the like goes unnoticed that nobody has told us of."""
ON_DISK = ("file", "vscode-notebook-cell")
"""The schemes whose paths are those of files on this machine."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of a notebook; `code` is false for prose."""

    uri: str
    code: bool


@dataclass(frozen=True, kw_only=True)
class _Checked:
    """Why a version of a document is left alone, or "", where it may have `limit` characters. `suspicious`: something
    like a secret stands in it."""

    document: Document
    limit: int
    reason: str
    suspicious: bool


@dataclass(kw_only=True)
class Files:
    """All documents of one editor. `folders`: URIs of the workspace folders, now. `max_chars`: how large a document may
    be, now. `opened` is told of every new document, `changed` of every new version, `gone` of documents that have been
    closed or have another name."""

    folders: Callable[[], Iterable[str]] = tuple
    max_chars: Callable[[], int] = lambda: 1_000_000
    opened: Callable[[str], None] = lambda uri: None
    changed: Callable[[Document], None] = lambda document: None
    gone: Callable[[str], None] = lambda uri: None
    documents: dict[str, Document] = field(default_factory=dict)
    history: History = field(default_factory=History)
    _notebooks: dict[str, tuple[Cell, ...]] = field(default_factory=dict)
    _notebook_of: dict[str, str] = field(default_factory=dict)
    _closed: dict[str, Document] = field(default_factory=dict)
    _viewed: dict[str, None] = field(default_factory=dict)
    _ignored: Ignored = field(default_factory=Ignored)
    _by_path: dict[str, str] = field(default_factory=dict)
    _by_path_since: float = 0.0
    _by_content: dict[str, _Checked] = field(default_factory=dict)

    # --- what happens -----------------------------------------------------------------------------------------------

    def open(self, document: Document) -> None:
        # Whoever renames a file closes it and opens it under its new name: that is one document, not two.
        same = [uri for uri, closed in self._closed.items() if uri == document.uri or closed.text == document.text]
        for uri in same:
            del self._closed[uri]
            self.history.renamed(uri, document.uri)
        self.documents[document.uri] = document
        self._view(document.uri)
        self.opened(document.uri)

    def change(self, document: Document) -> None:
        """`document` is the new version of one that is open."""
        old, self.documents[document.uri] = self.documents[document.uri], document
        if span := self.history.changed(old, document):
            self._still_harmless(old, document, document.lines[max(0, span[0] - 1) : span[2] + 1])
        self._view(document.uri)
        self.changed(document)

    def close(self, uri: str) -> None:
        document = self.documents.pop(uri, None)
        self._viewed.pop(uri, None)
        if document is None:
            return
        self.gone(uri)
        refused = self.refusal(document)
        self._by_content.pop(uri, None)
        if refused or uri in self._notebook_of or len(document.text) > MAX_CONTEXT_FILE:
            self.history.forget(uri)
            return
        self._closed[uri] = document
        while len(self._closed) > MAX_CLOSED:
            oldest = next(iter(self._closed))
            del self._closed[oldest]
            self.history.forget(oldest)

    def rename(self, old: str, new: str) -> None:
        """A file, or a folder with all that is in it, has another name now. The editor may have said so already by
        closing and opening, or may do so later."""
        for uri in (*self.documents, *self._closed):
            if uri != old and not uri.startswith(f"{old}/"):
                continue
            now = new + uri[len(old) :]
            self.history.renamed(uri, now)
            self._by_content.pop(uri, None)
            self.gone(uri)
            closed = self._closed.pop(uri, None)
            if document := self.documents.pop(uri, None):
                self._viewed.pop(uri, None)
                if now not in self.documents:
                    self.documents[now] = replace(document, uri=now)
                    self._view(now)
                    self.opened(now)
            elif closed and now not in self.documents:
                self._closed[now] = replace(closed, uri=now)

    def rules_changed(self) -> None:
        """What is secret or ignored may have changed: a file was saved, a folder came or went."""
        self._by_path.clear()
        self._by_path_since = time.monotonic()

    def set_notebook(self, uri: str, cells: Iterable[Cell]) -> None:
        """The cells of an open notebook, in its order."""
        self.drop_notebook(uri)
        self._notebooks[uri] = tuple(cells)
        self._notebook_of |= {cell.uri: uri for cell in self._notebooks[uri]}

    def drop_notebook(self, uri: str) -> tuple[Cell, ...]:
        """Forget a notebook. Its cells, which are returned, are still open documents."""
        cells = self._notebooks.pop(uri, ())
        for cell in cells:
            self._notebook_of.pop(cell.uri, None)
        return cells

    def cells(self, uri: str) -> tuple[Cell, ...]:
        """The cells of the notebook `uri`; none if it is not open."""
        return self._notebooks.get(uri, ())

    # --- what may be known ------------------------------------------------------------------------------------------

    def shown_path(self, uri: str) -> str:
        """The path of a document as the model sees it: relative to the workspace folder that holds it, the innermost
        if several do, or only the name."""
        path = path_of(uri)
        inside = [root for folder in self.folders() if path.startswith(root := path_of(folder).rstrip("/") + "/")]
        longest = max((root for root in inside if len(root) > 1), key=len, default="")
        return path[len(longest) :] if longest else path.rsplit("/", 1)[-1]

    def refusal(self, document: Document) -> str:
        """Why a document is neither completed nor shown to a model, or ""."""
        reason = self._path_reason(document.uri) or self._content_reason(document)
        return f"left alone: {reason}" if reason else ""

    def around(self, document: Document) -> Around:
        """What a request in `document` may know beside it."""
        if refusal := self.refusal(document):
            return Around(refusal=refusal)
        self._view(document.uri)
        return Around(lead=self._lead(document), files=self._files(document), edits=self._edits())

    def _lead(self, document: Document) -> str:
        """The code cells of the same language that stand before this one."""
        texts = []
        for cell in self._notebooks.get(self._notebook_of.get(document.uri, ""), ()):
            if cell.uri == document.uri:
                break
            earlier = self.documents.get(cell.uri)
            if cell.code and earlier and earlier.language == document.language and not self.refusal(earlier):
                texts.append(earlier.text.strip("\n") + CELL_GAP)
        return "".join(texts)

    def _files(self, document: Document) -> tuple[OpenFile, ...]:
        """Other documents, the last viewed first. Cells only serve their own notebook."""
        found: list[OpenFile] = []
        viewed = (self.documents[uri] for uri in reversed(self._viewed) if uri in self.documents)
        for other in (*viewed, *reversed(self._closed.values())):
            if other.uri != document.uri and other.uri not in self._notebook_of and self._serves(other):
                found.append(OpenFile(path=self.shown_path(other.uri), document=other))
                if len(found) == MAX_FILES:
                    break
        return tuple(found)

    def _edits(self) -> tuple[EditedLines, ...]:
        edits = []
        for edit in self.history.newest_first():
            document = self.documents.get(edit.uri) or self._closed.get(edit.uri)
            if document and self._serves(document):
                path = self.shown_path(edit.uri)
                edits.append(EditedLines(document=document, path=path, first=edit.first, last=edit.last))
        return tuple(edits)

    def _serves(self, document: Document) -> bool:
        return len(document.text) <= MAX_CONTEXT_FILE and not self.refusal(document)

    def _path_reason(self, uri: str) -> str:
        """The answer is kept for a moment, or until `rules_changed`: it takes many looks at the disk."""
        if time.monotonic() - self._by_path_since > RULES_SECONDS:
            self.rules_changed()
        if uri not in self._by_path:
            self._by_path[uri] = self._path_reason_now(uri)
        return self._by_path[uri]

    def _path_reason_now(self, uri: str) -> str:
        path = path_of(uri)
        if reason := secrets.by_name(path) or limits.by_name(path):
            return reason
        on_disk = _on_disk(uri)
        if on_disk is None:
            return ""
        roots = tuple(root for folder in self.folders() if (root := _on_disk(folder)))
        if reason := self._ignored.reason(on_disk, roots):
            return reason
        real = _resolved(on_disk)  # A link is what it leads to.
        return secrets.by_name(real.as_posix()) or self._ignored.reason(real, roots) if real != on_disk else ""

    def _content_reason(self, document: Document) -> str:
        """The answer for a version of a document is kept until there is another one."""
        limit = self.max_chars()
        kept = self._by_content.get(document.uri)
        if kept and kept.document is document and kept.limit == limit:
            return kept.reason
        text = document.text
        reason = secrets.by_content(text, document.language) or limits.by_content(document.lines, text, limit)
        if document.uri in self.documents or document.uri in self._closed:
            suspicious = secrets.may_begin(text)
            self._by_content[document.uri] = _Checked(
                document=document, limit=limit, reason=reason, suspicious=suspicious
            )
        return reason

    def _still_harmless(self, old: Document, new: Document, changed: tuple[str, ...]) -> None:
        """Where nothing was wrong with a document, only what has changed in it is looked at, and its size."""
        kept = self._by_content.get(old.uri)
        if not kept or kept.document is not old or kept.reason or kept.suspicious or old.language != new.language:
            return
        if not secrets.may_begin("".join(changed)):
            reason = limits.by_content(new.lines, new.text, kept.limit, changed)
            self._by_content[new.uri] = replace(kept, document=new, reason=reason)

    def _view(self, uri: str) -> None:
        """It is the document viewed last."""
        self._viewed.pop(uri, None)
        self._viewed[uri] = None


def path_of(uri: str) -> str:
    """The path within any URI, whatever its scheme; a text that is no URI is its own path."""
    return unquote(re.sub(r"^[A-Za-z][\w+.-]+:(?://[^/?#]*)?|[?#].*$", "", uri))


def _on_disk(uri: str) -> Path | None:
    """The path of a file on this machine, or None for what lies elsewhere."""
    path = path_of(uri)
    if uri.partition(":")[0] not in ON_DISK or not path.startswith("/") or "\0" in path:
        return None
    return Path(path[1:] if re.match(r"/[A-Za-z]:(/|$)", path) else path)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # a loop of links
        return path
