"""From a prompt to candidate middles, for models that say the length themselves (native layout):

  1  an open canvas, all masked: one forward gives the distribution of the middle's length, and a first draft. Beside
     it, in the same batch, one closed canvas per hint (a middle that may be right). Where the model might begin as a
     hint does, and the hint scores (step 3) as well as the first drafts of the likeliest lengths, the fill is done
  2  the likeliest lengths become closed canvases, shrunk to the width they need, and are denoised as one batch, with
     those of the hints as far as step 1 has confirmed them
  3  the encoder, a causal language model with the same weights, scores every middle, and every hint as it is, and the
     suffix head behind it: log p(middle | prefix) + log p(suffix head | prefix, middle), by Bayes' rule the middle's
     fit on both sides
  4  where the best middle fills its slot without an end, it is committed to the cache and the next canvas follows

Knows ids and tensors; knows no text, no requests and no clients.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.nn import functional as F

from diffusion import opening
from diffusion.api import Finish
from diffusion.canvas import Canvas, closed_canvas
from diffusion.denoise import ROWS_AT_ONCE, denoise
from diffusion.opening import Desk, Hint, Opened, Task
from diffusion.stopping import Limits

SCORED_PINS = 16
"""Ids of the suffix head that take part in the score: the near ones decide, the far ones cost."""

FIRST_DRAFTS = 2
"""Lengths whose first drafts a hint has to be as good as, to end a fill."""


@dataclass(frozen=True, kw_only=True)
class Middle:
    """A candidate. `ended`: the model set its end. Scores are summed log probabilities in nats: of its length, of its
    ids by the decoder as they were accepted, of its ids and of the suffix head by the encoder."""

    ids: tuple[int, ...] = ()
    ended: bool = False
    length_score: float = 0.0
    decoder_score: float = 0.0
    encoder_score: float = 0.0
    suffix_score: float = 0.0

    @property
    def score(self) -> float:
        """What candidates are ranked by. Not by the decoder's score: what it wrote itself always looks better to it
        than a hint that it was given."""
        return self.length_score + self.encoder_score + self.suffix_score


@dataclass(frozen=True, kw_only=True)
class Written:
    """A middle of this canvas before it is scored: its ids, its length in the slot, the decoder's log probability."""

    ids: tuple[int, ...]
    length: int
    decoder_score: float


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The likeliest middle so far: ids up to its end, and the canvas it was read from."""

    ids: tuple[int, ...]
    canvas: Canvas
    slot: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a fill: middles, best first, and why it ended."""

    middles: tuple[Middle, ...]
    finish: Finish


def features(middles: Sequence[Middle]) -> list[tuple[float, float, float]]:
    """Per middle, what its confidence is computed from, in nats: the decoder's log probability of the whole of it, the
    encoder's, and the log of its share among all candidates by score."""
    scores = np.array([middle.score for middle in middles])
    shares = scores - np.logaddexp.reduce(scores)
    return [
        (middle.length_score + middle.decoder_score, middle.encoder_score, float(share))
        for middle, share in zip(middles, shares, strict=True)
    ]


def fill(task: Task, desk: Desk, limits: Limits) -> Iterator[Draft | Outcome]:
    """Yield a Draft per decoder call, then one Outcome. Raises Cancelled between steps when nobody waits any more."""
    best = Middle()
    for part in range(task.canvases):
        limits.late()
        encoder = task.prompt.encoder + best.ids
        encoded = desk.model.encode(encoder, desk.cache)
        desk.tally.encodes += bool(encoded)
        desk.tally.encoded += encoded
        desk.tally.cached += len(encoder) - encoded
        middles, finish = yield from _one_canvas(_part(task, part, best), best, desk, limits)
        best = middles[0]
        if best.ended or finish == "deadline":
            break
    yield Outcome(middles=tuple(middles), finish=finish if best.ended or finish == "deadline" else "length")


def _part(task: Task, part: int, before: Middle) -> Task:
    """The task of the canvas number `part`, when `before` is written already."""
    if part == 0:
        return task
    length = None if task.length is None else max(0, task.length - len(before.ids))
    prompt = replace(task.prompt, encoder=task.prompt.encoder + before.ids, held_back="")
    rules = replace(task.rules, at_first=task.rules.elsewhere)
    return replace(task, prompt=prompt, rules=rules, seed=task.seed + part, hints=(), length=length)


def _one_canvas(
    task: Task, before: Middle, desk: Desk, limits: Limits
) -> Generator[Draft, None, tuple[list[Middle], Finish]]:
    """Steps 1 to 3 on one canvas. Returns the middles, best first, with `before` in front of each, and the finish."""
    begun = time.monotonic()
    opened = opening.opened(task, desk)
    desk.tally.forwards += 1
    pace_ms = (time.monotonic() - begun) * 1000
    yield Draft(ids=before.ids + opened.slot[: opened.lengths[0]], canvas=opened.canvas, slot=opened.slot)
    given = [Written(ids=hint.ids, length=len(hint.ids), decoder_score=hint.score) for hint in opened.hints]
    beginners = {before.ids + hint.ids for hint in opened.hints if hint.begins}
    if beginners and task.candidates == 1:
        first = [
            Written(ids=opened.slot[:length], length=length, decoder_score=sum(opened.slot_log_p[:length]))
            for length in opened.lengths[:FIRST_DRAFTS]
        ]
        middles = _scored([*given, *first], task, before, opened, desk)
        if middles[0].ids in beginners:
            return middles, "stop"
    denoised, finish = yield from _denoised(task, before, opened, desk, limits, pace_ms)
    if finish == "deadline":  # Scoring takes its time too.
        denoised.sort(key=lambda one: -opened.log_p(one.length) - one.decoder_score)
        del denoised[task.candidates :]
    return _scored([*denoised, *given], task, before, opened, desk), finish


