"""The pipeline of an edit: selection -> engine -> code -> the smallest change of the document as it is then.

Read `Editor.rewrite` first. With an instruction, the model writes the selection anew as it says; without one, the
selection is masked and filled again between what stands around it. Nothing outside of the selection changes; where the
document has changed meanwhile, the answer moves with the selection, or is refused. Knows documents, the engine
interface and the settings; no LSP types. Whatever fails is a refusal with a sentence and an entry in the journal.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Protocol

from diffusion.api import Cost, Draft, Engine, EngineError, Failure, FillRequest, Finish, Result
from lsp_server import filters, gates
from lsp_server.anchors import CHANGED, CLOSED, Anchor, Anchors
from lsp_server.context import Nothing
from lsp_server.documents import Document
from lsp_server.hunks import Hunk, hunks
from lsp_server.journal import Decision, Journal, Outcome, sentence
from lsp_server.wishes import Wish, Work, editing, filling

logger = logging.getLogger(__name__)

MAX_SELECTION = 10_000
"""Code points of a selection: no model here writes more at once."""
FILL_INSTEAD = "to have it written anew without an instruction, fill the selection"


@dataclass(frozen=True, kw_only=True)
class Rewrite:
    """`text` takes the place of the code points `start` to `end` of `document`; `changes` do the same, and no more.
    `result` is what the engine said."""

    document: Document
    start: int
    end: int
    text: str
    changes: tuple[Hunk, ...]
    result: Result


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """Why nothing is changed, in one sentence for the user. `fill`: the model cannot edit, but it can fill."""

    message: str
    outcome: Outcome = "nothing"
    gate: str = ""
    filter: str = ""
    fill: bool = False
    result: Result | None = None


class Listener(Protocol):
    """Who wants to know what the pipeline is doing."""

    def working(self, change: int) -> None:
        """One generation more (+1) or less (-1) is under way."""

    def answered(self, answer: Result | Failure) -> None:
        """The engine has answered. What it fails to edit is told by the refusal alone."""


OnDraft = Callable[[str], None]
CANCELLED = Refusal(outcome="dropped", message="cancelled by the editor")
OUTDATED = Refusal(outcome="dropped", message="the document has changed since the text was selected: ask again")
EMPTY: dict[Finish, str] = {
    "stop": "the model has nothing to say here",
    "length": "what the model writes there is too long for it: select less",
    "deadline": "the model was not done in time: select less",
    "superseded": "a newer request took its place",
}


@dataclass(kw_only=True)
class Editor:
    """Edits of the open documents of one editor. `current`: a document as it is now, None where it is not open;
    `anchors` follow what changes in them; `profile`: the model's, now."""

    engine: Callable[[], Engine]
    listener: Listener
    current: Callable[[str], Document | None]
    anchors: Anchors
    journal: Journal
    client: str = ""
    profile: Callable[[], str] = lambda: "embedded"

    async def rewrite(self, wish: Wish, on_draft: OnDraft = lambda text: None) -> Rewrite | Refusal:
        """What becomes of a selection. `on_draft` hears what it would be after each denoising step."""
        started = time.monotonic()
        said: Rewrite | Refusal = CANCELLED
        try:
            said = self._unwanted(wish) or await self._rewrite(wish, on_draft)
        except Exception as error:  # The handler wrapper: a bug of ours must not reach the editor.
            logger.exception("edit failed")
            failure = Failure(code="internal", message=f"{type(error).__name__}: {error}", hint="please report this")
            said = Refusal(outcome="failed", message=sentence(failure))
        finally:
            self.journal.add(_decision(wish, said, (time.monotonic() - started) * 1000))
        return said

    def _unwanted(self, wish: Wish) -> Refusal | None:
        """Why this is not done, if that is known at once."""
        ask, document = wish.ask, wish.ask.document
        if reason := gates.document(wish.settings, document.language, ask.path, explicit=True):
            return Refusal(message=reason, gate="settings")
        if ask.around.refusal:
            return Refusal(message=ask.around.refusal, gate="file")
        if self.current(document.uri) is not document:
            return OUTDATED
        if (size := wish.end - ask.offset) > MAX_SELECTION:
            return Refusal(
                message=f"the selection has {size:,} characters, and {MAX_SELECTION:,} is the most: select less"
            )
        if wish.instruction is not None and not wish.instruction.strip():
            return Refusal(message="the instruction is empty: say what is to change in the selection")
        return None

    async def _rewrite(self, wish: Wish, on_draft: OnDraft) -> Rewrite | Refusal:
        with self.anchors.held(wish.ask.document.uri, wish.ask.offset, wish.end) as anchor:
            work = self._work(wish)
            if isinstance(work, Nothing):
                return Refusal(message=work.reason, gate="place")
            answer = await self._ask_engine(work, on_draft)
        if isinstance(answer, Failure):
            more = f"; {FILL_INSTEAD}" if answer.code == "unsupported" else ""
            return Refusal(outcome="failed", message=sentence(answer) + more, fill=bool(more))
        self.listener.answered(answer)
        refused = Refusal(message=EMPTY[answer.finish], gate="model", result=answer)
        fitting: dict[str, None] = {}
        for candidate in answer.candidates:
            text = work.text(candidate)
            if isinstance(text, filters.Rejected):
                message = f"what the model wrote is of no use here: {text.reason}"
                refused = Refusal(message=message, filter=text.filter, result=answer)
            elif text == wish.selected:
                refused = Refusal(message="the model would leave the selection as it is", result=answer)
            else:
                fitting[text] = None
        if not fitting:
            return refused
        # Where a model is so sure that chance does not matter, another seed still gives another answer.
        return self._placed(wish, anchor, list(fitting)[wish.seed % len(fitting)], answer)

    def _work(self, wish: Wish) -> Work | Nothing:
        if wish.instruction is None:
            return filling(wish, self.profile())
        return editing(wish, wish.instruction, self.client, self.profile())

    def _placed(self, wish: Wish, anchor: Anchor, text: str, result: Result) -> Rewrite | Refusal:
        """The text where the selection is now."""
        document, start, end = self.current(wish.ask.document.uri), anchor.start, anchor.end
        if document is None or anchor.lost or document.text[start:end] != wish.selected:
            lost = anchor.lost or (CHANGED if document else CLOSED)
            return Refusal(outcome="dropped", message=f"{lost}, so nothing was changed: ask again", result=result)
        moved = (replace(hunk, start=start + hunk.start, end=start + hunk.end) for hunk in hunks(wish.selected, text))
        return Rewrite(document=document, start=start, end=end, text=text, changes=tuple(moved), result=result)

    async def _ask_engine(self, work: Work, on_draft: OnDraft) -> Result | Failure:
        """One request, to its end. Being cancelled closes the stream, which cancels it."""
        self.listener.working(+1)
        request = work.request
        try:
            engine = self.engine()
            stream = engine.fill(request) if isinstance(request, FillRequest) else engine.edit(request)
            async with aclosing(stream) as events:  # type: ignore[type-var]
                async for event in events:
                    if not isinstance(event, Draft):
                        return event
                    if (text := work.draft(event.text)) is not None:
                        on_draft(text)
            return Failure(code="internal", message="the engine ended the answer early")
        except EngineError as error:
            return error.as_failure()
        finally:
            self.listener.working(-1)


def _decision(wish: Wish, said: Rewrite | Refusal, ms: float) -> Decision:
    """The journal's entry."""
    document, result = wish.ask.document, said.result
    first, last = (document.position_at(at, "utf-32")[0] + 1 for at in (wish.ask.offset, wish.end))
    kind = "fill" if wish.instruction is None else "edit"
    refusal = said if isinstance(said, Refusal) else Refusal(message="", outcome="shown")
    reason = refusal.message or f"from {result.model if result else ''}"
    cost = result.cost if result else Cost()
    return Decision(
        uri=document.uri,
        line=first,
        explicit=True,
        outcome=refusal.outcome,
        reason=f"{kind} of lines {first} to {last}: {reason}",
        ms=ms,
        source="engine" if result else "",
        gate=refusal.gate,
        filter=refusal.filter,
        forwards=cost.forwards,
        encodes=cost.encodes,
        engine_ms=cost.ms,
        finish=result.finish if result else None,
    )
