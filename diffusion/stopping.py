"""When to stop: the deadline, a cancelled request, and a canvas that has settled. Free positions only are looked at:
a pinned tail has no entropy and would fake confidence."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from torch import Tensor


class Cancelled(Exception):
    """Raised inside a fill whose client has gone; never leaves the engine."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """`arrived`: time.monotonic() at the request's arrival; `deadline_ms` counts from there, None is none."""

    arrived: float = field(default_factory=time.monotonic)
    deadline_ms: float | None = None
    cancelled: Callable[[], bool] = lambda: False

    def late(self, ahead_ms: float = 0.0) -> bool:
        """Will the deadline be over in `ahead_ms`? Raises Cancelled if nobody waits any more. Asked between denoising
        steps."""
        if self.cancelled():
            raise Cancelled
        passed = (time.monotonic() - self.arrived) * 1000
        return self.deadline_ms is not None and passed + ahead_ms >= self.deadline_ms


def settled(before: Tensor | None, now: Tensor, entropy: Tensor, free: Tensor, threshold: float) -> Tensor:
    """Rows (B,) bool whose free argmax ids (B, W) did not change and whose mean free entropy is under `threshold`."""
    if before is None:
        return ~free.any(-1)
    same = ((before == now) | ~free).all(-1)
    mean = (entropy * free).sum(-1) / free.sum(-1).clamp(min=1)
    return same & (mean < threshold)
