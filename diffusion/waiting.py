"""Requests on their way, and in which order those that wait have their turn.

Whose turn was longest ago comes next. Edits come behind fills, but not for ever. Both queues are bounded. All of it
happens on one event loop; only `Job.cancelled` is read elsewhere. Knows no model and no threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from diffusion.api import Draft, EditRequest, Event, Failure, FillRequest

UNREAD_DRAFTS = 64
"""Drafts kept for a client that reads slowly; then the oldest go, since each replaces the ones before."""
REMEMBERED_TURNS = 1024
"""Clients whose last turn is remembered."""
EDIT_PATIENCE = 8
"""Fills that may go before an edit which waits; then it is the edit's turn."""


@dataclass(eq=False)
class Job:
    """One request on its way. `events` is read by its client; `cancelled` is read by the model's thread. `passed`:
    turns of fills that an edit has let pass."""

    request: FillRequest | EditRequest
    arrived: float
    events: asyncio.Queue[Event | BaseException] = field(default_factory=asyncio.Queue)
    cancelled: threading.Event = field(default_factory=threading.Event)
    ended: bool = False
    passed: int = 0

    @property
    def is_edit(self) -> bool:
        return isinstance(self.request, EditRequest)

    @property
    def side(self) -> tuple[str, bool]:
        """Who takes turns: the fills of a client, and its edits."""
        return self.request.client, self.is_edit

    def post(self, event: Event) -> None:
        """Hand over an event, unless the job has ended: a draft that is late is dropped."""
        if isinstance(event, Draft):
            if not self.ended:
                if self.events.qsize() >= UNREAD_DRAFTS:
                    self.events.get_nowait()
                self.events.put_nowait(event)
        else:
            self.end(event)

    def end(self, event: Event | BaseException | None) -> None:
        """The one place where a job ends; the first end wins. None: nobody listens any more."""
        if not self.ended:
            self.ended = True
            self.cancelled.set()
            if event is not None:
                self.events.put_nowait(event)


class WaitingRoom:
    """At most `fills` fills and `edits` edits, in the order of their arrival."""

    def __init__(self, fills: int, edits: int) -> None:
        self._most = {False: fills, True: edits}
        self._jobs: list[Job] = []
        self._turn = 0
        self._turns: dict[tuple[str, bool], int] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        """Over those that wait now, whatever happens meanwhile."""
        return iter(tuple(self._jobs))

    def __contains__(self, job: Job) -> bool:
        return job in self._jobs

    def fills_of(self, client: str) -> list[Job]:
        return [job for job in self._side(edits=False) if job.request.client == client]

    def add(self, job: Job, instead_of: Job | None = None) -> Job | None:
        """Let a job wait, in the place of another or as the last. Returns the one for which there is no room then, if
        there is none: the job itself, or, if it has a client, the latest of several fills without one."""
        place = len(self._jobs) if instead_of is None else self._jobs.index(instead_of)
        if instead_of is not None:
            self.remove(instead_of)
        gives_way = None
        if len(self._side(job.is_edit)) >= self._most[job.is_edit]:
            nobodys = [] if job.is_edit else self.fills_of("")
            if not job.request.client or len(nobodys) < 2:
                return job
            gives_way = nobodys[-1]
            self.remove(gives_way)
        self._jobs.insert(place, job)
        return gives_way

    def remove(self, job: Job) -> None:
        self._jobs.remove(job)

    def next(self) -> Job:
        """Take the first of those whose client had its last turn longest ago, or never. Requests without a client take
        turns as one, so that however many there are, nobody else waits for more than one of them. Fills go before edits
        until an edit has let enough of them pass."""
        fills, edits = self._side(edits=False), self._side(edits=True)
        overdue = any(edit.passed >= EDIT_PATIENCE for edit in edits)
        job = min(edits if overdue or not fills else fills, key=lambda other: self._turns.get(other.side, 0))
        for edit in edits:
            edit.passed = 0 if job.is_edit else edit.passed + 1
        self.remove(job)
        self._turn += 1
        self._turns.pop(job.side, None)
        self._turns[job.side] = self._turn
        if len(self._turns) > REMEMBERED_TURNS:
            del self._turns[next(iter(self._turns))]
        return job

    def busy(self) -> Failure:
        message = f"{len(self._jobs)} requests are waiting already"
        return Failure(code="busy", message=message, hint="ask again in a moment")

    def _side(self, edits: bool) -> list[Job]:
        return [job for job in self._jobs if job.is_edit == edits]
