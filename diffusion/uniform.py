"""The denoising loop with uniform noise, for checkpoints that have no mask token. Unlike in denoise.py, an accepted
position may be renoised later, and the canvases of a batch may have slots of different lengths.

Each step, lettered as in the code:
  A  forward: the decoder reads slot and pins, the last step's predictions, and the cache before them
  B  logits of the free positions, banned ids taken out, divided by the temperature
  C  propose an id for each of them, by chance; the likeliest ones are the draft
  D  accept the surest ones (samplers.accept), at least one per canvas
  E  write them; all other free positions get new random ids
  F  a canvas whose draft repeats itself and is sure is done and takes no part any more
Pins are written anew in every step, and they have no entropy: stopping and acceptance count free positions only.
The steps are those of the library's sampler (tested against it). Knows ids and tensors; knows no text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.canvas import Canvas
from diffusion.denoise import SETTLED_ENTROPY
from diffusion.kv_cache import KeyValueCache
from diffusion.model import ResidentModel
from diffusion.profiles import Sampler
from diffusion.samplers import BANNED, accept, propose, temperature_at, uniform_noise
from diffusion.span_rules import SpanRules
from diffusion.stopping import Limits, settled


@dataclass(frozen=True, kw_only=True)
class SpanStep:
    """The batch after a step. Per canvas: `drafts`, the slot with every free position at its likeliest id; `accepted`,
    which of them were accepted; `done`, does it take part no more; `log_p` and `sure`, the mean log probability (nats)
    and the mean probability of the draft's ids, at temperature 1 and before ids are banned: a model that would rather
    write a banned one is not sure. `finish` is set in the last step, unless the deadline came between two steps: then
    there is no further one. `ms`: how long it took."""

    drafts: tuple[tuple[int, ...], ...]
    accepted: tuple[tuple[bool, ...], ...]
    done: tuple[bool, ...]
    log_p: tuple[float, ...]
    sure: tuple[float, ...]
    finish: Finish | None
    ms: float


def denoise(
    model: ResidentModel,
    cache: KeyValueCache,
    canvases: Sequence[Canvas],
    *,
    rules: SpanRules,
    sampler: Sampler,
    steps: int,
    seed: int = 0,
    limits: Limits | None = None,
    starts: Sequence[Sequence[int]] = (),
) -> Iterator[SpanStep]:
    """Yield a SpanStep per denoising step. The canvases stand at the same cut and have the same number of ids in all;
    all slots are free.

    `starts`: per canvas the first ids of its slot, which is noise behind them. Raises Cancelled between two steps when
    nobody waits any more.
    """
    limits = limits or Limits()
    batch, width = len(canvases), len(canvases[0].ids)
    pinned = model.tensor([canvas.ids for canvas in canvases])  # (B, T)
    generator = torch.Generator(pinned.device).manual_seed(seed)
    positions = model.tensor([canvas.positions for canvas in canvases])  # (B, T)
    slots = torch.tensor([len(canvas.slot) for canvas in canvases], device=pinned.device)
    free = torch.arange(width, device=pinned.device) < slots[:, None]  # (B, T)
    given = [[*start][:width] + [-1] * (width - len(start)) for start in (*starts, *[()] * (batch - len(starts)))]
    started = model.tensor(given)

    def noise() -> Tensor:
        return uniform_noise(pinned.shape, 0, model.vocabulary_size, generator, pinned.device)

    ids = torch.where(free, torch.where(started >= 0, started, noise()), pinned)
    drafts, accepted = ids.clone(), torch.zeros_like(free)
    log_p, sure = torch.zeros(batch), torch.zeros(batch)
    active = torch.ones(batch, dtype=torch.bool, device=ids.device)
    signal: Tensor | None = None
    previous: Tensor | None = None
    pace_ms = 0.0
    for step in range(steps):
        began = time.monotonic()
        late = limits.late(pace_ms)
        if not active.any() or (late and step):
            break
        last = step == steps - 1 or late
        rows = active.nonzero()[:, 0]
        marks = free[rows]
        # A
        signals = None if signal is None else _signal(signal[rows], ids[rows], marks, sampler)
        hidden = model.decode(ids[rows], positions[rows], cache, *(signals or ()))
        if signal is None and not last and sampler.self_conditioning != "none":
            signal = torch.zeros((batch, width, model.vocabulary_size), device=ids.device, dtype=model.dtype)
        temperature = temperature_at(sampler.temperature, step, steps)
        entropies = torch.zeros(marks.shape, device=ids.device)
        proposals = ids[rows]
        # One canvas after the other: logits are by far the widest tensors.
        for index, row in enumerate(rows.tolist()):
            slot = int(slots[row])
            # B
            bare = model.logits(hidden[index, :slot])  # (L, V)
            logits = rules.apply(bare)
            # C
            proposed = propose(logits, temperature, generator)
            drafts[row, :slot] = proposed.likeliest
            proposals[index, :slot] = proposed.ids
            entropies[index, :slot] = proposed.entropy
            best = bare.gather(-1, proposed.likeliest[:, None])[:, 0] - bare.logsumexp(-1)
            log_p[row], sure[row] = float(best.mean()), float(best.exp().mean())
            if signal is not None:
                signal[row, :slot] = (logits / temperature if temperature else logits).to(signal.dtype)
        # D, E
        accepted[rows] = accept(entropies, marks, sampler.entropy_bound)
        ids = torch.where(free, noise(), pinned)
        ids[rows] = torch.where(accepted[rows], proposals, ids[rows])
        # F
        now = drafts[rows]
        done = settled(None if previous is None else previous[rows], now, entropies, marks, SETTLED_ENTROPY)
        previous = drafts.clone()
        active[rows[done]] = False
        ended = last or not bool(active.any())
        pace_ms = (time.monotonic() - began) * 1000
        yield SpanStep(
            drafts=tuple(
                tuple(draft[: len(canvas.slot)]) for draft, canvas in zip(drafts.tolist(), canvases, strict=True)
            ),
            accepted=tuple(
                tuple(some[: len(canvas.slot)]) for some, canvas in zip(accepted.tolist(), canvases, strict=True)
            ),
            done=tuple((~active).tolist()),
            log_p=tuple(log_p.tolist()),
            sure=tuple(sure.tolist()),
            finish=None if not ended else "deadline" if late else "stop",
            ms=pace_ms,
        )


def restored(
    model: ResidentModel, cache: KeyValueCache, canvases: Sequence[Canvas], count: int, seed: int = 0
) -> list[float]:
    """How well each middle leads over to what follows it: the mean log probability (nats) of the first `count` pins
    after they have been replaced by noise, in one forward. The canvases' slots are written."""
    count = min(count, *(len(canvas.pins) for canvas in canvases))
    if count == 0:
        return [0.0] * len(canvases)
    ids = model.tensor([canvas.ids for canvas in canvases])  # (B, T)
    generator = torch.Generator(ids.device).manual_seed(seed)
    starts = torch.tensor([len(canvas.slot) for canvas in canvases], device=ids.device)
    columns = starts[:, None] + torch.arange(count, device=ids.device)  # (B, count)
    true = ids.gather(1, columns)
    # The same noise for all: it is the middles that are compared.
    noise = uniform_noise(torch.Size((1, count)), 0, model.vocabulary_size, generator, ids.device)
    ids = ids.scatter(1, columns, noise.expand_as(columns))
    hidden = model.decode(ids, model.tensor([canvas.positions for canvas in canvases]), cache)
    rows = hidden.gather(1, columns[..., None].expand(-1, -1, hidden.shape[-1]))
    log_p = torch.log_softmax(model.logits(rows), -1).gather(-1, true[..., None])[..., 0]
    return list(log_p.cpu().double().mean(-1).tolist())


def _signal(logits: Tensor, ids: Tensor, free: Tensor, sampler: Sampler) -> tuple[Tensor, Tensor | None]:
    """Self-conditioning (B, T, V), and (B, T) where it counts (None: everywhere). Pins have no prediction: their signal
    is zero, or one-hot, as the profile says; written into `logits`, which is too wide to be copied."""
    if sampler.self_conditioning == "zero_at_pins":
        return logits, free.to(logits.dtype)
    rows, columns = (~free).nonzero(as_tuple=True)
    logits[rows, columns] = BANNED
    logits[rows, columns, ids[rows, columns]] = 0.0
    return logits, None
