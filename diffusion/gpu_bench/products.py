"""The int4 products by themselves: whether the kernel computes the right thing here, and how near to the bandwidth of
the memory they come. Knows tensors and one expert layer; no model.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers.activations import ACT2FN

from diffusion import experts, int4, kernels
from diffusion.experts import REFERENCE
from diffusion.gpu_bench.bench import Bench, Figures
from diffusion.int4 import Packed
from diffusion.kernels import FUSED

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
WORDS = {REFERENCE: "plain", FUSED: "fused"}
"""What a report calls the implementations."""


def correctness(bench: Bench) -> Iterator[Figures]:
    """Relative errors against float64 on small shapes: odd sizes, an expert without rows, one with many."""
    if not bench.on_gpu and not interpreted():
        yield Figures("kernel", reason="not tried: it needs CUDA, or TRITON_INTERPRET=1 in the environment")
        return
    try:
        kernels.register_fused()
    except ImportError:
        yield Figures("kernel", reason="not tried: Triton is not installed")
        return
    from diffusion import int4_triton

    activation = ACT2FN[bench.text["hidden_activation"]]
    generator = torch.Generator().manual_seed(0)
    offsets = torch.tensor([3, 0, 1, 41]).cumsum(0).to(bench.device)
    for group in (64, 128):
        gate_up, down = (
            _on(bench.device, int4.pack(torch.randn(4, outputs, 256, generator=generator), group))
            for outputs in (2 * 75, 90)
        )
        given = torch.randn(45, 256, generator=generator).to(bench.device)
        routing = torch.rand(45, generator=generator).to(bench.device)
        for name, dtype in DTYPES.items():
            rows = given.to(dtype)
            exact = _once(int4, rows.double(), gate_up, down, offsets, routing.double(), activation)
            plain, fused = (
                max(map(_error, _once(module, rows, gate_up, down, offsets, routing, activation), exact))
                for module in (int4, int4_triton)
            )
            yield Figures("kernel", dtype=name, group=group, error=fused, error_of_plain=plain)


def interpreted() -> bool:
    """Does the kernel run on the CPU, in Triton's interpreter?"""
    if importlib.util.find_spec("triton") is None:
        return False
    from diffusion import int4_triton

    return int4_triton.INTERPRETED


def speed(bench: Bench, layer: Any, names: tuple[str, ...], bandwidth: float) -> Iterator[Figures]:
    """Both products of one layer, with routing as even as chance makes it, beside the time that reading the packed
    weights of the experts that are hit takes at `bandwidth` bytes per second."""
    gate_up, down = (experts.packed(layer, name) for name in experts.NAMES)
    count = layer.num_experts
    generator = torch.Generator().manual_seed(0)
    for positions in sorted({width * batch for width, batch in bench.buckets.all}):
        picked = torch.rand(positions, count, generator=generator).argsort(-1)[:, : bench.text["top_k_experts"]]
        counts = picked.flatten().bincount(minlength=count)
        hit = int((counts > 0).sum())
        size = sum(part.nbytes for weight in (gate_up, down) for part in (weight.packed, weight.scale)) * hit / count
        hidden = torch.randn(picked.numel(), 2 * gate_up.packed.shape[-1], generator=generator)
        rows = hidden.to(bench.device, bench.dtype)
        offsets, routing = counts.cumsum(0).to(bench.device), torch.ones(len(rows), device=bench.device)
        for name in names:
            ms = bench.ms(partial(_chained, _module(name), rows, gate_up, down, offsets, routing, layer.act_fn))
            yield Figures(
                "layer", positions=positions, experts=WORDS[name], rows=len(rows), hit=hit, ms=ms,
                gb_s=size / ms / 1e6, floor_ms=1000 * size / bandwidth,
            )  # fmt: skip


def _module(name: str) -> Any:
    """What computes for an implementation's name."""
    if name == REFERENCE:
        return int4
    from diffusion import int4_triton

    return int4_triton


def _once(
    module: Any, rows: Tensor, gate_up: Packed, down: Packed, offsets: Tensor, routing: Tensor, activation: Any
) -> tuple[Tensor, Tensor]:
    """Both products of the same rows."""
    return module.gated(rows, gate_up, offsets, activation), module.weighted(rows, down, offsets, routing)


def _chained(
    module: Any, rows: Tensor, gate_up: Packed, down: Packed, offsets: Tensor, routing: Tensor, activation: Any
) -> None:
    module.weighted(module.gated(rows, gate_up, offsets, activation), down, offsets, routing)


def _on(device: torch.device, weight: Packed) -> Packed:
    return Packed(packed=weight.packed.to(device), scale=weight.scale.to(device))


def _error(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact).norm() / exact.norm())
