"""Muon for the layers' matrices (Jordan et al. 2024), in the precision that the machine is fast in.

Same steps as torch.optim.Muon, which orthogonalises in bfloat16 alone: ten times slower than float32 on a CPU that has
no instructions for it. Knows matrices; knows nothing of the network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Of the quintic iteration, for the steepest slope at zero."""
ITERATIONS = 5
MOMENTUM = 0.95


class Muon(torch.optim.Optimizer):
    """Momentum with Nesterov's look ahead, orthogonalised; weight decay apart from it. Matrices only."""

    def __init__(self, matrices: Iterable[Tensor], *, lr: float, weight_decay: float, compute: torch.dtype):
        super().__init__(matrices, {"lr": lr, "weight_decay": weight_decay})
        self.compute = compute

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step along the gradients that are there. `closure` is not used."""
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is None:
                    continue
                state = self.state[matrix]
                if "momentum_buffer" not in state:
                    state["momentum_buffer"] = torch.zeros_like(matrix.grad)
                momentum = state["momentum_buffer"].lerp_(matrix.grad, 1 - MOMENTUM)
                update = orthogonal(matrix.grad.lerp(momentum, MOMENTUM), self.compute)
                scale = math.sqrt(max(1.0, matrix.shape[0] / matrix.shape[1]))
                matrix.mul_(1 - group["lr"] * group["weight_decay"]).add_(update, alpha=-group["lr"] * scale)


def orthogonal(matrix: Tensor, compute: torch.dtype) -> Tensor:
    """Nearly the closest matrix with orthonormal rows or columns: singular values of about 0.7 to 1.2, same vectors."""
    a, b, c = COEFFICIENTS
    tall = matrix.shape[0] > matrix.shape[1]
    x = (matrix.T if tall else matrix).to(compute)
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if tall else x
