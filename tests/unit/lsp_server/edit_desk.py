"""An editor with one document for the tests of edits, and an engine that says what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from diffusion.api import Candidate, Draft, EditRequest, EngineError, Event, Failure, FillRequest, Result, Status
from lsp_server.anchors import Anchors
from lsp_server.completion import Ask
from lsp_server.documents import Document
from lsp_server.edit import Editor, Refusal, Rewrite
from lsp_server.journal import Journal
from lsp_server.settings import Settings
from lsp_server.wishes import Wish

URI = "file:///project/a.py"


@dataclass
class Engine:
    """Answers with `answer`; before that, `meanwhile` happens in the editor."""

    answer: Event | EngineError
    meanwhile: Callable[[], Any] = lambda: None
    asked: list[FillRequest | EditRequest] = field(default_factory=list)

    def fill(self, request: FillRequest) -> AsyncIterator[Event]:
        return self._answer(request)

    def edit(self, request: EditRequest) -> AsyncIterator[Event]:
        return self._answer(request)

    async def _answer(self, request: FillRequest | EditRequest) -> AsyncIterator[Event]:
        self.asked.append(request)
        yield Draft(step=1, text="a draft")
        self.meanwhile()
        if isinstance(self.answer, EngineError):
            raise self.answer
        yield self.answer

    async def status(self) -> Status:
        return Status(state="ready")

    async def events(self) -> AsyncIterator[Status]:
        yield await self.status()

    async def set_idle(self, seconds: float) -> None:
        return None

    async def end(self) -> None:
        return None

    async def close(self) -> None:
        return None


class Quiet:
    def working(self, change: int) -> None:
        pass

    def answered(self, answer: Result | Failure) -> None:
        assert isinstance(answer, Result)


class Desk:
    """An editor with one document: `text` with the selection between two marks."""

    def __init__(self, text: str, *answers: str, language: str = "python", failure: Any = None) -> None:
        self.parts = text.replace("⟧", "⟦").split("⟦")
        before, selected, after = self.parts
        self.document: Document | None = Document(uri=URI, language=language).with_text(before + selected + after, 1)
        self.anchors, self.journal = Anchors(), Journal()
        candidates = tuple(Candidate(text=answer) for answer in answers)
        self.engine = Engine(failure or Result(candidates=candidates, model="tiny"))
        self.editor = Editor(
            engine=lambda: self.engine,
            listener=Quiet(),
            current=lambda uri: self.document if uri == URI else None,
            anchors=self.anchors,
            journal=self.journal,
            client="me",
        )

    def change(self, start: int, end: int, new: str) -> None:
        """As the client says it, with the range."""
        before = self.document
        assert before is not None and before.version is not None
        text = before.text[:start] + new + before.text[end:]
        self.document = replace(before.with_text(text, before.version + 1))
        self.anchors.changed(before, self.document, (start, end), len(new))

    def wish(self, instruction: str | None = "do it", **details: Any) -> Wish:
        assert self.document is not None
        before, selected, _ = self.parts
        ask = Ask(id="1", document=self.document, offset=len(before), settings=Settings(), **details)
        return Wish(ask=ask, end=len(before) + len(selected), instruction=instruction)

    def run(self, wish: Wish) -> Rewrite | Refusal:
        return asyncio.run(self.editor.rewrite(wish))


def applied(said: Rewrite) -> str:
    """The document after the changes, which say the same as the text does."""
    text = said.document.text
    whole = text[: said.start] + said.text + text[said.end :]
    for hunk in reversed(said.changes):
        text = text[: hunk.start] + hunk.text + text[hunk.end :]
    assert text == whole
    return text
