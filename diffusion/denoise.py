"""The denoising loop: a batch of canvases against one cache, step by step, until every free position is written.

Each step, lettered as in the code:
  A  forward: the decoder reads slot and pins, and the cache before them
  B  logits of the free positions only, banned ids taken out
  C  propose an id for each of them
  D  accept the surest ones (samplers.accept), at least one per canvas; in the last step all
  E  write them; absorbing noise keeps the others masked, uniform noise draws new random ids for them
  F  stop where nothing is free any more (absorbing) or where the canvas has settled (uniform)
After every step the proposals are a complete draft, so that the loop can end at any time.
Knows ids and tensors; knows no text and not where lengths come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.canvas import Canvas
from diffusion.kv_cache import KeyValueCache
from diffusion.model import ResidentModel
from diffusion.profiles import Sampler
from diffusion.samplers import BANNED, accept, propose, temperature_at, uniform_noise
from diffusion.stopping import Limits, settled

SETTLED_ENTROPY = 0.02
"""Nats. A canvas of uniform noise has settled when it repeats itself and its free positions are this sure."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What may be written, as additions to logits (V,): 0 or BANNED. `at_first` holds at the slot's first position."""

    elsewhere: Tensor
    at_first: Tensor

    @classmethod
    def banning(cls, elsewhere: Tensor, at_first: Tensor) -> Rules:
        """From (V,) bool masks of what is banned."""
        return cls(elsewhere=elsewhere.float() * BANNED, at_first=at_first.float() * BANNED)

    def apply(self, logits: Tensor, first: Tensor) -> Tensor:
        """logits (N, V), first (N,) bool: which rows are a slot's first position. Returns the logits with bans."""
        logits = logits + self.elsewhere
        logits[first] += self.at_first - self.elsewhere
        return logits


@dataclass(frozen=True, kw_only=True)
class Step:
    """The batch after a step: `canvases` as committed, `drafts` with every free position at its likeliest id.

    `log_p`: per canvas, the summed log probability (nats) of what was accepted. `finish` is set in the last step.
    """

    canvases: tuple[Canvas, ...]
    drafts: tuple[tuple[int, ...], ...]
    log_p: tuple[float, ...]
    finish: Finish | None


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
) -> Iterator[Step]:
    """Yield a Step per denoising step. The canvases share cut, slot width and number of pins.

    `hints`: per canvas ids that are expected; where the model's proposal is the hint's, it is accepted at once.
    Raises Cancelled between two steps when nobody waits any more.
    """
    limits = limits or Limits()
    width = len(canvases[0].slot)
    generator = torch.Generator().manual_seed(seed)
    ids = model.tensor([canvas.slot for canvas in canvases])  # (B, W)
    free = torch.tensor([canvas.free for canvas in canvases], device=ids.device)  # (B, W)
    pins = model.tensor([canvas.pins for canvas in canvases]).view(len(canvases), -1)  # (B, P)
    positions = model.tensor([canvas.positions for canvas in canvases])  # (B, W + P)
    hinted = model.tensor([_padded(hints[row] if row < len(hints) else None, width) for row in range(len(canvases))])
    first = torch.arange(width, device=ids.device) == 0
    if sampler.noise == "uniform":
        noise = uniform_noise(ids.shape, specials, model.vocabulary_size, generator, ids.device)
        ids = torch.where(free, noise, ids)
    writable, drafts = free.clone(), ids.clone()
    log_p = torch.zeros(len(canvases), dtype=torch.float64)
    active = free.any(-1)
    signal: Tensor | None = None
    previous: Tensor | None = None
    for step in range(steps):
        late = limits.late()
        if not active.any() or (late and step):
            break
        last = step == steps - 1 or late
        rows = active.nonzero()[:, 0]
        marks = free[rows]
        # A, B
        signals = None if signal is None else _signal(signal[rows], ids[rows], pins[rows], writable[rows], sampler)
        hidden = model.decode(torch.cat((ids[rows], pins[rows]), 1), positions[rows], cache, *(signals or ()))
        logits = rules.apply(model.logits(hidden[:, :width][marks]), first.expand_as(marks)[marks])  # (N, V)
        # C
        proposed = propose(logits, temperature_at(sampler.temperature, step, steps), generator)
        drafted = drafts[rows].masked_scatter(marks, proposed.likeliest)
        proposals = ids[rows].masked_scatter(marks, proposed.ids)
        entropies = torch.zeros(marks.shape, device=ids.device).masked_scatter(marks, proposed.entropy)
        chances = torch.zeros_like(entropies).masked_scatter(marks, proposed.log_p)
        # D
        accepted = marks if last else accept(entropies, marks, sampler.entropy_bound)
        accepted = accepted | (marks & (proposals == hinted[rows]))
        # E
        drafts[rows] = drafted
        if sampler.noise == "absorbing":
            ids[rows] = torch.where(accepted, proposals, ids[rows])
            free[rows] = marks & ~accepted
            log_p[rows] += (chances * accepted).sum(-1).double().cpu()
            active = free.any(-1)
        else:
            noise = uniform_noise(drafted.shape, specials, model.vocabulary_size, generator, ids.device)
            ids[rows] = torch.where(accepted, proposals, torch.where(marks, noise, ids[rows]))
            log_p[rows] = (chances * marks).sum(-1).double().cpu()
            done = settled(None if previous is None else previous[rows], drafted, entropies, marks, SETTLED_ENTROPY)
            if last:
                done = torch.ones_like(done)
            ids[rows[done]] = drafted[done]
            free[rows[done]] = False
            active[rows[done]] = False
            previous = drafts.clone()
        if sampler.self_conditioning != "none":
            full = torch.zeros((*ids.shape, logits.shape[-1]), device=ids.device) if signal is None else signal
            full[rows] = full[rows].masked_scatter(marks[..., None], logits)
            signal = full
        # F
        finish: Finish | None = None if active.any() else "deadline" if late else "stop"
        yield Step(
            canvases=tuple(
                canvas.written(tuple(slot), tuple(marks))
                for canvas, slot, marks in zip(canvases, ids.tolist(), free.tolist(), strict=True)
            ),
            drafts=tuple(map(tuple, drafts.tolist())),
            log_p=tuple(log_p.tolist()),
            finish=finish,
        )


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