def _scored(written: Sequence[Written], task: Task, before: Middle, opened: Opened, desk: Desk) -> list[Middle]:
    """Step 3: the middles, best first, each text once, with the score of the first that has it."""
    distinct = list({one.ids: one for one in reversed(written)}.values())[::-1]
    scores = _encoder_scores([one.ids for one in distinct], task.prompt.pins[:SCORED_PINS], desk)
    desk.tally.encodes += 1
    middles = [
        Middle(
            ids=before.ids + one.ids,
            ended=one.length < task.width,
            length_score=before.length_score + opened.log_p(one.length),
            decoder_score=before.decoder_score + one.decoder_score,
            encoder_score=before.encoder_score + encoder,
            suffix_score=suffix,
        )
        for one, (encoder, suffix) in zip(distinct, scores, strict=True)
    ]
    return sorted(middles, key=lambda middle: -middle.score)


def _denoised(
    task: Task, before: Middle, opened: Opened, desk: Desk, limits: Limits, pace_ms: float
) -> Generator[Draft, None, tuple[list[Written], Finish]]:
    """Step 2: what becomes of the likeliest lengths and of the hints. Canvases that were given up are left out."""
    hints = [hint for hint in opened.hints if hint.begins]
    lengths = [*opened.lengths, *(len(hint.ids) for hint in hints)]
    widths = (*desk.profile.layout.widths, task.width)
    width = next(width for width in widths if width > max(lengths) or width == task.width)
    closed = [closed_canvas(opened.canvas, length, width) for length in opened.lengths]
    closed += [hint.canvas(closed_canvas(opened.canvas, len(hint.ids), width)) for hint in hints]
    carried = [0.0] * len(opened.lengths) + [hint.confirmed_score for hint in hints]
    expected = [_aligned(opened.hints, length) for length in opened.lengths] + [hint.ids for hint in hints]
    finish: Finish = "stop"
    log_p = promise = (0.0,) * len(closed)
    for step in denoise(
        desk.model,
        desk.cache,
        closed,
        rules=task.rules,
        sampler=desk.profile.sampler,
        steps=task.steps,
        specials=desk.profile.specials,
        seed=task.seed,
        limits=limits,
        hints=expected,
        priors=[opened.log_p(length) + score for length, score in zip(lengths, carried, strict=True)],
        keep=task.candidates,
        pace_ms=pace_ms,
    ):
        desk.tally.forwards += 1
        closed, log_p, promise, finish = list(step.canvases), step.log_p, step.promise, step.finish or finish
        draft = replace(opened.canvas, slot=step.drafts[step.best], free=(False,) * width)
        yield Draft(ids=before.ids + draft.middle, canvas=step.canvases[step.best], slot=draft.slot)
    return [
        Written(ids=done.middle, length=length, decoder_score=score + gained)
        for done, length, score, gained, hope in zip(closed, lengths, carried, log_p, promise, strict=True)
        if math.isfinite(hope)
    ], finish


def _aligned(hints: Sequence[Hint], length: int) -> tuple[int, ...] | None:
    """A hint for a middle of another length: what stands at its end, before the suffix, may still be right."""
    if not hints:
        return None
    tail = hints[0].ids[max(0, len(hints[0].ids) - length) :]
    return (-1,) * (length - len(tail)) + tail


def _encoder_scores(middles: Sequence[tuple[int, ...]], pins: tuple[int, ...], desk: Desk) -> list[tuple[float, float]]:
    """Step 3. Per middle: log p(middle | prefix) and log p(pins | prefix, middle), in nats."""
    model, cache = desk.model, desk.cache
    rows = [(*middle, *pins) for middle in middles]
    longest = max(map(len, rows))
    if longest == 0:
        return [(0.0, 0.0)] * len(rows)
    targets = model.tensor([row + (0,) * (longest - len(row)) for row in rows])  # (B, n)
    assert cache.last_hidden is not None
    first = cache.last_hidden.expand(len(rows), 1, -1)  # predicts each row's first id
    rest = model.continuations(targets[:, :-1], cache) if longest > 1 else first[:, :0]
    real = torch.tensor([[True] * len(row) + [False] * (longest - len(row)) for row in rows], device=targets.device)
    hidden, wanted = torch.cat((first, rest), 1)[real], targets[real]  # (N, H), (N,)
    log_p = [
        -F.cross_entropy(
            model.logits(hidden[start : start + ROWS_AT_ONCE]), wanted[start : start + ROWS_AT_ONCE], reduction="none"
        )
        for start in range(0, len(hidden), ROWS_AT_ONCE)
    ]
    gained = torch.cat(log_p).double().cpu().tolist()
    scores, start = [], 0
    for middle, row in zip(middles, rows, strict=True):
        scores.append((sum(gained[start : start + len(middle)]), sum(gained[start + len(middle) : start + len(row)])))
        start += len(row)
    return scores
