"""The last decisions and why they were made: where "why is nothing shown?" is answered from.

Knows sentences, file names and times. Never holds document text.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from diffusion.api import Failure, Finish

Outcome = Literal["shown", "nothing", "dropped", "failed", "prefetched"]
Source = Literal["", "cache", "engine"]

LENGTH = 200


def sentence(failure: Failure) -> str:
    """What happened and what to do about it."""
    return f"{failure.message} ({failure.hint})" if failure.hint else failure.message


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What became of one request. `line` counts from 1; `at` is seconds since the epoch; `ms` from the question to the
    answer, `engine_ms` of them in the engine.

    `source`: who answered. `gate` and `filter` name what held an answer back, `confidence` is that of the best
    candidate. Of the engine's work: `forwards`, `encodes`, `starts` (earlier answers that it began from), `finish`.
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
    finish: Finish | None = None

    def sentence(self) -> str:
        kind = "asked for" if self.explicit else "automatic"
        return f"{self.uri.rsplit('/', 1)[-1]}:{self.line} ({kind}): {self.outcome}: {self.reason}"


class Journal:
    """A ring of the last decisions."""

    def __init__(self, length: int = LENGTH) -> None:
        self._decisions: deque[Decision] = deque(maxlen=length)

    def add(self, decision: Decision) -> None:
        self._decisions.append(decision)

    def decisions(self, uri: str | None = None) -> list[Decision]:
        """Newest first, of one document or of all."""
        return [decision for decision in reversed(self._decisions) if uri is None or decision.uri == uri]

    def why(self, uri: str | None = None) -> str:
        """One sentence on the last request that ran to its end."""
        decisions = self.decisions(uri)
        finished = [d for d in decisions if d.outcome not in ("dropped", "prefetched")] or decisions
        return finished[0].sentence() if finished else "nothing has been asked for yet"
