"""From a chat prompt to candidate middles, for models that were not trained to say how long a middle is:

  1  float: a free canvas is denoised for a few steps; the model writes the middle and goes on into the suffix
  2  align: where the suffix begins in the draft, the middle ends (alignment.py)
  3  clamp: slots of that length and of a few around it, the suffix pinned behind them, are denoised as one batch
  4  choose: the middle that leads over to the suffix and that the model is sure of (clamping.py, both)
Where step 2 finds nothing, one forward over a batch of lengths says which of them to clamp; a span that may go over
several canvases commits its canvas instead and floats on in the next. Where nothing follows, floating canvases
themselves are the answers, up to where the model ends its text.

The same interface as infill.py. Knows ids, tensors and the text of drafts; knows no requests and no clients.
Never run on the 26B checkpoint: how often step 2 finds the suffix there is not known.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

from diffusion.alignment import Alignment, align
from diffusion.api import Finish
from diffusion.clamping import around, clamped
from diffusion.infill import Draft
from diffusion.opening import Desk
from diffusion.ranking import Middle, Outcome
from diffusion.spans import POSITIONS, Place, SpanTask, encode, still_open
from diffusion.stopping import Limits
from diffusion.uniform import SpanStep


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a draft says. `ids`: those before the end of its text, which the model has set where `over`. `aligned`:
    where the suffix begins in it. `log_p`: of the whole draft, nats per id."""

    ids: tuple[int, ...]
    over: bool
    aligned: Alignment | None
    log_p: float

    def ends(self, open_end: bool) -> bool:
        """Does it say where the middle ends? A model that ends its text at once does not, unless nothing follows."""
        return self.aligned is not None or (self.over and bool(self.ids or open_end))


def fill(task: SpanTask, desk: Desk, limits: Limits) -> Iterator[Draft | Outcome]:
    """Yield a Draft per decoder call, then one Outcome. Raises Cancelled between steps when nobody waits any more."""
    place = Place(task=task, desk=desk, limits=limits)
    open_end = task.prompt.open_end
    for part in range(task.canvases):
        limits.late()
        place = replace(place, task=replace(task, seed=task.seed + part))
        place.encode()
        if task.length is not None:
            yield (yield from clamped(place, [max(1, min(task.length, place.longest))]))
            return
        readings, finish = yield from _float(place)
        first = readings[0]
        found, start = first.ends(open_end), _middle(task, first)
        if finish == "deadline" or (open_end and (found or part + 1 == task.canvases)) or (found and not start):
            break
        if found:
            yield (yield from clamped(place, around(place, len(start)), start))
            return
        if task.canvases == 1:
            yield (yield from clamped(place, []))
            return
        if first.over or part + 1 == task.canvases:
            break
        place = replace(place, written=place.written + _whole_lines(task, first.ids))
    # The floating canvases are all there is.
    middles = sorted(
        (Middle(ids=place.written + _middle(task, r), ended=r.ends(open_end), decoder_score=r.log_p) for r in readings),
        key=lambda middle: (not middle.ended, -middle.decoder_score),
    )
    yield Outcome(middles=tuple(middles), finish=finish if finish == "deadline" or middles[0].ended else "length")


def _float(place: Place) -> Generator[Draft, None, tuple[list[Reading], Finish]]:
    """Steps 1 and 2. A canvas floats until its middle is found twice in a row, or until it settles. Where nothing
    follows, as many float as candidates are wanted."""
    task, prompt = place.task, place.task.prompt
    # Where a canvas may run past the end of the file, the model has to be able to say so.
    may_end = prompt.open_end or (prompt.ends and len(prompt.suffix_ids) < task.width)
    last = prompt.open_end or task.canvases > 1  # there is no clamped canvas behind it
    steps = task.steps if last else min(task.steps, place.chat.float_steps)
    start = [(*hint, *prompt.suffix_ids)[: task.width] for hint in place.hints[:1]]
    canvas = place.canvas(task.width, task.width)
    canvases = [canvas] * (min(task.candidates, max(1, POSITIONS // task.width)) if prompt.open_end else 1)
    readings: list[Reading] = []
    step: SpanStep | None = None
    for step in place.denoise(canvases, start, place.rules(one_line=False, may_end=may_end), steps):
        before, readings = readings, [_read(place, step, row) for row in range(len(canvases))]
        ids = place.written + _middle(task, readings[0])
        yield Draft(ids=ids, canvas=replace(canvas, free=still_open(step)), slot=step.drafts[0])
        pairs = zip(before, readings, strict=False)
        if before and all(new.aligned is not None and old.aligned == new.aligned for old, new in pairs):
            break
    assert step is not None
    return readings, "deadline" if place.limits.late(step.ms) else "stop"


def _read(place: Place, step: SpanStep, row: int) -> Reading:
    """A draft of a step up to the end of its text, and where the suffix begins in it."""
    task, ids = place.task, step.drafts[row]
    alphabet, prompt = task.alphabet, task.prompt
    ends = alphabet.ends if prompt.fences else alphabet.ends | alphabet.closing
    end = next((at for at, token in enumerate(ids) if token in ends), len(ids))
    over, text = end < len(ids), task.texts.decode(ids[:end])
    aligned = align(text, prompt.suffix, one_line=task.one_line, first=len(place.forced), over=over)
    return Reading(ids=ids[:end], over=over, aligned=aligned, log_p=step.log_p[row])


def _middle(task: SpanTask, reading: Reading) -> tuple[int, ...]:
    """The ids of the middle in a draft. Where its end cuts through an id, the text up to there is encoded anew."""
    if reading.aligned is None:
        return reading.ids
    middle, at, count = reading.aligned.middle, 0, 0
    for token in reading.ids:
        said = task.alphabet.texts[token]
        if not said or not middle.startswith(said, at):
            break
        at, count = at + len(said), count + 1
    return (*reading.ids[:count], *encode(middle[at:], task.texts))


def _whole_lines(task: SpanTask, ids: tuple[int, ...]) -> tuple[int, ...]:
    """`ids` up to their last newline, so that the next canvas begins where a token does."""
    last = max((at for at, token in enumerate(ids) if "\n" in task.alphabet.texts[token]), default=0)
    return ids[:last] or ids
