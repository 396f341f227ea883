"""From a chat prompt to candidate middles, for models that were not trained to say how long a middle is:

  1  float: a free canvas is denoised for a few steps; the model writes the middle and goes on into the suffix
  2  align: where the suffix begins in the draft, the middle ends (alignment.py)
  3  clamp: slots of that length and of a few around it, the suffix pinned behind them, are denoised as one batch
  4  choose: the middle that leads over to the suffix, when its head is renoised, and that the model is sure of
Where step 2 finds nothing, one forward over a batch of lengths says which of them to clamp (lengths.surest); a span
that may go over several canvases commits its canvas instead and floats on in the next. Where nothing follows, the
floating canvas itself is the answer, up to where the model ends its text.

The same interface as infill.py. Knows ids, tensors and the text of drafts; knows no requests and no clients.
Never run on the 26B checkpoint: how often step 2 finds the suffix there is not known.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace

from diffusion.alignment import Alignment, align
from diffusion.api import Finish
from diffusion.canvas import Canvas, span_canvas
from diffusion.chat_layout import ChatPrompt, Texts, pieces
from diffusion.infill import Draft, Middle, Outcome
from diffusion.lengths import surest
from diffusion.opening import Desk
from diffusion.profiles import Chat
from diffusion.span_rules import Alphabet, SpanRules
from diffusion.stopping import Limits
from diffusion.uniform import SpanStep, denoise, restored

LEAD = 0.5
"""Nats per id by which a finished middle has to lead for the others to be given up."""

BEST_LENGTHS = 2
"""Lengths that are clamped where no suffix was found."""


@dataclass(frozen=True, kw_only=True)
class SpanTask:
    """What to write. `width`: of the canvas that floats. `one_line`: no newline in the middle. `canvases`: so many may
    follow one another; with one, a length is searched where no suffix is found. `hints`: middles that may be right,
    with what the prompt's healing took; `length`: the true one, if it is known. Lengths and hints in ids."""

    prompt: ChatPrompt
    texts: Texts
    alphabet: Alphabet
    width: int
    one_line: bool
    candidates: int
    steps: int
    canvases: int = 1
    seed: int = 0
    hints: tuple[tuple[int, ...], ...] = ()
    length: int | None = None

    def rules(self, first: bool, *, one_line: bool, may_end: bool = False) -> SpanRules:
        """What may be written; on the first canvas it begins with what healing took."""
        forced = self.prompt.healed.forced if first else ""
        return self.alphabet.rules(one_line=one_line, fences=self.prompt.fences, forced=forced, may_end=may_end)


@dataclass(frozen=True, kw_only=True)
class _Floated:
    """A draft of step 1. `ids` are those before the text's end, which the model has set where `over`."""

    ids: tuple[int, ...]
    over: bool
    log_p: float
    finish: Finish
    aligned: Alignment | None


def fill(task: SpanTask, desk: Desk, limits: Limits) -> Iterator[Draft | Outcome]:
    """Yield a Draft per decoder call, then one Outcome. Raises Cancelled between steps when nobody waits any more."""
    written: tuple[int, ...] = ()
    for part in range(task.canvases):
        limits.late()
        task = replace(task, seed=task.seed + part)
        _encode(task, written, desk)
        if task.length is not None:
            known = max(1, min(task.length, _widest(desk)))
            yield (yield from _clamped(task, [known], (), written, desk, limits))
            return
        floated = yield from _float(task, written, desk, limits)
        found = floated.over or floated.aligned is not None
        if not found and part + 1 < task.canvases and floated.finish == "stop":
            written += _whole_lines(task, floated.ids)
            continue
        start = _middle(task, floated)
        if floated.finish == "deadline" or task.prompt.open_end or not start or (not found and task.canvases > 1):
            middle = Middle(ids=written + start, ended=found, decoder_score=floated.log_p)
            yield Outcome(
                middles=(middle,), finish="length" if not found and floated.finish == "stop" else floated.finish
            )
            return
        lengths = _around(task, len(start), bool(written), desk) if found else []
        yield (yield from _clamped(task, lengths, start, written, desk, limits))
        return


def _encode(task: SpanTask, written: tuple[int, ...], desk: Desk) -> None:
    encoder = task.prompt.encoder + written
    encoded = desk.model.encode(encoder, desk.cache)
    desk.tally.encodes += bool(encoded)
    desk.tally.encoded += encoded
    desk.tally.cached += len(encoder) - encoded


