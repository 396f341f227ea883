"""The pipeline of a completion: cache -> debounce -> context -> engine -> filters -> insertions. Read `complete` first.

Knows documents, the engine interface and the settings; no LSP types. Whatever fails is an empty answer and an entry in
the journal, never an exception.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, cast

from diffusion.api import Draft, EngineError, Failure, FillRequest, Result
from grammars.parser import ParsedDocument
from lsp_server import filters, gates
from lsp_server.cache import Cache, Entry, Place
from lsp_server.context import Around, Budget, Chooser, Nothing, build_request, parse, sources_of, window
from lsp_server.documents import Document
from lsp_server.engines import WatchedEngine
from lsp_server.insertion import Insertion
from lsp_server.journal import Decision, Journal, Outcome, sentence
from lsp_server.selected import Selected
from lsp_server.settings import Settings

logger = logging.getLogger(__name__)

PARSED_DOCUMENTS = 8
"""So many syntax trees are kept, of the documents used last."""

EXPLICIT_CANDIDATES = 3
EXPLICIT_PATIENCE = 4
"""An explicit request may take so many times the deadline of an automatic one."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request of an editor: a document as it was then, an offset in code points, and what was around it."""

    id: str
    document: Document
    offset: int
    path: str = ""
    around: Around = field(default_factory=Around)
    explicit: bool = False
    selected: Selected | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What becomes of a request, and why."""

    insertions: tuple[Insertion, ...] = ()
    outcome: Outcome = "nothing"
    reason: str


OUTDATED = Offer(outcome="dropped", reason="the document has changed since")


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
    profile: str = "embedded"
    settings: Settings = field(default_factory=Settings)
    cache: Cache = field(default_factory=Cache)
    journal: Journal = field(default_factory=Journal)
    chooser: Chooser = field(default_factory=Chooser)
    _running: dict[str, asyncio.Task[Offer]] = field(default_factory=dict)
    _syntax: dict[str, tuple[str, ParsedDocument]] = field(default_factory=dict)

    async def complete(self, ask: Ask) -> tuple[Insertion, ...]:
        """What to offer at a place: nothing, one insertion, or several if asked for explicitly."""
        started = time.monotonic()
        offer = Offer(outcome="dropped", reason="cancelled by the editor")
        try:
            offer = await self._offer(ask)
        except Exception as error:  # The handler wrapper: a bug of ours must not reach the editor.
            logger.exception("completion failed")
            failure = Failure(code="internal", message=f"{type(error).__name__}: {error}", hint="please report this")
            self.listener.answered(failure)
            offer = Offer(outcome="failed", reason=sentence(failure))
        finally:
            line, _ = ask.document.position_at(ask.offset, "utf-32")
            self.journal.add(
                Decision(
                    uri=ask.document.uri,
                    line=line + 1,
                    explicit=ask.explicit,
                    outcome=offer.outcome,
                    reason=offer.reason,
                    ms=(time.monotonic() - started) * 1000,
                )
            )
        return offer.insertions if ask.explicit else offer.insertions[:1]

    async def _offer(self, ask: Ask) -> Offer:
        if reason := self._unwanted(ask):
            return Offer(reason=reason)
        if ask.selected is None:
            return await self._offer_at(ask, ask.document.text, ask.offset)
        offer = await self._offer_at(ask, *ask.selected.accepted(ask.document.text))
        kept = ask.selected.in_front_of(offer.insertions, ask.offset)
        if offer.insertions and not kept:
            return Offer(reason="it would change the entry that is selected in the menu")
        return replace(offer, insertions=kept)

    def _unwanted(self, ask: Ask) -> str:
        """Why nothing may be offered here, or an empty string."""
        closed = gates.document(self.settings, ask.document.language, ask.path, explicit=ask.explicit)
        if reason := closed or ask.around.refusal:
            return reason
        if ask.selected and not ask.selected.fits(ask.document.text, ask.offset):
            return "the entry that is selected in the menu belongs to another place"
        return ""

    async def _offer_at(self, ask: Ask, text: str, offset: int) -> Offer:
        """From the cache or from a generation, of which a document has one at most: the newest request wins."""
        uri = ask.document.uri
        previous = self._running.pop(uri, None)
        if previous:
            previous.cancel()
        seen = window(text, offset, self._budget())
        place = Place(uri=uri, offset=offset, prefix=seen.prefix, suffix=seen.suffix)
        if found := self.cache.find(place, explicit=ask.explicit):
            return Offer(insertions=found, outcome="shown", reason="continues an earlier completion")
        task = self._running[uri] = asyncio.create_task(self._generate(ask, text, place, previous))
        try:
            return await task
        except asyncio.CancelledError:
            if cast("asyncio.Task[Any]", asyncio.current_task()).cancelling():
                raise  # The editor has cancelled this very request.
            return Offer(outcome="dropped", reason="a newer request took its place")
        finally:
            if self._running.get(uri) is task:
                del self._running[uri]

    async def _generate(self, ask: Ask, text: str, place: Place, previous: asyncio.Task[Offer] | None) -> Offer:
        if previous:
            await asyncio.wait({previous})  # It ends within one denoising step.
        if not ask.explicit:
            await asyncio.sleep(self.settings.debounce_ms / 1000)
        if not self.is_current(ask.document):
            return OUTDATED
        budget = self._budget()
        lead = budget.lead(ask.around)
        request = build_request(
            self._parsed(ask, lead + text),
            len(lead) + place.offset,
            language=ask.document.language,
            path=ask.path,
            budget=budget,
            around=ask.around,
            chooser=self.chooser,
            gate=partial(gates.place, comments=self.settings.comments, strings=self.settings.strings),
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
            return Offer(outcome="failed", reason=sentence(answer))
        if not self.is_current(ask.document):
            return OUTDATED
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
        return Offer(
            insertions=tuple(insertions.values()), outcome="shown", reason=f"from {result.model or 'the model'}"
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
            prefix_chars=settings.prefix_chars,
            suffix_chars=settings.suffix_chars,
            max_lines=settings.max_lines,
            sources=sources_of(settings.context_sources, self.profile),
        )

    def forget(self, uri: str) -> None:
        """Keep nothing of a document that has been closed or renamed."""
        self._syntax.pop(uri, None)
        self.chooser.forget(uri)
