"""Which positions to accept in a denoising step, and what becomes of the others. Tensors in, tensors out.

Entropy-bound acceptance: Ben-Hamu et al. 2025 (EB-Sampler), as in DiffusionGemma's own sampler. Knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BANNED = -1e9
"""Added to the logit of an id that may not be written: no probability, and no infinities in the entropy."""

HINT_MARGIN = 0.7
"""Nats. An id that is hinted at is proposed where the likeliest one is at most so much likelier: twice."""


@dataclass(frozen=True)
class Proposal:
    """Per position (...): the proposed id, its log probability, the entropy in nats, the likeliest id with its log
    probability, and the log probability of the hint (that of id 0 where there is none)."""

    ids: Tensor
    log_p: Tensor
    entropy: Tensor
    likeliest: Tensor
    most: Tensor
    hint_log_p: Tensor


def accept(entropy: Tensor, candidates: Tensor, bound: float) -> Tensor:
    """entropy (B, W) in nats, candidates (B, W) bool -> accepted (B, W) bool.

    In each row the candidates of lowest entropy whose summed entropy, their own not counted, stays within `bound`: at
    least one where there is a candidate.
    """
    ordered, order = entropy.masked_fill(~candidates, torch.inf).sort(dim=-1)
    before = ordered.cumsum(dim=-1) - ordered
    fits = torch.where(ordered.isinf(), False, before <= bound)
    return torch.zeros_like(candidates).scatter(-1, order, fits)


def propose(
    logits: Tensor, temperature: float, generator: torch.Generator | None, hints: Tensor | None = None
) -> Proposal:
    """What to write where, from logits (..., V). Temperature 0 is argmax, with the probabilities of temperature 1.
    Banned ids have a logit of BANNED or less. `hints` (...): ids that are expected, -1 where none is. Every pass over
    the vocabulary counts: it is the widest tensor there is.
    """
    log_p = torch.log_softmax(logits / temperature if temperature else logits, dim=-1)
    p = log_p.exp()
    entropy = -torch.linalg.vecdot(p, log_p)
    most, likeliest = log_p.max(-1)
    ids, chances = likeliest, most
    if temperature:
        ids = torch.multinomial(p.flatten(0, -2), 1, generator=generator).view(p.shape[:-1])
        chances = _at(log_p, ids)
    hints = torch.full_like(ids, -1) if hints is None else hints
    hint_log_p = _at(log_p, hints.clamp(min=0))
    agreed = (hints >= 0) & (hint_log_p >= most - HINT_MARGIN)
    return Proposal(
        ids=torch.where(agreed, hints, ids),
        log_p=torch.where(agreed, hint_log_p, chances),
        entropy=entropy,
        likeliest=torch.where(agreed, hints, likeliest),
        most=most,
        hint_log_p=hint_log_p,
    )


def _at(values: Tensor, ids: Tensor) -> Tensor:
    """values (..., V), ids (...) -> (...)."""
    return values.gather(-1, ids[..., None])[..., 0]


def temperature_at(schedule: tuple[float, float], step: int, steps: int) -> float:
    """Linear from the first to the last of `steps` steps; `step` counts from 0."""
    first, last = schedule
    return first + (last - first) * (step / max(1, steps - 1))


def uniform_noise(shape: torch.Size, first: int, last: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Uniformly random ids in [first, last). The generator is that of the device."""
    return torch.randint(first, last, shape, generator=generator, device=device)
