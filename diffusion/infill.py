"""From a prompt to candidate middles, for models that say the length themselves (native layout):

  1  an open canvas, all masked: one forward gives the distribution of the middle's length, and a first draft. Beside
     it, in the same batch, one closed canvas per hint
  2  from what encoder and decoder would begin with, the encoder writes lines left to right (left_to_right.py): more
     middles that may be right. The best of all so far (step 4), first drafts among them where there are no such lines,
     ends the fill if the encoder is sure of it, or if it is a hint that the model might begin like or that is known to
     be likely
  3  the likeliest lengths become closed canvases, shrunk to the width they need, and are denoised as one batch, with
     those of the hints as far as step 1 has confirmed them
  4  the encoder reads every middle, and every hint as it is, and ranks them (ranking.py). Ids of the best one that it
     finds much less likely than others are taken back, renoised and denoised once more, with what it expected as a
     hint; of the two middles the one that scores better stays
  5  where the best middle fills its slot without an end, it is committed to the cache and the next canvas follows

Knows ids and tensors; knows no text, no requests and no clients.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from diffusion import left_to_right, opening
from diffusion.api import Finish
from diffusion.canvas import Canvas, closed_canvas
from diffusion.denoise import Step, denoise
from diffusion.opening import Desk, Hint, Opened, Task
from diffusion.ranking import SCORED_PINS, Middle, Outcome, read
from diffusion.stopping import Limits

FIRST_DRAFTS = 2
"""Lengths whose first drafts a hint has to be as good as, to end a fill."""

LIKELY = 0.5
"""A hint that is known to be right so often may end a fill, whatever the model would begin with."""


SURE = -0.8
"""Nats per id. Where lines were written left to right and the best middle is as likely as that to the encoder, what
comes of more lengths is no better (600 holes, half of which it ends; without it, two in a thousand fewer are exact)."""


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


def fill(task: Task, desk: Desk, limits: Limits) -> Iterator[Draft | Outcome]:
    """Yield a Draft per decoder call, then one Outcome. Raises Cancelled between steps when nobody waits any more."""
    best = Middle()
    for part in range(task.canvases):
        limits.late()
        desk.encode(task.prompt.encoder + best.ids, goes_on=part > 0)
        last = yield from _one_canvas(_part(task, part, best), best, desk, limits)
        best = last.middles[0]
        if best.ended or last.finish == "deadline":
            break
    yield last if best.ended or last.finish == "deadline" else replace(last, finish="length")


def _part(task: Task, part: int, before: Middle) -> Task:
    """The task of the canvas number `part`, when `before` is written already."""
    if part == 0:
        return task
    length = None if task.length is None else max(0, task.length - len(before.ids))
    prompt = replace(task.prompt, encoder=task.prompt.encoder + before.ids, held_back="", forced="")
    rules = replace(task.rules, at_first=task.rules.elsewhere)
    return replace(task, prompt=prompt, rules=rules, seed=task.seed + part, hints=(), known={}, length=length)


def _one_canvas(task: Task, before: Middle, desk: Desk, limits: Limits) -> Generator[Draft, None, Outcome]:
    """Steps 1 to 4 on one canvas. Returns the middles with `before` in front of each."""
    begun = time.monotonic()
    opened = opening.opened(task, desk)
    desk.tally.forwards += 1
    pace_ms = (time.monotonic() - begun) * 1000
    yield Draft(ids=before.ids + opened.slot[: opened.lengths[0]], canvas=opened.canvas, slot=opened.slot)
    drafted = _drafted(task, opened, desk, limits) if task.drafted and task.one_line and not before.ids else []
    given = [Written(ids=hint.ids, length=len(hint.ids), decoder_score=hint.score) for hint in opened.hints] + drafted
    drafts = [
        Written(ids=opened.slot[:length], length=length, decoder_score=sum(opened.slot_log_p[:length]))
        for length in opened.lengths[:FIRST_DRAFTS]
    ]
    scored = _scored(given if drafted else [*given, *drafts], task, before, opened, desk) if given else []
    likely = {hint.ids for hint in opened.hints if hint.begins or task.known.get(hint.ids, 0.0) >= LIKELY}
    if given and task.candidates == 1:
        best, ids = scored[0], scored[0].ids[len(before.ids) :]
        if ids in likely or (drafted and ids and best.encoder_score >= SURE * len(ids)):
            return Outcome(middles=tuple(scored), finish="stop", first=_first(drafts, before, opened))
    denoised, finish = yield from _denoised(task, before, opened, desk, limits, pace_ms)
    if finish == "deadline":  # Scoring takes its time too.
        denoised.sort(key=lambda one: -opened.log_p(one.length) - one.decoder_score)
        del denoised[task.candidates :]
    known = {middle.ids[len(before.ids) :] for middle in scored}
    new = [one for one in denoised if one.ids not in known]
    middles = _ranked([*_scored(new, task, before, opened, desk), *scored])
    corrected = middles
    if finish != "deadline":
        corrected = yield from _corrected(middles, task, before, opened, desk, limits)
    first = _first(denoised, before, opened)
    return Outcome(middles=tuple(corrected), finish=finish, first=first, uncorrected=middles[0])


def _drafted(task: Task, opened: Opened, desk: Desk, limits: Limits) -> list[Written]:
    """Step 2: what the encoder makes of the likeliest beginnings, as far as it comes to an end."""
    starts = left_to_right.beginnings(task, desk, opened)
    lines = left_to_right.lines(task, desk, limits, starts, left_to_right.DRAFT_IDS)
    written = dict.fromkeys(line.ids for line in lines if line.finish == "stop")
    return [Written(ids=ids, length=len(ids), decoder_score=opened.score(ids)) for ids in written]


def _first(written: Sequence[Written], before: Middle, opened: Opened) -> Middle | None:
    """What the decoder alone would have said, of what it has `written`."""
    best = max(written, key=lambda one: opened.log_p(one.length) + one.decoder_score, default=None)
    return Middle(ids=before.ids + best.ids) if best else None


def _corrected(
    middles: list[Middle], task: Task, before: Middle, opened: Opened, desk: Desk, limits: Limits
) -> Generator[Draft, None, list[Middle]]:
    """Take back what does not fit in the best of `middles`, and put what becomes of it in front if it scores better."""
    pace_ms = 0.0
    for _ in range(task.corrections):
        best = middles[0]
        if not best.ended or not best.misfits or best.known >= LIKELY or limits.late(2 * pace_ms):
            break
        begun = time.monotonic()
        ids = best.ids[len(before.ids) :]
        expected = [best.misfits.get(place, -1) for place in range(len(ids))]
        gained, written = 0.0, ids
        taken_back = _taken_back(opened.canvas, ids, best.misfits, desk)
        for step in _steps(task, opened, desk, limits, [taken_back], hints=[expected]):
            (canvas,), (gained,), (slot,) = step.canvases, step.log_p, step.drafts
            written = canvas.middle
            yield Draft(ids=best.ids, canvas=canvas, slot=slot)
        pace_ms = (time.monotonic() - begun) * 1000
        desk.tally.renoised += len(best.misfits)
        # Its decoder score is that of all that was accepted on the way, what was taken back included.
        again = Written(ids=written, length=len(ids), decoder_score=best.decoder_score - before.decoder_score + gained)
        (revised,) = _scored([again], task, before, opened, desk)
        if revised.score <= best.score:
            break
        desk.tally.revised += sum(a != b for a, b in zip(ids, written, strict=True))
        middles = [revised, *(middle for middle in middles if middle.ids != revised.ids)]
    return middles


def _taken_back(canvas: Canvas, ids: tuple[int, ...], places: Collection[int], desk: Desk) -> Canvas:
    """The closed canvas of a middle whose ids at `places` are masked and free again. `canvas`: the open one."""
    widths = (*desk.profile.layout.widths, len(canvas.slot))
    closed = closed_canvas(canvas, len(ids), next(width for width in widths if width >= len(ids)))
    slot = [closed.slot[place] if place in places else token for place, token in enumerate(ids)]
    free = [place in places for place in range(len(ids))]
    return closed.written((*slot, *closed.slot[len(ids) :]), (*free, *closed.free[len(ids) :]))


def _scored(written: Sequence[Written], task: Task, before: Middle, opened: Opened, desk: Desk) -> list[Middle]:
    """Step 4: the middles, best first, each once, with the decoder score of the first that has it."""
    if not written:
        return []
    distinct = list({one.ids: one for one in reversed(written)}.values())[::-1]
    pins = task.prompt.pins[:SCORED_PINS]
    rules = task.rules if task.corrections else None
    reads = read(desk.model, desk.cache, [one.ids for one in distinct], pins, rules, task.copies, before.ids)
    desk.tally.encodes += 1
    log_p = [_conditional(found.log_p, one.ids, task, opened) for one, found in zip(distinct, reads, strict=True)]
    middles = [
        Middle(
            ids=before.ids + one.ids,
            ended=one.length < task.width,
            length_score=before.length_score + opened.log_p(one.length),
            decoder_score=before.decoder_score + one.decoder_score,
            encoder_score=before.encoder_score + sum(gained),
            suffix_score=found.suffix,
            least=min((before.least, *gained)),
            misfits=found.misfits,
            known=task.known.get(one.ids, 0.0),
            whole=task.whole(before.ids + one.ids),
        )
        for one, found, gained in zip(distinct, reads, log_p, strict=True)
    ]
    return _ranked(middles)


def _conditional(log_p: Sequence[float], ids: tuple[int, ...], task: Task, opened: Opened) -> tuple[float, ...]:
    """log_p of `ids`, given what is forced: that of the ids which it takes to spell it become one."""
    if not task.prompt.forced:
        return tuple(log_p)
    count = task.speller.covering(ids, task.prompt.forced)
    return sum(log_p[:count]) - opened.spelled.log_p, *log_p[count:]


def _ranked(middles: Iterable[Middle]) -> list[Middle]:
    """Best first."""
    return sorted(middles, key=lambda middle: (not middle.whole, -middle.score))


def _denoised(
    task: Task, before: Middle, opened: Opened, desk: Desk, limits: Limits, pace_ms: float
) -> Generator[Draft, None, tuple[list[Written], Finish]]:
    """Step 3: what becomes of the likeliest lengths and of the hints. Canvases that were given up are left out."""
    hints = [hint for hint in opened.hints if hint.begins and hint.ids[: len(opened.spelled.ids)] == opened.spelled.ids]
    lengths = [*opened.lengths, *(len(hint.ids) for hint in hints)]
    widths = (*desk.profile.layout.widths, task.width)
    width = next(width for width in widths if width > max(lengths) or width == task.width)
    closed = [opened.begin(closed_canvas(opened.canvas, length, width)) for length in opened.lengths]
    closed += [hint.canvas(opened.begin(closed_canvas(opened.canvas, len(hint.ids), width))) for hint in hints]
    carried = [0.0] * len(opened.lengths) + [hint.confirmed_score for hint in hints]
    expected = [_aligned(opened.hints, length) for length in opened.lengths] + [hint.ids for hint in hints]
    finish: Finish = "stop"
    log_p = promise = (0.0,) * len(closed)
    priors = [opened.log_p(length) + score for length, score in zip(lengths, carried, strict=True)]
    for step in _steps(
        task, opened, desk, limits, closed, hints=expected, priors=priors, keep=task.candidates, pace_ms=pace_ms
    ):
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


def _steps(
    task: Task,
    opened: Opened,
    desk: Desk,
    limits: Limits,
    canvases: Sequence[Canvas],
    *,
    hints: Sequence[Sequence[int] | None],
    priors: Sequence[float] = (),
    keep: int | None = None,
    pace_ms: float = 0.0,
) -> Iterator[Step]:
    """The denoising steps of a task's canvases, each counted."""
    for step in denoise(
        desk.model,
        desk.cache,
        canvases,
        rules=opened.rules,
        sampler=desk.profile.sampler,
        steps=task.steps,
        specials=desk.profile.specials,
        seed=task.seed,
        limits=limits,
        hints=hints,
        priors=priors,
        keep=keep,
        pace_ms=pace_ms,
    ):
        desk.tally.forwards += 1
        yield step
