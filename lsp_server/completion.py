"""The pipeline of a completion: cache -> debounce -> context -> engine -> filters -> insertions. Read `complete` first.

Knows documents, the engine interface and the settings; no LSP types. Whatever fails is an empty answer and an entry in
the journal, never an exception.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from diffusion.api import Draft, EngineError, Failure, FillRequest, Result
from grammars.parser import ParsedDocument
from lsp_server import filters
from lsp_server.cache import Cache, Entry, Place
from lsp_server.context import Budget, Nothing, build_request, parse, window
from lsp_server.documents import Document
from lsp_server.engines import WatchedEngine
from lsp_server.insertion import Insertion
from lsp_server.journal import Decision, Journal, Outcome
from lsp_server.settings import Settings

PARSED_DOCUMENTS = 8
"""So many syntax trees are kept, of the documents used last."""

EXPLICIT_CANDIDATES = 3
EXPLICIT_PATIENCE = 4
"""An explicit request may take so many times the deadline of an automatic one."""


@dataclass(frozen=True, kw_only=True)
class Selected:
    """The entry selected in the editor's menu: `text` would replace the document from `start` to `end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request of an editor: a document as it was then, and an offset in code points."""

    id: str
    document: Document
    offset: int
    path: str = ""
    explicit: bool = False
    selected: Selected | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What becomes of a request, and why."""

    insertions: tuple[Insertion, ...] = ()
    outcome: Outcome = "nothing"
    reason: str


class Listener(Protocol):
    """Who wants to know what the pipeline is doing."""

    def working(self, change: int) -> None:
        """One generation more (+1) or less (-1) is under way."""

    def draft(self, ask_id: str, text: str) -> None:
        """The middle as it is after a denoising step."""

    def answered(self, answer: Result | Failure) -> None:
        """The engine has answered, or failed."""


@dataclass(kw_only=True)
class Completer:
    """Completions for the open documents of one editor. `is_current` says whether a document is still as it was."""

    engine: Callable[[], WatchedEngine]
    listener: Listener
    is_current: Callable[[Document], bool]
    client: str = ""
    settings: Settings = field(default_factory=Settings)
    cache: Cache = field(default_factory=Cache)
    journal: Journal = field(default_factory=Journal)
    _running: dict[str, asyncio.Task[Offer]] = field(default_factory=dict)
    _syntax: dict[str, tuple[str, ParsedDocument]] = field(default_factory=dict)

    async def complete(self, ask: Ask) -> tuple[Insertion, ...]:
        """What to offer at a place: nothing, one insertion, or several if asked for explicitly."""
        started = time.monotonic()
        offer = Offer(outcome="dropped", reason="cancelled by the editor")
        try:
            offer = await self._offer(ask)
            return offer.insertions
        finally:
            self.journal.add(
                Decision(
                    uri=ask.document.uri,
                    line=ask.document.position_at(ask.offset, "utf-32")[0] + 1,
                    explicit=ask.explicit,
                    outcome=offer.outcome,
                    reason=offer.reason,
                    ms=(time.monotonic() - started) * 1000,
                )
            )

    async def _offer(self, ask: Ask) -> Offer:
        if reason := self._unwanted(ask):
            return Offer(reason=reason)
        text, offset = _with_selected(ask)
        seen = window(text, offset, self._budget())
        place = Place(uri=ask.document.uri, offset=offset, prefix=seen.prefix, suffix=seen.suffix)
        if found := self.cache.find(place, explicit=ask.explicit):
            offer = Offer(insertions=found, outcome="shown", reason="continues an earlier completion")
        else:
            offer = await self._newest(ask.document.uri, self._generate(ask, text, place))
        return _on_top_of(ask, offer)

    def _unwanted(self, ask: Ask) -> str:
        """Why nothing may be offered here, or an empty string."""
        if not self.settings.enabled:
            return "completion is switched off (setting enabled)"
        if not ask.explicit and ask.document.language in self.settings.disabled_languages:
            return f"switched off while typing in {ask.document.language} (setting disabledLanguages)"
        return ""

    async def _newest(self, uri: str, work: Coroutine[Any, Any, Offer]) -> Offer:
        """Run `work` as the only one of its document: what ran before is cancelled and ends with an empty answer."""
        previous = self._running.get(uri)

        async def after_previous() -> Offer:
            if previous:
                previous.cancel()
                await asyncio.wait({previous})
            return await work

        task = self._running[uri] = asyncio.create_task(after_previous())
        try:
            return await task
        except asyncio.CancelledError:
            if cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():
                raise  # the editor has cancelled this very request
            return Offer(outcome="dropped", reason="a newer request took its place")
        finally:
            work.close()
            if self._running.get(uri) is task:
                del self._running[uri]

    async def _generate(self, ask: Ask, text: str, place: Place) -> Offer:
        if not ask.explicit:
            await asyncio.sleep(self.settings.debounce_ms / 1000)
        request = build_request(
            self._parsed(ask, text),
            place.offset,
            language=ask.document.language,
            path=ask.path,
            budget=self._budget(),
            explicit=ask.explicit,
            request_id=ask.id,
            client=self.client,
            n=EXPLICIT_CANDIDATES if ask.explicit else 1,
            deadline_ms=self.settings.deadline_ms * (EXPLICIT_PATIENCE if ask.explicit else 1),
            drafts=self.settings.drafts,
        )
        if isinstance(request, Nothing):
            return Offer(reason=request.reason)
        answer = await self._ask_engine(ask, request)
        self.listener.answered(answer)
        if isinstance(answer, Failure):
            return Offer(outcome="failed", reason=f"{answer.message} {answer.hint}".strip())
        if not self.is_current(ask.document):
            return Offer(outcome="dropped", reason="the document has changed since")
        offer = self._filtered(ask, request, answer)
        if offer.insertions:
            self.cache.add(Entry(place=place, insertions=offer.insertions, explicit=ask.explicit))
        return offer

    async def _ask_engine(self, ask: Ask, request: FillRequest) -> Result | Failure:
        """One fill, to its end. Being cancelled closes the stream, which cancels the fill."""
        self.listener.working(+1)
        try:
            async with aclosing(self.engine().fill(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    if not isinstance(event, Draft):
                        return event
                    self.listener.draft(ask.id, event.text)
            return Failure(code="internal", message="the engine ended the answer early")
        except EngineError as error:
            return error.as_failure()
        finally:
            self.listener.working(-1)

    def _filtered(self, ask: Ask, request: FillRequest, result: Result) -> Offer:
        """The candidates that are fit to be shown, best first, without doubles."""
        insertions: dict[str, Insertion] = {}
        reason = "the model has nothing to say here"
        for candidate in result.candidates:
            confidence = candidate.confidence
            if not ask.explicit and confidence is not None and confidence < self.settings.min_confidence:
                reason = f"low confidence: {confidence:.2f} (setting minConfidence: {self.settings.min_confidence:.2f})"
                continue
            made = filters.insertion(candidate, request)
            if isinstance(made, filters.Rejected):
                reason = f"filtered: {made.reason}"
                continue
            insertions.setdefault(made.applied(request.prefix, request.suffix), made)
        if not insertions:
            return Offer(reason=reason)
        shown = tuple(insertions.values())
        return Offer(
            insertions=shown if ask.explicit else shown[:1],
            outcome="shown",
            reason=f"from {result.model or 'the model'}",
        )

    def _parsed(self, ask: Ask, text: str) -> ParsedDocument:
        """The syntax of a document, brought up to date from the last time that a request needed it."""
        uri = ask.document.uri
        kept = self._syntax.pop(uri, None)
        if kept is None or kept[0] != ask.document.language:
            kept = (ask.document.language, parse(text, ask.document.language, ask.path))
        kept[1].update(text)
        self._syntax[uri] = kept
        while len(self._syntax) > PARSED_DOCUMENTS:
            del self._syntax[next(iter(self._syntax))]
        return kept[1]

    def _budget(self) -> Budget:
        settings = self.settings
        return Budget(
            prefix_chars=settings.prefix_chars, suffix_chars=settings.suffix_chars, max_lines=settings.max_lines
        )


def _with_selected(ask: Ask) -> tuple[str, int]:
    """The text to complete: as if the entry selected in the menu had been accepted."""
    if ask.selected is None:
        return ask.document.text, ask.offset
    text, selected = ask.document.text, ask.selected
    return text[: selected.start] + selected.text + text[selected.end :], selected.start + len(selected.text)


def _on_top_of(ask: Ask, offer: Offer) -> Offer:
    """The same offer for the document as it is: with the selected entry's text and range in front."""
    if ask.selected is None or not offer.insertions:
        return offer
    selected = ask.selected
    kept = tuple(
        replace(
            item,
            text=selected.text + item.text,
            before=ask.offset - selected.start,
            after=selected.end - ask.offset + item.after,
        )
        for item in offer.insertions
        if item.before == 0
    )
    if not kept:
        return Offer(reason="it would change the entry that is selected in the menu")
    return replace(offer, insertions=kept)
