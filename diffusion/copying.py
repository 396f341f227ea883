"""What a text says of its own next id: where the last ids stood before, and what followed them there.

Code repeats itself, and a small model is bad at copying. So what the model says, p, is mixed with what the copies say,
q: (1 - w) p + w q, with a weight w for each number of ids that agree: a cache model (Grave et al. 2017, "Improving
Neural Language Models with a Continuous Cache"; for code, Hellendoorn and Devanbu 2017). q backs off from the longest
agreement to shorter ones, with the weight n / (n + ESCAPE d) where n places have d different ids behind them (after
Witten and Bell 1991).

Knows ids and probabilities; knows no model and no text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

ESCAPE = 0.6

EDGE = -1
"""Between two texts: it agrees with no id."""


@dataclass(frozen=True, kw_only=True)
class Copied:
    """Ids that stood behind as many ids as `agree`, and less, with their probabilities: all other ids share the rest.
    `weight`: that of the copies in the mixture."""

    p: dict[int, float]
    agree: int
    weight: float


class Copies:
    """Copies from the text `before` the cursor and the one `after` it, rows of ids, for what is written between them.
    `weights`: of the copies where 0, 1, 2 ... ids agree; as many are compared."""

    def __init__(self, before: Sequence[int], after: Sequence[int], weights: Sequence[float]) -> None:
        self._weights, self._longest = tuple(weights), len(weights) - 1
        self._tail = tuple(before[-self._longest :])
        self._ids = np.array([EDGE, *before, EDGE, *after, EDGE], np.int32)
        self._order = np.argsort(self._ids, kind="stable")
        self._sorted = self._ids[self._order]
        self._of_tail = lru_cache(maxsize=None)(self._copied)

    def after(self, ids: Sequence[int]) -> Copied:
        """What may follow `ids` at the cursor."""
        return self._of_tail((*self._tail, *ids)[-self._longest :])

    def mixed(self, ids: Sequence[int], token: int, log_p: float) -> float:
        """The log probability (nats) of `token` behind `ids` at the cursor, where the model says `log_p`."""
        copied = self.after(ids)
        p = copied.weight * copied.p.get(token, 0.0)
        own = math.log1p(-copied.weight) + log_p
        return float(np.logaddexp(own, math.log(p))) if p else own

    def _copied(self, tail: tuple[int, ...]) -> Copied:
        followers: list[Counter[int]] = []
        places = np.array([], np.intp)
        for depth, token in enumerate(reversed(tail), 1):
            if depth == 1:
                first, last = np.searchsorted(self._sorted, (token, token + 1))
                places = self._order[first:last]
            else:
                places = places[self._ids[places - depth + 1] == token]
            behind = Counter(self._ids[places + 1].tolist())
            del behind[EDGE]
            if not behind:
                break
            followers.append(behind)
        p: dict[int, float] = {}
        for behind in followers:
            total = behind.total()
            weight = total / (total + ESCAPE * len(behind))
            p = {token: share * (1 - weight) for token, share in p.items()}
            for token, count in behind.items():
                p[token] = p.get(token, 0.0) + weight * count / total
        return Copied(p=p, agree=len(followers), weight=self._weights[len(followers)])


def mixed(log_p: Tensor, copies: Copies | None, ids: Sequence[int]) -> Tensor:
    """log_p (V,) of the model behind `ids` at the cursor -> (V,) with the copies in it."""
    copied = copies and copies.after(ids)
    if not copied or not copied.weight:
        return log_p
    p = log_p.exp() * (1 - copied.weight)
    places = torch.tensor(list(copied.p), device=p.device)
    shares = torch.tensor(list(copied.p.values()), dtype=p.dtype, device=p.device)
    return p.index_add(0, places, copied.weight * shares).log()
