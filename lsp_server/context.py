"""A text and an offset -> the FillRequest that the engine gets, within a budget; or the reason why there is none.

Knows text and syntax; no LSP, no settings object, no engine. `midfill complete` uses it as the server does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diffusion.api import ContextItem, FillRequest
from grammars import syntax
from grammars.languages import language_for
from grammars.lines import line_start
from grammars.parser import ParsedDocument
from lsp_server.documents import without_surrogates


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much goes into a request, in code points: text before and after the cursor, and imports and signatures of the
    file. `max_lines`: lines of an answer at most."""

    prefix_chars: int = 8_000
    suffix_chars: int = 4_000
    context_chars: int = 1_500
    max_lines: int = 12


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Why nothing can be completed at a place."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Window:
    """The text before and after a cursor that a request may hold, without lone surrogates."""

    prefix: str
    suffix: str


def parse(text: str, language: str, path: str = "") -> ParsedDocument:
    """A document for `build_request`. Worth keeping: its `update` costs less than parsing again."""
    return ParsedDocument(text, language_for(language, path))


def window(text: str, offset: int, budget: Budget) -> Window:
    """The window around `offset`, cut at line starts where there are any.

    Its start lies on a grid of half a window instead of sliding with every keystroke: what the engine has cached of
    the prefix stays useful.
    """
    start = 0
    if offset > budget.prefix_chars:
        half = budget.prefix_chars // 2
        start = ((offset - budget.prefix_chars) // half + 1) * half
        start = text.find("\n", start, offset) + 1 or start
    end = offset + budget.suffix_chars
    if end < len(text):
        end = text.rfind("\n", offset, end) + 1 or end
    return Window(prefix=without_surrogates(text[start:offset]), suffix=without_surrogates(text[offset:end]))


def build_request(
    document: ParsedDocument,
    offset: int,
    *,
    language: str,
    path: str = "",
    budget: Budget,
    explicit: bool = False,
    request_id: str = "",
    client: str = "",
    n: int = 1,
    deadline_ms: float | None = None,
    seed: int = 0,
    drafts: bool = False,
) -> FillRequest | Nothing:
    """The request for the middle at `offset` (code points) of a parsed document, or why there is none.

    `language` is the LSP language id, `path` is relative to the workspace; of it the file and its folder are shown to
    the model. An explicit request is made wherever there is any text. Raises BadRequest for numbers out of range.
    """
    if not document.text:
        return Nothing(reason="the document is empty")
    around = syntax.context(document, offset)
    if around.kind == "none" and not explicit:
        return Nothing(reason=around.reason)
    seen = window(document.text, around.offset, budget)
    block = around.kind == "block"
    return FillRequest(
        id=request_id,
        client=client,
        language=without_surrogates(language),
        path=without_surrogates("/".join(path.replace("\\", "/").split("/")[-2:])),
        prefix=seen.prefix,
        suffix=seen.suffix,
        context=tuple(_context(document.text, around, budget)),
        mode="block" if block else "line",
        max_lines=budget.max_lines if block else 1,
        n=n,
        deadline_ms=deadline_ms,
        seed=seed,
        drafts=drafts,
    )


def _context(text: str, around: syntax.SyntaxContext, budget: Budget) -> Iterator[ContextItem]:
    """Imports, headers of the enclosing scopes, signatures of siblings, each in the order of the file, none twice.

    Whether the engine's window shows them already is for the engine to see. Where not all siblings fit, the nearest do.
    """
    left = budget.context_chars
    sent: set[str] = set()
    for kind, spans in (("import", around.imports), ("signature", around.scopes), ("signature", around.siblings)):
        fitting = []
        for span in spans:
            said = _with_indentation(text, span)
            if said not in sent and len(said) <= left:
                sent.add(said)
                left -= len(said)
                fitting.append((span.start, said))
        yield from (ContextItem(kind=kind, text=said) for _, said in sorted(fitting))


def _with_indentation(text: str, span: syntax.Span) -> str:
    """A header as it stands in the file: how deep it is says what it belongs to."""
    lead = text[line_start(text, span.start) : span.start]
    return without_surrogates(span.text if lead.strip(" \t") else lead + span.text)
