"""From a prompt to candidate middles, for models that say the length themselves (native layout):

  1  an open canvas, all masked: one forward gives the distribution of the middle's length
  2  the likeliest lengths become closed canvases, shrunk to the width they need, and are denoised as one batch
  3  the encoder, a causal language model with the same weights, scores every middle and the suffix head behind it:
     log p(middle | prefix) + log p(suffix head | prefix, middle), by Bayes' rule the middle's fit on both sides
  4  where the best middle fills its slot without an end, it is committed to the cache and the next canvas follows

Knows ids and tensors; knows no text, no requests and no clients.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.canvas import Canvas, closed_canvas, open_canvas
from diffusion.denoise import Rules, denoise
from diffusion.kv_cache import KeyValueCache
from diffusion.layouts import Prompt
from diffusion.lengths import Floats, distribution, likeliest
from diffusion.model import ResidentModel
from diffusion.profiles import Calibration, ModelProfile
from diffusion.stopping import Limits

SCORED_PINS = 16
"""Ids of the suffix head that take part in the score: the near ones decide, the far ones cost."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to fill, in ids. `one_line`: a newline ends the middle. `candidates`: so many at
    least. `length`: the true length, if it is known."""

    prompt: Prompt
    rules: Rules
    width: int
    one_line: bool
    newline: Tensor
    candidates: int
    steps: int
    canvases: int
    seed: int = 0
    hints: tuple[tuple[int, ...], ...] = ()
    length: int | None = None


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
        """What candidates are ranked by."""
        return self.length_score + self.decoder_score + self.encoder_score + self.suffix_score


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The likeliest middle so far: ids up to its end, and the canvas it was read from."""

    ids: tuple[int, ...]
    canvas: Canvas
    slot: tuple[int, ...]


@dataclass(kw_only=True)
class Tally:
    """What a fill has cost so far: decoder calls (a batch counts once), encoder calls, encoded and reused ids."""

    forwards: int = 0
    encodes: int = 0
    encoded: int = 0
    cached: int = 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a fill: middles, best first, and why it ended."""

    middles: tuple[Middle, ...]
    finish: Finish


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a fill works with: the model, the cache of its document window, the profile, and the running cost."""

    model: ResidentModel
    cache: KeyValueCache
    profile: ModelProfile
    tally: Tally


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
    canvas = first_canvas(task, desk)
    lengths, slot = _lengths(task, canvas, desk)
    desk.tally.forwards += 1
    yield Draft(ids=before.ids + slot[: lengths[0][0]], canvas=canvas, slot=slot)
    longest = max(length for length, _ in lengths)
    width = next(width for width in (*desk.profile.layout.widths, task.width) if width > longest or width == task.width)
    closed = tuple(closed_canvas(canvas, length, width) for length, _ in lengths)
    log_p: tuple[float, ...] = (0.0,) * len(closed)
    finish: Finish = "stop"
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
        hints=[next((hint for hint in task.hints if len(hint) == length), None) for length, _ in lengths],
    ):
        desk.tally.forwards += 1
        closed, log_p, finish = step.canvases, step.log_p, step.finish or finish
        draft = replace(canvas, slot=step.drafts[0], free=(False,) * width)
        yield Draft(ids=before.ids + draft.middle, canvas=closed[0], slot=draft.slot)
    scores = _encoder_scores([done.middle for done in closed], task.prompt.pins[:SCORED_PINS], desk)
    desk.tally.encodes += 1
    middles = [
        Middle(
            ids=before.ids + done.middle,
            ended=length < task.width,
            length_score=before.length_score + length_log_p,
            decoder_score=before.decoder_score + decoder,
            encoder_score=before.encoder_score + encoder,
            suffix_score=suffix,
        )
        for done, (length, length_log_p), decoder, (encoder, suffix) in zip(closed, lengths, log_p, scores, strict=True)
    ]
    return sorted(middles, key=lambda middle: -middle.score), finish


def first_canvas(task: Task, desk: Desk) -> Canvas:
    """The open canvas of step 1."""
    return open_canvas(desk.profile, task.width, task.prompt.cut, task.prompt.pins)


def end_probabilities(task: Task, canvas: Canvas, desk: Desk) -> tuple[Floats, Tensor]:
    """Per slot position, the raw probability (W,) that the middle is over there; and the logits (W, V)."""
    model = desk.model
    hidden = model.decode(model.tensor([canvas.ids]), model.tensor([canvas.positions]), desk.cache)
    raw = model.logits(hidden[0, : task.width])
    p = torch.softmax(raw, dim=-1)
    ends = p[:, canvas.end]
    if task.one_line:
        # The model may see several lines ahead; for a single one, its first newline is the end.
        newlines = p[:, task.newline].sum(-1)
        if task.prompt.starts_line:
            newlines[0] = 0.0
        ends = ends + newlines
    return ends.double().cpu().numpy(), raw


def _lengths(task: Task, canvas: Canvas, desk: Desk) -> tuple[list[tuple[int, float]], tuple[int, ...]]:
    """Step 1. The lengths to try with their log probabilities, likeliest first, and the argmax of the open canvas."""
    ends, raw = end_probabilities(task, canvas, desk)
    probabilities = distribution(calibrated(ends, desk.profile.calibration))
    first = torch.arange(task.width, device=raw.device) == 0
    slot = tuple(task.rules.apply(raw, first).argmax(-1).tolist())
    if task.length is not None:
        chosen = [min(task.length, task.width)]
    else:
        sampler, shortest = desk.profile.sampler, int(task.prompt.starts_line)
        chosen = likeliest(probabilities, sampler.lengths, task.candidates, sampler.length_mass, shortest)
        for length in map(len, task.hints):
            if 0 < length < task.width and length not in chosen:
                chosen.append(length)
    return [(length, float(np.log(max(probabilities[length], 1e-9)))) for length in chosen], slot


def calibrated(ends: Floats, calibration: Calibration | None) -> Floats:
    """End-of-middle probabilities after the profile's calibration: sigmoid(scale * logit + bias)."""
    ends = np.clip(ends, 1e-9, 1 - 1e-9)
    if calibration is None:
        return ends
    logit = np.log(ends / (1 - ends)) * calibration.end_scale + calibration.end_bias
    return np.asarray(1 / (1 + np.exp(-logit)))


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
    log_p = torch.log_softmax(model.logits(torch.cat((first, rest), 1)), -1)
    gained = log_p.gather(-1, targets[..., None])[..., 0].double().cpu()
    return [
        (float(gained[i, : len(middle)].sum()), float(gained[i, len(middle) : len(middle) + len(pins)].sum()))
        for i, middle in enumerate(middles)
    ]
