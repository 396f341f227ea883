"""What of all that is known goes into a request, source by source; chosen anew only when the cursor changes lines.

Typing on a line leaves the context as it is, to the letter: then the engine's key/value cache goes on being good. What
changes least comes first. Knows texts and spans; no documents on disk, no engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from diffusion.api import ContextItem
from grammars.lines import line_start
from grammars.syntax import Span, SyntaxContext
from lsp_server.context.around import Around, EditedLines, OpenFile
from lsp_server.context.budget import Budget
from lsp_server.context.chunks import Chunk, chunks_of, neighbourhood, resembling
from lsp_server.documents import Document, without_surrogates

MAX_EDIT = 400
"""Code points of one edit that are shown."""
CHUNKED_AT_ONCE = 2
"""So many documents at most are cut into chunks for one request: the others have their turn at the next line."""
CHUNKED_KEPT = 16


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """What was chosen for a line of which `before` and `after` are the text on both sides."""

    before: str
    after: str
    around: Around
    budget: Budget
    items: tuple[ContextItem, ...]

    def holds(self, text: str, around: Around, budget: Budget) -> bool:
        line_end = len(text) - len(self.after)
        return (
            budget == self.budget
            and _same(around, self.around)
            and len(self.before) <= line_end
            and text.startswith(self.before)
            and text.endswith(self.after)
            and text.find("\n", len(self.before), line_end) < 0
        )


@dataclass(kw_only=True)
class Chooser:
    """Remembers the last choice, and the chunks of the documents used last."""

    _last: _Choice | None = None
    _chunks: dict[str, tuple[Document, tuple[Chunk, ...]]] = field(default_factory=dict)

    def items(self, text: str, syntax: SyntaxContext, around: Around, budget: Budget) -> tuple[ContextItem, ...]:
        """The context of a request at `syntax.offset` of `text`."""
        start = text.rfind("\n", 0, syntax.offset) + 1
        if self._last and start == len(self._last.before) and self._last.holds(text, around, budget):
            return self._last.items
        end = text.find("\n", syntax.offset)
        end = len(text) if end < 0 else end
        before, after = text[:start], text[end:]
        shown = text[max(0, start - budget.prefix_chars) : end + budget.suffix_chars]
        items = (
            *_of_the_file(text, syntax, budget),
            *self._files(before, after, shown, around.files, budget),
            *_edits(shown, around.edits, budget),
        )
        self._last = _Choice(before=before, after=after, around=around, budget=budget, items=items)
        return items

    def forget(self, uri: str) -> None:
        """Nothing of a document is to be kept."""
        self._chunks.pop(uri, None)
        self._last = None

    def _files(
        self, before: str, after: str, shown: str, files: tuple[OpenFile, ...], budget: Budget
    ) -> Iterator[ContextItem]:
        if "files" not in budget.sources or not files:
            return
        chunked = self._chunked(files)
        for number, chunk in resembling(
            neighbourhood(before, after), [chunks for _, chunks in chunked], budget.files_chars, (shown,)
        ):
            yield ContextItem(kind="file", path=chunked[number][0], text=without_surrogates(chunk.text))

    def _chunked(self, files: tuple[OpenFile, ...]) -> list[tuple[str, tuple[Chunk, ...]]]:
        """Paths and chunks, by path: the order in which files were looked at must not show in a request."""
        found, fresh = [], 0
        for file in files:
            kept = self._chunks.pop(file.document.uri, None)
            if kept is None or kept[0] is not file.document:
                if fresh == CHUNKED_AT_ONCE:
                    continue
                fresh += 1
                kept = (file.document, chunks_of(file.document))
            self._chunks[file.document.uri] = kept
            found.append((without_surrogates(file.path), kept[1]))
        while len(self._chunks) > CHUNKED_KEPT:
            del self._chunks[next(iter(self._chunks))]
        return sorted(found, key=lambda entry: entry[0])


def _of_the_file(text: str, syntax: SyntaxContext, budget: Budget) -> Iterator[ContextItem]:
    """Imports, headers of the enclosing scopes, signatures of siblings, each in the order of the file, none twice.

    Whether the engine's window shows them already is for the engine to see. Where not all siblings fit, the nearest do.
    """
    left = budget.context_chars
    sent: set[str] = set()
    for source, kind, spans in (
        ("imports", "import", syntax.imports),
        ("signatures", "signature", syntax.scopes),
        ("signatures", "signature", syntax.siblings),
    ):
        fitting = []
        for span in spans if source in budget.sources else ():
            said = _with_indentation(text, span)
            if said not in sent and len(said) <= left:
                sent.add(said)
                left -= len(said)
                fitting.append((span.start, said))
        yield from (ContextItem(kind=kind, text=said) for _, said in sorted(fitting))


def _edits(shown: str, edits: tuple[EditedLines, ...], budget: Budget) -> Iterator[ContextItem]:
    """Lines that were changed lately and that the window does not show, the newest last."""
    left = budget.edits_chars if "edits" in budget.sources else 0
    chosen: list[ContextItem] = []
    for edit in edits:
        said = without_surrogates(edit.text[:MAX_EDIT]).strip("\r\n")
        if said.strip() and len(said) <= left and said not in shown and all(said != item.text for item in chosen):
            left -= len(said)
            chosen.append(ContextItem(kind="edit", path=without_surrogates(edit.path), text=said))
    yield from reversed(chosen)


def _with_indentation(text: str, span: Span) -> str:
    """A header as it stands in the file: how deep it is says what it belongs to."""
    lead = text[line_start(text, span.start) : span.start]
    return without_surrogates(span.text if lead.strip(" \t") else lead + span.text)


def _same(one: Around, other: Around) -> bool:
    """Whether nothing has changed elsewhere. A version of a document is one object; of edits only the documents are
    compared, since typing on the line makes some."""
    return (
        one.lead == other.lead
        and [id(file.document) for file in one.files] == [id(file.document) for file in other.files]
        and {edit.document.uri for edit in one.edits} == {edit.document.uri for edit in other.edits}
    )
