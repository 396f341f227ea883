"""The denoising loop: a batch of canvases against one cache, step by step, until every free position is written.

Each step, lettered as in the code:
  A  forward: the decoder reads slot and pins, and the cache before them
  B  logits of the free positions only, banned ids taken out
  C  propose an id for each of them
  D  accept the surest ones (samplers.accept), at least one per canvas; in the last step all
  E  write them; absorbing noise keeps the others masked, uniform noise draws new random ids for them
  F  give up canvases that have fallen behind the best one; stop where nothing is free any more (absorbing) or where
     the canvas has settled (uniform)
After every step the proposals are a complete draft, so that the loop can end at any time.
Knows ids and tensors; knows no text and not where lengths come from.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.canvas import Canvas
from diffusion.kv_cache import KeyValueCache
from diffusion.model import ResidentModel
from diffusion.profiles import Sampler
from diffusion.samplers import BANNED, Proposal, accept, propose, temperature_at, uniform_noise
from diffusion.stopping import Limits, settled

SETTLED_ENTROPY = 0.02
"""Nats. A canvas of uniform noise has settled when it repeats itself and its free positions are this sure."""

ROWS_AT_ONCE = 96
"""Logits of so many rows are made at a time: larger tensors are new memory at every step, which costs more than all
that is done with them."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What may be written, as additions to logits (V,): 0 or BANNED. `at_first` holds at the slot's position `first`,
    which is the first one that is free."""

    elsewhere: Tensor
    at_first: Tensor
    first: int = 0

    @classmethod
    def banning(cls, elsewhere: Tensor, at_first: Tensor) -> Rules:
        """From (V,) bool masks of what is banned."""
        return cls(elsewhere=elsewhere.float() * BANNED, at_first=at_first.float() * BANNED)

    def apply(self, logits: Tensor, places: Tensor) -> Tensor:
        """logits (N, V) at a slot's `places` (N,). Returns the logits with bans."""
        logits = logits + self.elsewhere
        logits[places == self.first] += self.at_first - self.elsewhere
        return logits


@dataclass(frozen=True, kw_only=True)
class Step:
    """The batch after a step: `canvases` as committed, `drafts` with every free position at its likeliest id.

    `log_p`: per canvas, the summed log probability (nats) of what was accepted. `promise`: that of the whole draft as
    it looks now, with the canvas's prior; minus infinity where the canvas was given up. `finish` is set in the last
    step.
    """

    canvases: tuple[Canvas, ...]
    drafts: tuple[tuple[int, ...], ...]
    log_p: tuple[float, ...]
    promise: tuple[float, ...]
    finish: Finish | None

    @property
    def best(self) -> int:
        """Which canvas promises most."""
        return max(range(len(self.promise)), key=self.promise.__getitem__)


