"""The losses: next token on the window, masked tokens on the slots, both through one fused cross-entropy.

A logit matrix of thousands of rows times the vocabulary does not fit any cache, so it is made and consumed in chunks,
gradients included, and never stored. Knows hidden states and targets; knows nothing of text or of the network.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from diffusion.training.network import SOFTCAP, softcap

CHUNK = 256
"""Rows per chunk: 256 x 8,192 logits in float32 are 8 MiB."""


def _chunk_forward_backward(h: Tensor, table: Tensor, targets: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Per-row losses (N,) and the gradient of sum(weights * losses) by the logits before the softcap (N, V)."""
    capped = softcap(F.linear(h, table).float())
    log_z = torch.logsumexp(capped, dim=-1, keepdim=True)
    losses = log_z[:, 0] - capped.gather(1, targets[:, None])[:, 0]
    columns = torch.arange(capped.shape[1], device=h.device)
    one_hot = (columns[None, :] == targets[:, None]).float()
    gradient = (torch.exp(capped - log_z) - one_hot) * (1.0 - (capped / SOFTCAP).pow(2)) * weights[:, None]
    return losses, gradient.to(h.dtype)


class _ChunkedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        context: Any, hidden: Tensor, table: Tensor, targets: Tensor, weights: Tensor, compute: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        h, e = hidden.detach().to(compute), table.detach().to(compute)
        losses, hidden_grad = torch.empty_like(weights), torch.empty_like(h)
        table_grad = torch.zeros(table.shape, dtype=torch.float32, device=table.device)
        for start in range(0, h.shape[0], CHUNK):
            rows = slice(start, start + CHUNK)
            losses[rows], logits_grad = chunk_kernel(h[rows], e, targets[rows], weights[rows])
            hidden_grad[rows] = logits_grad @ e
            table_grad += logits_grad.T @ h[rows]
        context.save_for_backward(hidden_grad, table_grad)
        context.mark_non_differentiable(losses)
        return (losses * weights).sum(), losses

    @staticmethod
    def backward(context: Any, scale: Tensor, _: Tensor) -> Any:
        hidden_grad, table_grad = context.saved_tensors
        return hidden_grad.float() * scale, table_grad * scale, None, None, None


chunk_kernel = _chunk_forward_backward
"""Replaced by its compiled form by the trainer."""


def cross_entropy(
    hidden: Tensor, table: Tensor, targets: Tensor, weights: Tensor, compute: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Weighted sum of the rows' cross-entropies, differentiable, and the losses row by row, not differentiable.

    hidden (N, H), table (V, H) the tied embedding, targets (N,), weights (N,) float32; N a multiple of CHUNK where
    compiled. Raises nothing.
    """
    total, losses = _ChunkedCrossEntropy.apply(hidden, table, targets, weights, compute)  # type: ignore[no-untyped-call]
    return total, losses
