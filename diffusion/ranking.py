"""Step 4 of a fill (infill.py): what the encoder says of finished middles, and which of them is the best.

The encoder is a causal language model with the same weights as the decoder, so that one pass over a middle and the
suffix head behind it gives log p(middle | prefix) + log p(suffix head | prefix, middle): by Bayes' rule, up to a
constant, the middle's fit on both sides. A middle that was found nearby may be known to be right with probability c
before any model has looked at it. Then an author copies it with probability c, and writes it anew otherwise: its
probability is c + (1 - c) p(middle | prefix), a mixture as in pointer networks (See et al. 2017, "Get To The Point").

Knows ids, log probabilities and the model; knows neither canvases nor text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from diffusion.api import Finish
from diffusion.copying import Copies
from diffusion.denoise import ROWS_AT_ONCE, Rules
from diffusion.kv_cache import KeyValueCache
from diffusion.model import ResidentModel

SCORED_PINS = 8
"""Ids of the suffix head that take part in the score: the near ones decide, the far ones cost."""


MISFIT = 2.0
"""Nats. An id does not fit where the encoder expected another that is so much likelier."""


@dataclass(frozen=True, kw_only=True)
class Middle:
    """A candidate. `ended`: the model set its end. Scores are summed log probabilities in nats: of its length, of its
    ids by the decoder as they were accepted, of its ids and of the suffix head by the encoder; `least` is the encoder's
    of the least likely id. `known`: how likely it is to be right as far as that was known before, from 0 to 1. `whole`:
    its line can end with it, as far as the lines around it tell. `misfits`: positions in its canvas with an id that the
    encoder finds much less likely than the one named."""

    ids: tuple[int, ...] = ()
    ended: bool = False
    length_score: float = 0.0
    decoder_score: float = 0.0
    encoder_score: float = 0.0
    suffix_score: float = 0.0
    least: float = 0.0
    known: float = 0.0
    whole: bool = True
    misfits: Mapping[int, int] = field(default_factory=dict)

    @property
    def score(self) -> float:
        """What candidates are ranked by. Not by the decoder's score: what it wrote itself always looks better to it
        than a hint that it was given. Nor by its length's: the suffix head says as much (600 holes: 11.5 % exact with
        it, 12.3 without)."""
        own = self.encoder_score
        if self.known:
            anew = math.log1p(-self.known) + own if self.known < 1 else -math.inf
            own = float(np.logaddexp(math.log(self.known), anew))
        return own + self.suffix_score


@dataclass(frozen=True, kw_only=True)
class Read:
    """A middle as the encoder reads it: the log probability (nats) of each of its ids, the id that it expected there
    with the log probability of that one, and the summed log probability of the suffix head behind it."""

    log_p: tuple[float, ...]
    expected: tuple[int, ...]
    expected_log_p: tuple[float, ...]
    suffix: float

    @property
    def misfits(self) -> dict[int, int]:
        """Positions where another id is likelier by more than MISFIT, with that id."""
        return {
            place: expected
            for place, (log_p, best, expected) in enumerate(
                zip(self.log_p, self.expected_log_p, self.expected, strict=True)
            )
            if best - log_p > MISFIT
        }


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a fill: middles, best first, and why it ended. For evaluation: the `first` that the decoder alone
    would have said, and the best `uncorrected` one (None: the same as the best)."""

    middles: tuple[Middle, ...]
    finish: Finish
    first: Middle | None = None
    uncorrected: Middle | None = None


def features(middles: Sequence[Middle]) -> list[tuple[float, ...]]:
    """Per middle the numbers that its confidence is computed from, in nats unless said otherwise: the decoder's and the
    encoder's log probability, that of the least likely id, that of the suffix head, the log of its share among all by
    score, its lead over the best of the others, the log odds of what was known before, the log of its number of ids,
    the encoder's log probability per id, and its probability itself."""
    scores = np.array([middle.score for middle in middles])
    shares = scores - np.logaddexp.reduce(scores)
    rows: list[tuple[float, ...]] = []
    for index, (middle, share) in enumerate(zip(middles, shares, strict=True)):
        others = np.delete(scores, index)
        lead = min(LEAD, scores[index] - others.max()) if len(others) else LEAD
        rows.append((
            middle.length_score + middle.decoder_score,
            middle.encoder_score,
            middle.least,
            middle.suffix_score,
            float(share),
            float(lead),
            math.log((middle.known + UNKNOWN) / (1 + UNKNOWN - middle.known)),
            math.log(max(1, len(middle.ids))),
            middle.encoder_score / max(1, len(middle.ids)),
            math.exp(min(0.0, middle.encoder_score)),
        ))  # fmt: skip
    return rows


LEAD = 10.0
"""Nats. A larger lead says no more, and is that of a middle without competition."""

UNKNOWN = 0.05
"""Odds of a middle of which nothing was known before, for the confidence."""


def read(
    model: ResidentModel,
    cache: KeyValueCache,
    middles: Sequence[tuple[int, ...]],
    pins: tuple[int, ...],
    rules: Rules | None,
    copies: Copies | None = None,
    behind: tuple[int, ...] = (),
) -> list[Read]:
    """One encoder call over all `middles` and the suffix head `pins` behind each. Expected is what the rules allow, or
    without any, to save the time, what is there.
    `copies` from the text up to the cursor are mixed in; `behind`: the ids between the cursor and the middles."""
    rows = [(*middle, *pins) for middle in middles]
    longest = max(map(len, rows))
    if longest == 0:
        return [Read(log_p=(), expected=(), expected_log_p=(), suffix=0.0)] * len(rows)
    targets = model.tensor([row + (0,) * (longest - len(row)) for row in rows])  # (B, n)
    assert cache.last_hidden is not None
    ahead = cache.last_hidden.expand(len(rows), 1, -1)  # predicts each row's first id
    rest = model.continuations(targets[:, :-1], cache) if longest > 1 else ahead[:, :0]
    places = torch.arange(longest, device=targets.device).expand_as(targets)
    lengths = torch.tensor([len(row) for row in rows], device=targets.device)
    real = places < lengths[:, None]
    hidden, wanted, places = torch.cat((ahead, rest), 1)[real], targets[real], places[real]  # (N, H), (N,), (N,)
    log_p, best, best_log_p = [], [], []
    for start in range(0, len(hidden), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        logits = model.logits(hidden[part])
        total = logits.logsumexp(-1)
        log_p.append(logits.gather(-1, wanted[part, None])[:, 0] - total)
        if rules is not None:
            top = rules.apply(logits, places[part]).max(-1)
            best.append(top.indices)
            best_log_p.append(top.values - total)
    gained: list[float] = torch.cat(log_p).double().cpu().tolist()
    expected: list[int] = (torch.cat(best) if best else wanted).tolist()
    expected_log_p: list[float] = torch.cat(best_log_p or log_p).double().cpu().tolist()
    if copies is not None:
        before = [(row[:place], token) for row in rows for place, token in enumerate(row)]
        gained = [
            copies.mixed((*behind, *ids), token, log_p) for (ids, token), log_p in zip(before, gained, strict=True)
        ]
    found, start = [], 0
    for middle, row in zip(middles, rows, strict=True):
        ours, end = slice(start, start + len(middle)), start + len(row)
        found.append(
            Read(
                log_p=tuple(gained[ours]),
                expected=tuple(expected[ours]),
                expected_log_p=tuple(expected_log_p[ours]),
                suffix=sum(gained[ours.stop : end]),
            )
        )
        start = end
    return found
