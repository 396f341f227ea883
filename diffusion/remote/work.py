"""What engine and backends hand to each other: one request under way, and what a probe has found.

Knows no HTTP and no model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from diffusion.api import Candidate, Draft, EditRequest, Event, FillRequest, Finish

Emit = Callable[[Event], None]
"""Hands an event over."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """What answers at the other end. `note`: what the user should know, "" if all is as the profile wants it."""

    server: str
    model: str
    note: str = ""


@dataclass(kw_only=True)
class Work:
    """One request on its way. `candidates`: what would be answered now, best first; a backend replaces it as it knows
    better, so that a deadline finds the best so far."""

    request: FillRequest | EditRequest
    emit: Emit
    candidates: tuple[Candidate, ...] = ()
    step: int = field(default=0, init=False)
    forwards: int = 0
    _shown: str = field(default="", init=False)

    def answer(self, *candidates: Candidate) -> None:
        """What would be answered now, best first: different ones, none of them empty."""
        distinct: dict[str, Candidate] = {}
        for each in candidates:
            if each.text.strip():
                distinct.setdefault(each.text, each)
        self.candidates = tuple(distinct.values())

    def draft(self, text: str) -> None:
        """Show the best text so far, if somebody wants to see it and has not seen it."""
        self.step += 1
        if self.request.drafts and text and text != self._shown:
            self._shown = text
            self.emit(Draft(step=self.step, text=text))


class Backend(Protocol):
    """Who turns requests into answers of a server. Used on the loop of its bridge only."""

    async def probe(self) -> Served:
        """Look whether the server is there and does what is needed. Raises EngineError."""
        ...

    async def write(self, work: Work, served: Served) -> Finish:
        """Work off a request: leaves its answer in `work.candidates`. Raises EngineError."""
        ...


def cut(text: str, request: FillRequest | EditRequest) -> tuple[str, bool]:
    """As much of a growing text (line ends LF) as the request allows, and whether what comes after it would be cut off
    anyway."""
    if isinstance(request, EditRequest):
        return text, False
    lines = text.split("\n")
    allowed = 1 if request.mode == "line" else request.max_lines
    return "\n".join(lines[:allowed]), len(lines) > allowed


def whole_lines(text: str) -> str:
    """Without the last line, which a limit has broken off; of a single line, what there is."""
    return text.rpartition("\n")[0] if "\n" in text else text
