"""Which positions to accept in a denoising step, and what becomes of the others. Tensors in, tensors out.

Entropy-bound acceptance: Ben-Hamu et al. 2025 (EB-Sampler), as in DiffusionGemma's own sampler. Knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

BANNED = -1e9
"""Added to the logit of an id that may not be written: no probability, and no infinities in the entropy."""


@dataclass(frozen=True)
class Proposal:
    """Per position (...): the proposed id, its log probability and the entropy in nats, and the likeliest id."""

    ids: Tensor
    log_p: Tensor
    entropy: Tensor
    likeliest: Tensor


def accept(entropy: Tensor, candidates: Tensor, bound: float) -> Tensor:
    """entropy (B, W) in nats, candidates (B, W) bool -> accepted (B, W) bool.

    In each row the candidates of lowest entropy whose summed entropy, their own not counted, stays within `bound`: at
    least one where there is a candidate.
    """
    ordered, order = entropy.masked_fill(~candidates, torch.inf).sort(dim=-1)
    before = ordered.cumsum(dim=-1) - ordered
    fits = torch.where(ordered.isinf(), False, before <= bound)
    return torch.zeros_like(candidates).scatter(-1, order, fits)


def propose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> Proposal:
    """What to write where, from logits (..., V). Temperature 0 is argmax, with the probabilities of temperature 1.
    Banned ids have a logit of BANNED or less. Every pass over the vocabulary counts: it is the widest tensor there is.
    """
    log_p = torch.log_softmax(logits / temperature if temperature else logits, dim=-1)
    p = log_p.exp()
    entropy = -torch.linalg.vecdot(p, log_p)
    sure, likeliest = log_p.max(-1)
    if temperature == 0.0:
        return Proposal(ids=likeliest, log_p=sure, entropy=entropy, likeliest=likeliest)
    ids = torch.multinomial(p.flatten(0, -2), 1, generator=generator).view(p.shape[:-1])
    return Proposal(ids=ids, log_p=log_p.gather(-1, ids[..., None])[..., 0], entropy=entropy, likeliest=likeliest)


def temperature_at(schedule: tuple[float, float], step: int, steps: int) -> float:
    """Linear from the first to the last of `steps` steps; `step` counts from 0."""
    first, last = schedule
    return first + (last - first) * (step / max(1, steps - 1))


def uniform_noise(shape: torch.Size, first: int, last: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Uniformly random ids in [first, last)."""
    return torch.randint(first, last, shape, generator=generator).to(device)
