"""Step 1 of a fill (infill.py): what one forward over an open canvas says of the middle's length, and what it says of
middles that may be right.

Also what every step works on: the task, and the desk with model and cache. Knows ids and tensors; knows no text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from diffusion.canvas import Canvas, closed_canvas, open_canvas
from diffusion.copying import Copies, mixed
from diffusion.denoise import Rules
from diffusion.kv_cache import KeyValueCache
from diffusion.layouts import Prompt
from diffusion.lengths import Floats, distribution, likeliest
from diffusion.model import ResidentModel
from diffusion.profiles import Calibration, ModelProfile
from diffusion.samplers import BANNED, propose
from diffusion.spelling import Typed

BEGIN_MARGIN = 2.0
"""Nats. A hint whose first id is so much less likely than the likeliest one is no more than a candidate: most often the
author is still in the middle of a word."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """What to fill, in ids. `one_line`: a newline ends the middle. `newline` and `ends`, which ends a line written left
    to right: (V,) bool. `candidates`: so many at least. `hints`: middles that may be right, none empty nor as long as
    the slot. `known`: how likely some of them are to be right, from 0 to 1, before the model looks at them. `length`:
    the true length, if it is known. `copies` from the text around the cursor, where the profile wants them. `drafted`:
    lines written left to right are candidates. `whole`: can the line end with this middle? `speller`: says how to spell
    what the prompt forces."""

    prompt: Prompt
    rules: Rules
    width: int
    one_line: bool
    newline: Tensor
    ends: Tensor
    candidates: int
    steps: int
    canvases: int
    speller: Typed
    corrections: int = 0
    seed: int = 0
    hints: tuple[tuple[int, ...], ...] = ()
    known: Mapping[tuple[int, ...], float] = field(default_factory=dict)
    length: int | None = None
    copies: Copies | None = None
    drafted: bool = False
    whole: Callable[[tuple[int, ...]], bool] = lambda _: True


@dataclass(kw_only=True)
class Tally:
    """What a fill has cost so far: decoder calls (a batch counts once), encoder calls, encoded and reused ids; and how
    many ids were taken back, and became others, in self-correction."""

    forwards: int = 0
    encodes: int = 0
    encoded: int = 0
    cached: int = 0
    renoised: int = 0
    revised: int = 0


@dataclass(frozen=True, kw_only=True)
class Desk:
    """What a fill works with: the model, the cache of its document window, the profile, and the running cost."""

    model: ResidentModel
    cache: KeyValueCache
    profile: ModelProfile
    tally: Tally

    def encode(self, ids: Sequence[int], *, goes_on: bool = False) -> None:
        """Make the cache hold exactly `ids`, and count what that took. What is there of the same fill, which `goes_on`,
        does not count as reused."""
        encoded = self.model.encode(ids, self.cache)
        self.tally.encodes += bool(encoded)
        self.tally.encoded += encoded
        self.tally.cached += 0 if goes_on else len(ids) - encoded


@dataclass(frozen=True, kw_only=True)
class Hint:
    """A middle that may be right, and per position whether the model would write it there and its log probability.
    `begins`: its first id is not much less likely than any other, whatever the length."""

    ids: tuple[int, ...]
    begins: bool
    agreed: tuple[bool, ...]
    log_p: tuple[float, ...]

    @property
    def score(self) -> float:
        return sum(self.log_p)

    @property
    def confirmed_score(self) -> float:
        return sum(log_p for log_p, agreed in zip(self.log_p, self.agreed, strict=True) if agreed)

    def canvas(self, closed: Canvas) -> Canvas:
        """`closed`, an empty canvas of this length, with what is confirmed committed."""
        slot, free = list(closed.slot), list(closed.free)
        for place, (token, agreed) in enumerate(zip(self.ids, self.agreed, strict=True)):
            if agreed:
                slot[place], free[place] = token, False
        return closed.written(tuple(slot), tuple(free))


@dataclass(frozen=True, kw_only=True)
class Spelled:
    """By the encoder, of what the prompt forces: the `ids` that spell its beginning, the `rest` that the next id has to
    begin with, the log probability (nats) of all of it, and the logits (V,) behind `ids`."""

    ids: tuple[int, ...] = ()
    rest: str = ""
    log_p: float = 0.0
    ahead: Tensor


@dataclass(frozen=True, kw_only=True)
class Opened:
    """What step 1 has found: log probabilities `seen` (W, V) on the open canvas, its argmax `slot` with those of its
    ids, the `lengths` to try, likeliest first, and the `probabilities` (W + 1,) of all.

    `spelled`: what the prompt forces; the `rules` know the rest of that, from its ids on."""

    canvas: Canvas
    seen: Tensor
    slot: tuple[int, ...]
    slot_log_p: tuple[float, ...]
    lengths: tuple[int, ...]
    probabilities: Floats
    hints: tuple[Hint, ...]
    rules: Rules
    spelled: Spelled

    def begin(self, canvas: Canvas) -> Canvas:
        """`canvas`, whose slot is free, with what is `spelled` committed."""
        ids = self.spelled.ids
        return canvas.written((*ids, *canvas.slot[len(ids) :]), (False,) * len(ids) + canvas.free[len(ids) :])

    def log_p(self, length: int) -> float:
        return float(np.log(max(self.probabilities[length], 1e-9)))

    def score(self, ids: tuple[int, ...]) -> float:
        """The log probability of `ids` here, before any of them is known."""
        places = torch.arange(len(ids), device=self.seen.device)
        return float(self.seen[places, torch.tensor(ids, dtype=torch.long, device=self.seen.device)].sum())


def first_canvas(task: Task, desk: Desk) -> Canvas:
    """The open canvas of step 1."""
    return open_canvas(desk.profile, task.width, task.prompt.cut, task.prompt.pins)


def end_probabilities(task: Task, canvas: Canvas, desk: Desk) -> tuple[Floats, Tensor]:
    """Per slot position, the raw probability (W,) that the middle is over there; and the logits (W, V)."""
    model = desk.model
    hidden = model.decode(model.tensor([canvas.ids]), model.tensor([canvas.positions]), desk.cache)
    raw = model.logits(hidden[0, : task.width])
    return _ends(task, canvas.end, raw), raw


def _ends(task: Task, end: int, raw: Tensor) -> Floats:
    """Logits (W, V) of an open canvas -> per position the raw probability (W,) that the middle is over there."""
    p = torch.softmax(raw, dim=-1)
    ends = p[:, end]
    if task.one_line:
        # The model may see several lines ahead; for a single one, its first newline is the end.
        newlines = p[:, task.newline].sum(-1)
        if task.prompt.starts_line:
            newlines[0] = 0.0
        ends = ends + newlines
    return ends.double().cpu().numpy()


def opened(task: Task, desk: Desk) -> Opened:
    """One forward: the open canvas, and beside it a closed one per hint. Hints with banned ids are left out."""
    model, canvas = desk.model, first_canvas(task, desk)
    hints = [closed_canvas(canvas, len(hint), task.width) for hint in task.hints]
    rows = [canvas, *hints]
    hidden = model.decode(
        model.tensor([row.ids for row in rows]), model.tensor([row.positions for row in rows]), desk.cache
    )
    raw = model.logits(hidden[0, : task.width])
    places = torch.arange(task.width, device=raw.device)
    spelled, rules, shortest = _spelled(task, desk), task.rules, int(task.prompt.starts_line)
    if task.prompt.forced:
        rules = replace(rules, at_first=task.speller.only(spelled.rest), first=len(spelled.ids))
        shortest = len(spelled.ids) + 1
    probabilities = distribution(calibrated(_ends(task, canvas.end, raw), desk.profile.calibration))
    if task.length is not None:
        chosen = [min(max(task.length, shortest), task.width)]
    else:
        sampler = desk.profile.sampler
        chosen = likeliest(probabilities, sampler.lengths, task.candidates, sampler.length_mass, shortest)
    seen = task.rules.apply(raw, places).log_softmax(-1)
    begins = seen[0] >= seen[0].max() - BEGIN_MARGIN  # (V,)
    drafted = seen if not task.prompt.forced else rules.apply(raw, places).log_softmax(-1)
    slot_log_p, likeliest_ids = drafted.max(-1)
    slot = (*spelled.ids, *likeliest_ids[len(spelled.ids) :].tolist())
    checked = [
        _checked(hint, task.rules.apply(model.logits(row[: len(hint)]), places[: len(hint)]), begins, model)
        for hint, row in zip(task.hints, hidden[1:], strict=True)
    ]
    return Opened(
        canvas=canvas,
        seen=seen,
        slot=slot,
        slot_log_p=tuple(slot_log_p.tolist()),
        lengths=tuple(chosen),
        probabilities=probabilities,
        hints=tuple(hint for hint in checked if min(hint.log_p) > BANNED / 2),
        rules=rules,
        spelled=spelled,
    )


def _spelled(task: Task, desk: Desk) -> Spelled:
    """Greedy: an id that spells a part is taken where it is likelier than all together that complete it."""
    model, hidden = desk.model, desk.cache.last_hidden
    assert hidden is not None
    spelled = Spelled(rest=task.prompt.forced, ahead=model.logits(hidden[0]))
    while spelled.rest:
        log_p = mixed(spelled.ahead.log_softmax(-1), task.copies, spelled.ids)
        whole = float(log_p[task.speller.completing(spelled.rest)].logsumexp(-1))
        piece = max(task.speller.pieces(spelled.rest), key=lambda token: float(log_p[token]), default=None)
        if piece is None or float(log_p[piece]) <= whole:
            return replace(spelled, log_p=spelled.log_p + whole)
        ids = (*spelled.ids, piece)
        desk.tally.encodes += 1
        spelled = Spelled(
            ids=ids,
            rest=task.speller.after(piece, spelled.rest),
            log_p=spelled.log_p + float(log_p[piece]),
            ahead=model.logits(model.continuations(model.tensor([ids]), desk.cache)[0, -1]),
        )
    return spelled


def _checked(hint: tuple[int, ...], logits: Tensor, begins: Tensor, model: ResidentModel) -> Hint:
    """What the model says of a hint on a canvas of its length that shows nothing of it; logits (L, V)."""
    ids = model.tensor([hint])[0]
    proposed = propose(logits, 0.0, None, ids)
    return Hint(
        ids=hint,
        begins=bool(begins[hint[0]]),
        agreed=tuple((proposed.ids == ids).tolist()),
        log_p=tuple(proposed.hint_log_p.double().tolist()),
    )


def calibrated(ends: Floats, calibration: Calibration | None) -> Floats:
    """End-of-middle probabilities after the profile's calibration: sigmoid(scale * logit + bias)."""
    ends = np.clip(ends, 1e-9, 1 - 1e-9)
    if calibration is None:
        return ends
    logit = np.log(ends / (1 - ends)) * calibration.end_scale + calibration.end_bias
    return np.asarray(1 / (1 + np.exp(-logit)))
