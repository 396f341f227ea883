"""The last decisions and why they were made: where "why is nothing shown?" is answered from.

Knows sentences, file names and times. Never holds document text. The decisions of all servers of the user are also
appended to a file in the state folder, so that `midfill why` can answer on the command line; see ledger.py.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import platformdirs

from diffusion.api import DISTRIBUTION, Failure, Finish
from lsp_server.ledger import Ledger

Outcome = Literal["shown", "nothing", "dropped", "failed", "prefetched"]
Source = Literal["", "cache", "engine"]

LENGTH = 200
JOURNAL_BYTES = 256_000
MAX_URI, MAX_REASON = 500, 300


def sentence(failure: Failure) -> str:
    """What happened and what to do about it."""
    return f"{failure.message} ({failure.hint})" if failure.hint else failure.message


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What became of one request. `line` counts from 1; `at` is seconds since the epoch; `ms` from the question to the
    answer, `engine_ms` of them in the engine.

    `source`: who answered. `gate` and `filter` name what held an answer back, `confidence` is that of the best
    candidate. Of the engine's work: `forwards`, `encodes`, `starts` (earlier answers that it began from), `finish`;
    `shared`: it was under way already for another request, which has an entry of its own.
    """

    uri: str
    line: int
    explicit: bool
    outcome: Outcome
    reason: str
    at: float = field(default_factory=time.time)
    ms: float = 0.0
    source: Source = ""
    gate: str = ""
    filter: str = ""
    confidence: float | None = None
    forwards: int = 0
    encodes: int = 0
    engine_ms: float = 0.0
    starts: int = 0
    shared: bool = False
    finish: Finish | None = None

    def sentence(self) -> str:
        kind = "asked for" if self.explicit else "automatic"
        return f"{self.uri.rsplit('/', 1)[-1]}:{self.line} ({kind}): {self.outcome}: {self.reason}"

    def full(self) -> str:
        """The sentence and all that is known besides, one fact per line."""
        cost = f"{self.forwards} decoder calls, {self.encodes} encoder calls, {self.engine_ms:.0f} ms in the engine"
        facts = {
            "file": self.uri,
            "time": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at)),
            "gate": self.gate,
            "filter": self.filter,
            "confidence": "" if self.confidence is None else f"{self.confidence:.2f}",
            "took": f"{self.ms:.0f} ms",
            "answered by": {"cache": "an earlier answer", "engine": f"the engine: {cost}"}.get(self.source, ""),
            "began from": f"{self.starts} earlier answers or lines found nearby" if self.starts else "",
            "ended": self.finish or "",
        }
        return "\n".join([self.sentence(), *(f"  {name:<12}{value}" for name, value in facts.items() if value)])


class Journal:
    """A ring of the last decisions. `record` is told of each."""

    NOTHING = "nothing has been asked for yet"

    def __init__(self, length: int = LENGTH, record: Callable[[Decision], None] = lambda decision: None) -> None:
        self._decisions: deque[Decision] = deque(maxlen=length)
        self.record = record

    def add(self, decision: Decision) -> None:
        self._decisions.append(decision)
        self.record(decision)

    def decisions(self, uri: str | None = None, line: int | None = None) -> list[Decision]:
        """Newest first, of one document or of all, and of one line or of all."""
        return [
            decision
            for decision in reversed(self._decisions)
            if (uri is None or decision.uri == uri) and (line is None or decision.line == line)
        ]

    def why(self, uri: str | None = None) -> str:
        """One sentence on the last request that ran to its end."""
        told = last(self.decisions(uri))
        return told.sentence() if told else self.NOTHING


def last(decisions: list[Decision]) -> Decision | None:
    """Of some, newest first: the first that ran to its end, or else the first."""
    finished = [each for each in decisions if each.outcome not in ("dropped", "prefetched")]
    return next(iter(finished or decisions), None)


# --- on disk


def journal_file() -> Ledger:
    """The last decisions of all servers of the user: file names, numbers and sentences, no text."""
    folder = Path(platformdirs.user_state_path(DISTRIBUTION))
    return Ledger(folder / "journal.jsonl", limit=JOURNAL_BYTES, fold=lambda lines: lines[-LENGTH:])


def as_line(decision: Decision) -> dict[str, Any]:
    """For the file; `server` is the process that decided."""
    known = {name: value for name, value in asdict(decision).items() if value not in (None, "")}
    return known | {"uri": decision.uri[-MAX_URI:], "reason": decision.reason[:MAX_REASON], "server": os.getpid()}


def from_line(line: dict[str, Any]) -> Decision | None:
    """None for what is no decision: the file may be of another version."""
    names = Decision.__dataclass_fields__
    try:
        decision = Decision(**({"explicit": False} | {name: line[name] for name in line if name in names}))
        decision.full()
    except (TypeError, ValueError, AttributeError, OverflowError, OSError):
        return None
    return decision