# --- 1 and 2: float, align ----------------------------------------------------------------------------------------


def _float(task: SpanTask, written: tuple[int, ...], desk: Desk, limits: Limits) -> Generator[Draft, None, _Floated]:
    """Steps 1 and 2. The canvas floats until its middle is found twice in a row; without a suffix, until it settles."""
    chat, prompt = _chat(desk), task.prompt
    canvas = _canvas(task, task.width, task.width, written, desk)
    # Where a canvas may run past the end of the file, the model has to be able to say so.
    may_end = prompt.open_end or (prompt.ends and len(prompt.suffix_ids) < task.width)
    alone = prompt.open_end or task.canvases > 1
    steps = task.steps if alone else min(task.steps, chat.float_steps)
    hint = (*task.hints[0], *prompt.suffix_ids)[: task.width] if task.hints and not written else ()
    floated: _Floated | None = None
    for step in _denoise(
        task, [canvas], [hint], task.rules(not written, one_line=False, may_end=may_end), steps, desk, limits
    ):
        before = floated
        floated = _read(task, step, bool(written))
        yield Draft(ids=written + _middle(task, floated), canvas=replace(canvas, free=_open(step)), slot=step.drafts[0])
        same = before is not None and before.aligned is not None and before.aligned == floated.aligned
        if same:
            break
    assert floated is not None
    return replace(floated, finish="deadline" if limits.late(step.ms) else "stop")


def _read(task: SpanTask, step: SpanStep, later: bool) -> _Floated:
    """The first draft of a step up to the end of its text, and where the suffix begins in it."""
    ids = step.drafts[0]
    ends = task.alphabet.ends if task.prompt.fences else task.alphabet.ends | task.alphabet.closing
    end = next((at for at, token in enumerate(ids) if token in ends), len(ids))
    over = end < len(ids)
    text = task.texts.decode(ids[:end])
    forced = "" if later else task.prompt.healed.forced
    aligned = align(text, task.prompt.suffix, one_line=task.one_line, first=len(forced), over=over)
    return _Floated(ids=ids[:end], over=over, log_p=step.log_p[0], finish="stop", aligned=aligned)


def _middle(task: SpanTask, floated: _Floated) -> tuple[int, ...]:
    """The ids of the middle in a draft. Where its end cuts through an id, the text up to there is encoded anew."""
    if floated.aligned is None:
        return floated.ids
    middle, at, count = floated.aligned.middle, 0, 0
    for token in floated.ids:
        said = task.alphabet.texts[token]
        if not said or not middle.startswith(said, at):
            break
        at, count = at + len(said), count + 1
    return (*floated.ids[:count], *encode(middle[at:], task.texts))


def _whole_lines(task: SpanTask, ids: tuple[int, ...]) -> tuple[int, ...]:
    """`ids` up to their last newline, so that the next canvas begins where a token does."""
    last = max((at for at, token in enumerate(ids) if "\n" in task.alphabet.texts[token]), default=0)
    return ids[:last] or ids


def encode(text: str, texts: Texts) -> tuple[int, ...]:
    """Ids of `text`, which has line ends LF."""
    return tuple(token for piece in pieces(text) for token in texts.encode_line(piece))


# --- 3 and 4: clamp, choose ---------------------------------------------------------------------------------------


