"""How long to wait for the next keystroke before the engine is asked: longer where answers take longer.

Knows times and two settings; no documents, no engine.
"""

from __future__ import annotations

import asyncio
import statistics
from collections import deque

FIRST_MS = 75.0
"""As long as no answer has been measured."""
SHARE = 0.5
"""Of the time that an answer takes: what a keystroke too early costs is stopped within one denoising step."""
MEASURED = 9
"""Answers that count, the last ones."""


class Debounce:
    """Learns from the answers of one editor's engine."""

    def __init__(self) -> None:
        self._latencies: deque[float] = deque(maxlen=MEASURED)

    def answered(self, ms: float) -> None:
        """An answer took so long, from the question on."""
        self._latencies.append(ms)

    def seconds(self, *, most_ms: float, client_ms: float) -> float:
        """What is still to wait, at most `most_ms`, when the client itself waits `client_ms` after a keystroke."""
        latency = statistics.median(self._latencies) * SHARE if self._latencies else FIRST_MS
        return max(0.0, min(latency, most_ms) - client_ms) / 1000

    async def pause(self, *, most_ms: float, client_ms: float) -> None:
        """Wait it out."""
        await asyncio.sleep(self.seconds(most_ms=most_ms, client_ms=client_ms))
