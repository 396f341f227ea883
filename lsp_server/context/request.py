"""The request for a place: the window around it, what kind of completion fits, and the context that was chosen.

Knows text and syntax; no LSP, no settings object, no engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from diffusion.api import FillRequest
from grammars import syntax
from grammars.languages import language_for
from grammars.parser import ParsedDocument
from lsp_server import gates
from lsp_server.context.around import Around
from lsp_server.context.budget import Budget
from lsp_server.context.choice import Chooser
from lsp_server.context.continuations import continuations
from lsp_server.documents import without_surrogates


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Why nothing can be completed at a place."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Window:
    """The text before and after a cursor that a request may hold, without lone surrogates."""

    prefix: str
    suffix: str


NOTHING_AROUND = Around()


def parse(text: str, language: str, path: str = "") -> ParsedDocument:
    """A document for `build_request`. Worth keeping: its `update` costs less than parsing again."""
    return ParsedDocument(text, language_for(language, path))


def window(text: str, offset: int, budget: Budget) -> Window:
    """The window around `offset`, cut at line starts where there are any.

    Its start lies on a grid of half a window instead of sliding with every keystroke, and its end, counted from that of
    the text, on a finer one, which a bracket that the editor closes seldom crosses: what the engine has cached stays
    useful.
    """
    start = _left_out(offset, budget.prefix_chars, budget.prefix_chars // 2)
    if start:
        start = text.find("\n", start, offset) + 1 or start
    behind = _left_out(len(text) - offset, budget.suffix_chars, budget.suffix_chars // 8)
    end = max(offset, len(text) - behind)
    if behind:
        end = text.rfind("\n", offset, end) + 1 or end
    return Window(prefix=without_surrogates(text[start:offset]), suffix=without_surrogates(text[offset:end]))


def _left_out(chars: int, budget: int, step: int) -> int:
    """How many of `chars` to leave out so that the others fit into `budget`: none, or whole steps."""
    step = max(1, step)
    return 0 if chars <= budget else ((chars - budget) // step + 1) * step


def build_request(
    document: ParsedDocument,
    offset: int,
    *,
    language: str,
    path: str = "",
    budget: Budget,
    around: Around = NOTHING_AROUND,
    chooser: Chooser | None = None,
    gate: Callable[[syntax.SyntaxContext], str] = gates.place,
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
    the model. `around` is what is known beside the document; a `chooser` that is kept keeps the context the same while
    a line is typed. `gate` says why nothing is wanted at a place; an explicit request is made wherever there is text.
    Raises BadRequest for numbers out of range.
    """
    if not document.text:
        return Nothing(reason="the document is empty")
    stands_in = syntax.context(document, offset)
    if not explicit and (reason := gate(stands_in)):
        return Nothing(reason=reason)
    seen = window(document.text, stands_in.offset, budget)
    block = stands_in.kind == "block"
    others = [file.document.text for file in around.files]
    lines = budget.lines if "lines" in budget.sources else 0
    guesses = continuations(document.text, stands_in.offset, others, lines)
    return FillRequest(
        id=request_id,
        client=client,
        language=without_surrogates(language),
        path=without_surrogates("/".join(path.replace("\\", "/").split("/")[-2:])),
        prefix=seen.prefix,
        suffix=seen.suffix,
        context=(chooser or Chooser()).items(document.text, stands_in, around, budget),
        mode="block" if block else "line",
        max_lines=budget.max_lines if block else 1,
        n=n,
        deadline_ms=deadline_ms,
        seed=seed,
        starts=tuple(map(without_surrogates, guesses)),
        likely=tuple(guess.likely for guess in guesses.values()),
        drafts=drafts,
    )