@torch.inference_mode()
def denoise(
    model: ResidentModel,
    cache: KeyValueCache,
    canvases: Sequence[Canvas],
    *,
    rules: Rules,
    sampler: Sampler,
    steps: int,
    specials: int,
    seed: int = 0,
    limits: Limits | None = None,
    hints: Sequence[Sequence[int] | None] = (),
    priors: Sequence[float] = (),
    keep: int | None = None,
    pace_ms: float = 0.0,
) -> Iterator[Step]:
    """Yield a Step per denoising step. The canvases share cut, slot width and number of pins.

    `hints`: per canvas ids that are expected, -1 where none is; where the model finds one nearly as likely as its own
    proposal, it is accepted at once. `priors`: per canvas its log probability before the first step, in nats. Canvases
    that promise `sampler.margin` nats less than the best one are given up, but `keep` of them stay (None: all).
    `pace_ms`: what a step may take, for the first one: a step behind which no other fits before the deadline is the
    last.
    Raises Cancelled between two steps when nobody waits any more.
    """
    limits = limits or Limits()
    count, width = len(canvases), len(canvases[0].slot)
    ids = model.tensor([canvas.slot for canvas in canvases])  # (B, W)
    generator = torch.Generator(ids.device).manual_seed(seed)
    free = torch.tensor([canvas.free for canvas in canvases], device=ids.device)  # (B, W)
    pins = model.tensor([canvas.pins for canvas in canvases]).view(count, -1)  # (B, P)
    positions = model.tensor([canvas.positions for canvas in canvases])  # (B, W + P)
    hinted = model.tensor([_padded(hints[row] if row < len(hints) else None, width) for row in range(count)])
    places = torch.arange(width, device=ids.device)
    if sampler.noise == "uniform":
        noise = uniform_noise(ids.shape, specials, model.vocabulary_size, generator, ids.device)
        ids = torch.where(free, noise, ids)
    writable, drafts = free.clone(), ids.clone()
    prior = torch.tensor(priors or [0.0] * count, dtype=torch.float64)
    log_p, promise = torch.zeros(count, dtype=torch.float64), prior.clone()
    active = free.any(-1)
    signal: Tensor | None = None
    previous: Tensor | None = None
    for step in range(steps):
        begun = time.monotonic()
        if not active.any():
            break
        late = limits.late(2 * pace_ms)  # Would the step after this one miss the deadline? Then this one is the last.
        last = step == steps - 1 or late
        rows = active.nonzero()[:, 0]
        scored = rows.cpu()  # log_p, promise and prior are kept there
        marks = free[rows]
        # A, B, C
        signals = None if signal is None else _signal(signal[rows], ids[rows], pins[rows], writable[rows], sampler)
        hidden = model.decode(torch.cat((ids[rows], pins[rows]), 1), positions[rows], cache, *(signals or ()))
        proposed, logits = _proposals(
            model,
            hidden[:, :width][marks],
            rules,
            places.expand_as(marks)[marks],
            hinted[rows][marks],
            temperature_at(sampler.temperature, step, steps),
            generator,
            keep_logits=sampler.self_conditioning != "none",
        )
        drafted = drafts[rows].masked_scatter(marks, proposed.likeliest)
        proposals = ids[rows].masked_scatter(marks, proposed.ids)
        entropies = torch.zeros(marks.shape, device=ids.device).masked_scatter(marks, proposed.entropy)
        chances = torch.zeros_like(entropies).masked_scatter(marks, proposed.log_p)
        # D
        accepted = marks if last else accept(entropies, marks, sampler.entropy_bound)
        accepted = accepted | (marks & (proposals == hinted[rows]))
        # E
        drafts[rows] = drafted
        whole = log_p[scored] * (sampler.noise == "absorbing") + (chances * marks).sum(-1).double().cpu()
        promise[scored] = prior[scored] + whole
        if sampler.noise == "absorbing":
            ids[rows] = torch.where(accepted, proposals, ids[rows])
            free[rows] = marks & ~accepted
            log_p[scored] += (chances * accepted).sum(-1).double().cpu()
            active = free.any(-1) & promise.isfinite().to(free.device)
        else:
            noise = uniform_noise(drafted.shape, specials, model.vocabulary_size, generator, ids.device)
            ids[rows] = torch.where(accepted, proposals, torch.where(marks, noise, ids[rows]))
            log_p[scored] = whole
            done = settled(None if previous is None else previous[rows], drafted, entropies, marks, SETTLED_ENTROPY)
            if last:
                done = torch.ones_like(done)
            ids[rows[done]] = drafted[done]
            free[rows[done]] = False
            active[rows[done]] = False
            previous = drafts.clone()
        if logits is not None:
            full = torch.zeros((*ids.shape, logits.shape[-1]), device=ids.device) if signal is None else signal
            full[rows] = full[rows].masked_scatter(marks[..., None], logits)
            signal = full
        # F
        if keep is not None:
            promise[_behind(promise, keep, sampler.margin)] = -math.inf
            active &= promise.isfinite().to(active.device)
        finish: Finish | None = None if active.any() else "deadline" if late else "stop"
        pace_ms = (time.monotonic() - begun) * 1000
        yield Step(
            canvases=tuple(
                canvas.written(tuple(slot), tuple(marks))
                for canvas, slot, marks in zip(canvases, ids.tolist(), free.tolist(), strict=True)
            ),
            drafts=tuple(map(tuple, drafts.tolist())),
            log_p=tuple(log_p.tolist()),
            promise=tuple(promise.tolist()),
            finish=finish,
        )


def _proposals(
    model: ResidentModel,
    hidden: Tensor,
    rules: Rules,
    places: Tensor,
    hints: Tensor,
    temperature: float,
    generator: torch.Generator,
    *,
    keep_logits: bool,
) -> tuple[Proposal, Tensor | None]:
    """Steps B and C for hidden rows (N, H). The logits (N, V) only where they are needed again."""
    parts, kept = [], []
    for start in range(0, len(hidden), ROWS_AT_ONCE):
        part = slice(start, start + ROWS_AT_ONCE)
        logits = rules.apply(model.logits(hidden[part]), places[part])
        parts.append(propose(logits, temperature, generator, hints[part]))
        kept += [logits] * keep_logits
    columns = {field.name: torch.cat([getattr(part, field.name) for part in parts]) for field in fields(Proposal)}
    return Proposal(**columns), torch.cat(kept) if kept else None


def _behind(promise: Tensor, keep: int, margin: float) -> Tensor:
    """promise (B,) -> (B,) bool: the canvases that are too far behind the best one, of which `keep` stay."""
    least = promise.sort(descending=True).values[min(keep, len(promise)) - 1]
    return promise < torch.minimum(promise.max() - margin, least)


def _signal(
    logits: Tensor, ids: Tensor, pins: Tensor, writable: Tensor, sampler: Sampler
) -> tuple[Tensor, Tensor | None]:
    """Self-conditioning for slot and pins: (B, W + P, V) logits, and (B, W + P) where they count (None: everywhere).

    Pinned and committed positions have no prediction of their own: their signal is zero, or one-hot, as the profile
    says.
    """
    fixed = torch.cat((~writable, torch.ones_like(pins, dtype=torch.bool)), 1)
    padded = torch.cat((logits, logits.new_zeros(*pins.shape, logits.shape[-1])), 1)
    if sampler.self_conditioning == "zero_at_pins":
        return padded, (~fixed).to(logits.dtype)
    one_hot = torch.full_like(padded, BANNED).scatter_(-1, torch.cat((ids, pins), 1)[..., None], 0.0)
    return torch.where(fixed[..., None], one_hot, padded), None


def _padded(hint: Sequence[int] | None, width: int) -> list[int]:
    return [*(hint or ())][:width] + [-1] * (width - len(hint or ()))
