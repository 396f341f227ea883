"""Muon against torch's own, which knows bfloat16 alone, and its orthogonalisation against the singular values."""

from __future__ import annotations

import pytest
import torch

from diffusion.training.muon import Muon, orthogonal


def test_steps_as_torch_does() -> None:
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in ((8, 24), (24, 8), (16, 16))]
    ours, theirs = ([torch.nn.Parameter(weight.clone()) for weight in start] for _ in range(2))
    optimisers = (
        Muon(ours, lr=0.02, weight_decay=0.01, compute=torch.bfloat16),
        torch.optim.Muon(theirs, lr=0.02, weight_decay=0.01, momentum=0.95),
    )
    for _ in range(3):
        for mine, its in zip(ours, theirs, strict=True):
            mine.grad = torch.randn(mine.shape, generator=generator)
            its.grad = mine.grad.clone()
        for optimiser in optimisers:
            optimiser.step()
    for mine, its in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, its)


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_orthogonalises(shape: tuple[int, int]) -> None:
    matrix = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    values = torch.linalg.svdvals(orthogonal(matrix, torch.float32))
    assert values.min() > 0.3 and values.max() < 1.3
