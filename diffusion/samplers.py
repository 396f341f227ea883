"""Which positions to accept in a denoising step, and what becomes of the others. Tensors in, tensors out.

Entropy-bound acceptance: Ben-Hamu et al. 2025 (EB-Sampler), as in DiffusionGemma's own sampler. Knows no model.
"""

from __future__ import annotations

import torch
from torch import Tensor


def accept(entropy: Tensor, candidates: Tensor, bound: float) -> Tensor:
    """entropy (B, W) in nats, candidates (B, W) bool -> accepted (B, W) bool.

    In each row the candidates of lowest entropy whose summed entropy, their own not counted, stays within `bound`: at
    least one where there is a candidate.
    """
    ordered, order = entropy.masked_fill(~candidates, torch.inf).sort(dim=-1)
    before = ordered.cumsum(dim=-1) - ordered
    fits = torch.where(ordered.isinf(), False, before <= bound)
    return torch.zeros_like(candidates).scatter(-1, order, fits)


def propose(logits: Tensor, temperature: float, generator: torch.Generator | None) -> tuple[Tensor, Tensor, Tensor]:
    """logits (..., V) -> proposed ids (...), their log probabilities and the entropies, both (...) in nats.

    Temperature 0 is argmax, with the probabilities of temperature 1. Banned ids have logit -inf.
    """
    log_p = torch.log_softmax(logits / (temperature or 1.0), dim=-1)
    p = log_p.exp()
    entropy = -(p * log_p.nan_to_num(neginf=0.0)).sum(-1)
    if temperature == 0.0:
        ids = log_p.argmax(-1)
    else:
        ids = torch.multinomial(p.flatten(0, -2), 1, generator=generator).view(p.shape[:-1])
    return ids, log_p.gather(-1, ids[..., None])[..., 0], entropy


def temperature_at(schedule: tuple[float, float], step: int, steps: int) -> float:
    """Linear from the first to the last of `steps` steps; `step` counts from 0."""
    first, last = schedule
    return first + (last - first) * (step / max(1, steps - 1))


def uniform_noise(shape: torch.Size, first: int, last: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Uniformly random ids in [first, last)."""
    return torch.randint(first, last, shape, generator=generator).to(device)
