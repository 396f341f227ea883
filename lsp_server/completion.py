"""The pipeline of a completion: cache -> debounce -> context -> engine -> filters -> insertions. Read `complete` first.

Knows documents, the engine interface and the settings; no LSP types. Whatever fails is an empty answer and an entry in
the journal, never an exception.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from diffusion.api import Cost, Decoding, Draft, EngineError, Failure, FillRequest, Finish, Result
from lsp_server import filters, gates
from lsp_server.cache import Cache, Entry, Place
from lsp_server.context import Around, Budget, Chooser, Nothing, build_request, sources_of, window
from lsp_server.debounce import Debounce
from lsp_server.documents import Document
from lsp_server.engines import WatchedEngine
from lsp_server.insertion import Insertion
from lsp_server.journal import Decision, Journal, Outcome, Source, sentence
from lsp_server.selected import Selected
from lsp_server.settings import Settings
from lsp_server.shown import Shown
from lsp_server.syntaxes import Syntaxes
from lsp_server.turns import Superseded, Turns

logger = logging.getLogger(__name__)

EXPLICIT_CANDIDATES = 3
EXPLICIT_PATIENCE = 4
"""An explicit request may take so many times the deadline of an automatic one."""


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request of an editor: a document as it was then, an offset in code points, and what was around it. `ahead`:
    nobody has asked yet, but somebody will. `settings`: those of the document, if it has such."""

    id: str
    document: Document
    offset: int
    path: str = ""
    around: Around = field(default_factory=Around)
    explicit: bool = False
    ahead: bool = False
    selected: Selected | None = None
    settings: Settings | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """What becomes of a request, and why; the other fields are those of a Decision (journal.py)."""

    insertions: tuple[Insertion, ...] = ()
    outcome: Outcome = "nothing"
    reason: str
    source: Source = ""
    gate: str = ""
    filter: str = ""
    confidence: float | None = None
    cost: Cost = field(default_factory=Cost)
    finish: Finish | None = None
    starts: int = 0
    shared: bool = False


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
    debounce: Debounce = field(default_factory=Debounce)
    shown: Shown = field(default_factory=Shown)
    decoding: Decoding = "diffusion"
    _turns: Turns[Offer] = field(default_factory=Turns)
    _syntaxes: Syntaxes = field(default_factory=Syntaxes)

    async def complete(self, ask: Ask) -> tuple[Insertion, ...]:
        """What to offer at a place: nothing, one insertion, or several if asked for explicitly."""
        started = time.monotonic()
        offer = Offer(outcome="dropped", reason="cancelled by the editor")
        try:
            offer = await self._offer(ask)
            if not self.is_current(ask.document):
                offer = replace(offer, insertions=(), outcome="dropped", reason=OUTDATED.reason)
        except Exception as error:  # The handler wrapper: a bug of ours must not reach the editor.
            logger.exception("completion failed")
            failure = Failure(code="internal", message=f"{type(error).__name__}: {error}", hint="please report this")
            self.listener.answered(failure)
            offer = Offer(outcome="failed", reason=sentence(failure))
        finally:
            self.journal.add(_decision(ask, offer, (time.monotonic() - started) * 1000))
        insertions = offer.insertions if ask.explicit else offer.insertions[:1]
        if insertions and not ask.ahead:
            self.shown.add(ask.document.uri, ask.document.text, ask.offset, insertions)
        return insertions

    async def _offer(self, ask: Ask) -> Offer:
        if refusal := self._unwanted(ask):
            return refusal
        if ask.selected is None:
            return await self._offer_at(ask, ask.document.text, ask.offset)
        offer = await self._offer_at(ask, *ask.selected.accepted(ask.document.text))
        kept = ask.selected.in_front_of(offer.insertions, ask.offset)
        if offer.insertions and not kept:
            reason = "it would change the entry that is selected in the menu"
            return replace(offer, insertions=(), outcome="nothing", gate="selected", reason=reason)
        return replace(offer, insertions=kept)

    def _unwanted(self, ask: Ask) -> Offer | None:
        """Why nothing may be offered here, if that is so."""
        if reason := gates.document(self._settings(ask), ask.document.language, ask.path, explicit=ask.explicit):
            return Offer(reason=reason, gate="settings")
        if ask.around.refusal:
            return Offer(reason=ask.around.refusal, gate="file")
        if ask.selected and not ask.selected.fits(ask.document.text, ask.offset):
            reason = "the entry that is selected in the menu belongs to another place"
            return Offer(reason=reason, gate="selected")
        return None

    async def _offer_at(self, ask: Ask, text: str, offset: int) -> Offer:
        """From the cache or from a generation, of which a document has one at most: the newest request wins."""
        uri, seen = ask.document.uri, window(text, offset, self._budget(ask))
        place = Place(uri=uri, offset=offset, prefix=seen.prefix, suffix=seen.suffix)
        if found := self.cache.find(place, explicit=ask.explicit):
            self._turns.stop(uri)
            return Offer(insertions=found, outcome="shown", reason="continues an earlier completion", source="cache")
        key = (id(ask.document), offset, text if ask.selected else "", ask.explicit)
        shared = self._turns.runs(uri, key)
        try:
            offer = await self._turns.take(uri, key, partial(self._generate, ask, text, place))
            return replace(offer, shared=True) if shared else offer
        except Superseded:
            return Offer(outcome="dropped", reason="a newer request took its place")

    async def _generate(self, ask: Ask, text: str, place: Place) -> Offer:
        if not ask.explicit and not ask.ahead:
            settings = self._settings(ask)
            await self.debounce.pause(most_ms=settings.debounce_ms, client_ms=settings.client_debounce_ms)
        if not self.is_current(ask.document):
            return OUTDATED
        request = self._request(ask, text, place)
        if isinstance(request, Nothing):
            return Offer(reason=request.reason, gate="place")
        answer = await self._ask_engine(ask, request)
        self.listener.answered(answer)
        if isinstance(answer, Failure):
            return Offer(outcome="failed", reason=sentence(answer), source="engine")
        if not self.is_current(ask.document):
            return replace(OUTDATED, source="engine", cost=answer.cost)
        offer = self._filtered(ask, request, answer)
        middles = tuple(candidate.text for candidate in answer.candidates if not candidate.replace_before)
        entry = Entry(place=place, insertions=offer.insertions, explicit=ask.explicit, middles=middles)
        self.cache.add(entry)
        return replace(offer, source="engine", cost=answer.cost, finish=answer.finish, starts=len(request.starts))

    def _request(self, ask: Ask, text: str, place: Place) -> FillRequest | Nothing:
        """What the engine is asked: the place in its context, and what is left of earlier answers there."""
        settings, budget = self._settings(ask), self._budget(ask)
        lead = budget.lead(ask.around)
        request = build_request(
            self._syntaxes.of(place.uri, lead + text, ask.document.language, ask.path),
            len(lead) + place.offset,
            language=ask.document.language,
            path=ask.path,
            budget=budget,
            around=ask.around,
            chooser=self.chooser,
            gate=partial(gates.place, comments=settings.comments, strings=settings.strings),
            explicit=ask.explicit,
            request_id=ask.id,
            client=self.client,
            n=EXPLICIT_CANDIDATES if ask.explicit else 1,
            deadline_ms=settings.deadline_ms * (EXPLICIT_PATIENCE if ask.explicit else 1),
            drafts=settings.drafts and not ask.ahead,
        )
        if isinstance(request, Nothing):
            return request
        leftovers = self.cache.leftovers(place)
        starts, likely = (*leftovers, *request.starts), (0.0,) * len(leftovers) + request.likely
        return replace(request, starts=starts, likely=likely, decoding=self.decoding)

    async def _ask_engine(self, ask: Ask, request: FillRequest) -> Result | Failure:
        """One fill, to its end. Being cancelled closes the stream, which cancels the fill."""
        self.listener.working(+1)
        started = time.monotonic()
        try:
            async with aclosing(self.engine().fill(request)) as events:  # type: ignore[type-var]
                async for event in events:
                    if not isinstance(event, Draft):
                        self.debounce.answered((time.monotonic() - started) * 1000)
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
        refused = Offer(reason="the model has nothing to say here", gate="model")
        least = gates.confidence(self._settings(ask).min_confidence, result.gate)
        for candidate in result.candidates:
            sure = candidate.confidence
            if not ask.explicit and sure is not None and sure < least:
                reason = f"low confidence: {sure:.2f} (setting minConfidence: {least:.2f})"
                refused = Offer(reason=reason, gate="confidence", confidence=sure)
                continue
            made = filters.insertion(candidate, request)
            if isinstance(made, filters.Rejected):
                refused = Offer(reason=f"filtered: {made.reason}", filter=made.filter, confidence=sure)
                continue
            applied = made.applied(request.prefix, request.suffix)
            insertions.setdefault(applied, replace(made, id=secrets.token_hex(8)))
        if not insertions:
            return refused
        return Offer(
            insertions=tuple(insertions.values()),
            outcome="shown",
            reason=f"from {result.model or 'the model'}",
            confidence=next(iter(insertions.values())).confidence,
        )

    def _settings(self, ask: Ask) -> Settings:
        return ask.settings or self.settings

    def _budget(self, ask: Ask) -> Budget:
        settings = self._settings(ask)
        return Budget(
            prefix_chars=settings.prefix_chars,
            suffix_chars=settings.suffix_chars,
            max_lines=settings.max_lines,
            sources=sources_of(settings.context_sources, self.profile),
        )

    def forget(self, uri: str) -> None:
        """Keep nothing of a document that has been closed or renamed."""
        self._syntaxes.forget(uri)
        self.shown.forget(uri)
        self.chooser.forget(uri)


def _decision(ask: Ask, offer: Offer, ms: float) -> Decision:
    """The journal's entry."""
    line, _ = ask.document.position_at(ask.offset, "utf-32")
    return Decision(
        uri=ask.document.uri,
        line=line + 1,
        explicit=ask.explicit,
        outcome="prefetched" if ask.ahead else offer.outcome,
        reason=offer.reason,
        ms=ms,
        source=offer.source,
        gate=offer.gate,
        filter=offer.filter,
        confidence=offer.confidence,
        forwards=offer.cost.forwards,
        encodes=offer.cost.encodes,
        engine_ms=offer.cost.ms,
        starts=offer.starts,
        shared=offer.shared,
        finish=offer.finish,
    )
