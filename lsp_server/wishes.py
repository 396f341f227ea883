"""A selection that is to be written anew: what the engine is asked for, and what its answer makes of the selection.

With an instruction the model sees the selection and writes another one. Without, the selection is left out: a fill.
Neither has a deadline: half of an edit is of no use, and who has selected something waits for it, or cancels.
Knows documents, settings and requests; not who answers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from diffusion.api import Candidate, EditRequest, FillRequest, Mode
from lsp_server import filters
from lsp_server.completion import Ask
from lsp_server.context import Budget, Nothing, build_request, parse, sources_of, window
from lsp_server.documents import split_lines, without_surrogates
from lsp_server.rewriting import Place, rewritten
from lsp_server.settings import Settings

FILL_CANDIDATES = 4
MORE_LINES, MAX_LINES = 1.5, 200
"""So many times the lines of the selection may what fills it have, and so many at most."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """A selection to be written anew: from the offset of `ask` to `end`, in code points of its document. `instruction`
    None: it is filled. Another `seed`, another answer."""

    ask: Ask
    end: int
    instruction: str | None = None
    seed: int = 0

    @property
    def selected(self) -> str:
        return self.ask.document.text[self.ask.offset : self.end]

    @property
    def settings(self) -> Settings:
        return self.ask.settings or Settings()


@dataclass(frozen=True, kw_only=True)
class Work:
    """A request, and what becomes of the selection by a draft (None: nothing to be shown) and by a candidate."""

    request: FillRequest | EditRequest
    draft: Callable[[str], str | None]
    text: Callable[[Candidate], str | filters.Rejected]


def editing(wish: Wish, instruction: str, client: str, profile: str) -> Work | Nothing:
    """The work of an edit, for the model of a profile; the engine keeps what it has read under the name `client`."""
    document, budget = wish.ask.document, _budget(wish, profile)
    around = _request(wish, document.text or "\n", wish.ask.offset, budget)
    if isinstance(around, Nothing):
        return around
    after = window(document.text, wish.end, budget).suffix
    request = EditRequest(
        id=around.id,
        client=client,
        language=around.language,
        path=around.path,
        before=around.prefix,
        selected=without_surrogates(wish.selected),
        after=after,
        instruction=without_surrogates(instruction.strip()),
        context=around.context,
        seed=wish.seed,
        drafts=True,
    )
    place = Place(before=around.prefix, selected=wish.selected, after=after, language=document.language)

    def draft(text: str) -> str | None:
        made = rewritten(text, place)
        return None if isinstance(made, filters.Rejected) else made

    return Work(request=request, draft=draft, text=lambda candidate: rewritten(candidate.text, place))


def filling(wish: Wish, profile: str) -> Work | Nothing:
    """The work of a fill, or why there is nothing to fill. It has no client, so that typing does not end it."""
    text, start, selected = wish.ask.document.text, wish.ask.offset, wish.selected
    body = selected.lstrip(" \t")  # The indentation of the first line stays, and the end of the last one.
    masked = body.rstrip("\r\n")
    indent, kept, lines = selected[: -len(body)] if body else "", body[len(masked) :], len(split_lines(masked))
    begin = start + len(indent)
    request = _request(wish, text[:begin] + text[begin + len(masked) :], begin, _budget(wish, profile))
    if isinstance(request, Nothing):
        return Nothing(reason="nothing stands around the selection that it could be filled from")
    most = min(max(wish.settings.max_lines, math.ceil(lines * MORE_LINES)), MAX_LINES)
    mode: Mode = "block" if lines > 1 else "line"
    request = replace(request, mode=mode, max_lines=most if lines > 1 else 1, keep_indent=True)
    prefix, suffix = request.prefix, request.suffix

    def middle(candidate: Candidate) -> str | filters.Rejected:
        made = filters.insertion(candidate, request)
        if isinstance(made, filters.Rejected):
            return made
        applied = made.applied(prefix, suffix)
        if not (applied.startswith(prefix) and applied[len(prefix) :].endswith(suffix)):
            return filters.Rejected(reason="it would change what stands beside the selection")
        return indent + applied[len(prefix) : len(applied) - len(suffix)] + kept

    return Work(request=request, draft=lambda text: indent + text + kept, text=middle)


def _request(wish: Wish, text: str, offset: int, budget: Budget) -> FillRequest | Nothing:
    """The fill at `offset` of `text`, the document without what is filled."""
    ask = wish.ask
    lead = budget.lead(ask.around)
    return build_request(
        parse(lead + text, ask.document.language, ask.path),
        len(lead) + offset,
        language=ask.document.language,
        path=ask.path,
        budget=budget,
        around=ask.around,
        explicit=True,
        request_id=ask.id,
        n=FILL_CANDIDATES,
        seed=wish.seed,
        drafts=True,
    )


def _budget(wish: Wish, profile: str) -> Budget:
    settings = wish.settings
    return Budget(
        prefix_chars=settings.prefix_chars,
        suffix_chars=settings.suffix_chars,
        max_lines=settings.max_lines,
        sources=sources_of(settings.context_sources, profile),
    )