def _clamped(
    task: SpanTask,
    lengths: Sequence[int],
    start: tuple[int, ...],
    written: tuple[int, ...],
    desk: Desk,
    limits: Limits,
) -> Generator[Draft, None, Outcome]:
    """Steps 3 and 4 over `lengths`, likeliest first; without any, those that the model is surest of."""
    rules = task.rules(not written, one_line=task.one_line)
    hints = [] if written or task.prompt.open_end else [hint for hint in task.hints if len(hint) <= _widest(desk)]
    if not lengths:
        lengths = yield from _surest(task, rules, written, desk, limits)
        start = ()
    spans = {length: start[:length] for length in lengths} | {
        len(hint): hint for hint in hints if len(hint) >= max(1, rules.shortest)
    }
    width = _width(max(spans) + desk.profile.layout.pins, desk)
    canvases = [_canvas(task, length, width, written, desk) for length in spans]
    step: SpanStep | None = None
    for step in _denoise(task, canvases, list(spans.values()), rules, task.steps, desk, limits):
        shown = replace(canvases[0], free=_open(step))
        yield Draft(ids=written + step.drafts[0], canvas=shown, slot=step.drafts[0])
        if _leads(step):
            break
    assert step is not None
    done = [
        replace(canvas, slot=draft, free=(False,) * len(draft))
        for canvas, draft in zip(canvases, step.drafts, strict=True)
    ]
    late = limits.late(step.ms)
    scores = [0.0] * len(done)
    if not late and len(done) > 1:
        scores = restored(desk.model, desk.cache, done, _chat(desk).restored, task.seed)
        desk.tally.forwards += 1
    middles = [
        Middle(ids=written + canvas.slot, ended=True, decoder_score=log_p, suffix_score=score)
        for canvas, log_p, score in zip(done, step.log_p, scores, strict=True)
    ]
    return Outcome(
        middles=tuple(sorted(middles, key=lambda middle: -middle.score)), finish="deadline" if late else "stop"
    )


def _leads(step: SpanStep) -> bool:
    """Is a canvas done that those which go on will hardly catch up with?"""
    best = max((log_p for log_p, done in zip(step.log_p, step.done, strict=True) if done), default=-math.inf)
    return best > LEAD + max(
        (log_p for log_p, done in zip(step.log_p, step.done, strict=True) if not done), default=0.0
    )


def _surest(
    task: SpanTask, rules: SpanRules, written: tuple[int, ...], desk: Desk, limits: Limits
) -> Generator[Draft, None, list[int]]:
    """The lengths of the profile that fit best, after one forward over all of them."""
    chat, widest = _chat(desk), _widest(desk)
    lengths = sorted({max(length, rules.shortest, 1) for length in chat.lengths if length <= widest})
    width = _width(max(lengths) + desk.profile.layout.pins, desk)
    canvases = [_canvas(task, length, width, written, desk) for length in lengths]
    (step,) = _denoise(task, canvases, [], rules, 1, desk, limits)
    best = surest(lengths, step.sure, chat.length_bias, max(BEST_LENGTHS, min(task.candidates, len(lengths))))
    draft = step.drafts[lengths.index(best[0])]
    shown = replace(canvases[lengths.index(best[0])], free=(True,) * best[0])
    yield Draft(ids=written + draft, canvas=shown, slot=draft)
    return best


def _around(task: SpanTask, length: int, later: bool, desk: Desk) -> list[int]:
    """`length` and those beside it, likeliest first."""
    least = max(1, 0 if later else task.rules(True, one_line=task.one_line).shortest)
    beside = [length + shift for shift in _chat(desk).shifts][: max(desk.profile.sampler.lengths, task.candidates)]
    return [some for some in beside if least <= some <= _widest(desk)] or [max(least, min(length, _widest(desk)))]


def _denoise(
    task: SpanTask,
    canvases: Sequence[Canvas],
    starts: Sequence[Sequence[int]],
    rules: SpanRules,
    steps: int,
    desk: Desk,
    limits: Limits,
) -> Iterator[SpanStep]:
    for step in denoise(
        desk.model,
        desk.cache,
        canvases,
        rules=rules,
        sampler=desk.profile.sampler,
        steps=steps,
        seed=task.seed,
        limits=limits,
        starts=starts,
    ):
        desk.tally.forwards += 1
        yield step


def _canvas(task: SpanTask, length: int, width: int, written: tuple[int, ...], desk: Desk) -> Canvas:
    """A free slot of `length` ids and behind it as much of what follows as fills up `width`."""
    pins = () if task.prompt.open_end else task.prompt.after(width - length)
    return span_canvas(desk.profile, length, task.prompt.cut + len(written), pins)


def _open(step: SpanStep) -> tuple[bool, ...]:
    return tuple(not accepted for accepted in step.accepted[0])


def _width(least: int, desk: Desk) -> int:
    """The smallest canvas of the profile that holds `least` ids, or its widest one."""
    widths = desk.profile.layout.widths
    return next((width for width in widths if width >= least), widths[-1])


def _widest(desk: Desk) -> int:
    """The longest slot, in ids."""
    return desk.profile.layout.widths[-1] - desk.profile.layout.pins


def _chat(desk: Desk) -> Chat:
    assert desk.profile.chat is not None
    return desk.profile.chat
