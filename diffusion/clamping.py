"""Steps 3 and 4 of floating.py: slots of a few lengths with the suffix pinned behind them are denoised as one batch,
and the middle wins that leads over to the suffix, when its head is renoised, and that the model is sure of. Where no
length is known, one forward over a batch of them says which to take. Knows ids and tensors; knows no text.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import replace

from diffusion.infill import Draft
from diffusion.lengths import surest
from diffusion.ranking import Middle, Outcome
from diffusion.spans import POSITIONS, Place, still_open
from diffusion.uniform import SpanStep, restored

LEAD = 0.5
"""Nats per id by which a finished middle has to lead for the others to be given up."""

BEST_LENGTHS = 2
"""Lengths that are clamped where no suffix was found."""


def clamped(place: Place, lengths: Sequence[int], start: tuple[int, ...] = ()) -> Generator[Draft, None, Outcome]:
    """Slots of `lengths`, likeliest first, that start from the ids `start`; without lengths, of the surest ones. The
    task's hints are tried beside them."""
    rules = place.rules(one_line=place.task.one_line)
    least = max(1, rules.shortest)
    if not lengths:
        lengths, start = (yield from _surest(place, least)), ()
    spans = {length: start[:length] for length in lengths}
    if not place.task.prompt.open_end:  # without pins, a batch has one length
        spans |= {len(hint): hint for hint in place.hints if least <= len(hint) <= place.longest}
    width = place.width(max(spans))
    spans = dict(list(spans.items())[: max(1, POSITIONS // width)])
    canvases = [place.canvas(length, width) for length in spans]
    step: SpanStep | None = None
    for step in place.denoise(canvases, list(spans.values()), rules, place.task.steps):
        shown = replace(canvases[0], free=still_open(step))
        yield Draft(ids=place.written + step.drafts[0], canvas=shown, slot=step.drafts[0])
        if _leads(step):
            break
    assert step is not None
    done = [
        replace(canvas, slot=draft, free=(False,) * len(draft))
        for canvas, draft in zip(canvases, step.drafts, strict=True)
    ]
    late = place.limits.late(step.ms)
    scores = [0.0] * len(done)
    if not late and len(done) > 1:
        scores = restored(place.desk.model, place.desk.cache, done, place.chat.restored, place.task.seed)
        place.desk.tally.forwards += 1
    middles = [
        Middle(ids=place.written + canvas.slot, ended=True, decoder_score=log_p, suffix_score=score)
        for canvas, log_p, score in zip(done, step.log_p, scores, strict=True)
    ]
    best_first = tuple(sorted(middles, key=lambda middle: -middle.score))
    return Outcome(middles=best_first, finish="deadline" if late else "stop")


def around(place: Place, length: int) -> list[int]:
    """`length` and those beside it that a slot may have, likeliest first."""
    least = max(1, place.rules(one_line=place.task.one_line).shortest)
    most = max(place.desk.profile.sampler.lengths, place.task.candidates)
    beside = [length + shift for shift in place.chat.shifts][:most]
    return [some for some in beside if least <= some <= place.longest] or [max(least, min(length, place.longest))]


def _surest(place: Place, least: int) -> Generator[Draft, None, list[int]]:
    """The lengths of the profile that fit best, after one forward over all of them."""
    rules = place.rules(one_line=place.task.one_line)
    lengths = sorted({max(length, least) for length in place.chat.lengths if length <= place.longest})
    width = place.width(max(lengths))
    canvases = [place.canvas(length, width) for length in lengths]
    (step,) = place.denoise(canvases, [], rules, 1)
    best = surest(lengths, step.sure, place.chat.length_bias, max(BEST_LENGTHS, place.task.candidates))
    first = lengths.index(best[0])
    shown = replace(canvases[first], free=(True,) * best[0])
    yield Draft(ids=place.written + step.drafts[first], canvas=shown, slot=step.drafts[first])
    return best


def _leads(step: SpanStep) -> bool:
    """Is a canvas done that those which go on will hardly catch up with?"""
    both = list(zip(step.log_p, step.done, strict=True))
    best = max((log_p for log_p, done in both if done), default=-math.inf)
    return best > LEAD + max((log_p for log_p, done in both if not done), default=0.0)
