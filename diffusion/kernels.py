"""Which products the expert layers of a quantised model use on its device, and why: the fused kernel where it works,
the reference elsewhere. The kernel is tried on the model's own weights before it is trusted, which also compiles all
that any canvas width and batch will need. Knows devices and expert layers; neither profiles nor files.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from diffusion import experts, int4
from diffusion.experts import REFERENCE, Products

FUSED = "midfill_int4_fused"

TOLERANCE = 0.02
"""Relative error, in the norm, beside the reference with the same rounding of activations."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The name of an implementation for `set_experts_implementation`, and a few words on it for the status."""

    name: str
    words: str


def choose(decoder: Any, device: torch.device, dtype: torch.dtype) -> Choice:
    """For a decoder whose experts are packed. Never fails: what is wrong with the kernel stands in the words."""
    problem = _problem(decoder.layers[0].experts, device, dtype)
    if problem:
        return Choice(name=REFERENCE, words=f"int4 experts without the fused kernel: {problem}")
    return Choice(name=FUSED, words="fused int4 experts")


def register_fused() -> None:
    """Make FUSED known to the library. Raises ImportError where there is no Triton."""
    from diffusion import int4_triton

    experts.register(FUSED, Products(gated=int4_triton.gated, weighted=int4_triton.weighted))


def _problem(layer: Any, device: torch.device, dtype: torch.dtype) -> str:
    if device.type != "cuda":
        return "it needs CUDA"
    try:
        from triton.errors import TritonError
    except ImportError:
        return "Triton is not installed"
    try:
        register_fused()
        return trial(layer, device, dtype)
    # A compiler that is not there, a driver or card that is too old, a Triton that does not fit.
    except (TritonError, RuntimeError, OSError, ValueError, ImportError, subprocess.SubprocessError) as error:
        first = (str(error).strip().splitlines() or ["no reason given"])[0]
        return f"{type(error).__name__}: {first}"


@torch.inference_mode()
def trial(layer: Any, device: torch.device, dtype: torch.dtype) -> str:
    """Both products at every tile size, beside the reference; "" if all is right. Raises what the kernel raises."""
    from diffusion import int4_triton

    generator = torch.Generator().manual_seed(0)
    gate_up, down = (experts.packed(layer, name) for name in experts.NAMES)
    count = layer.num_experts
    for tile in int4_triton.ROWS:
        rows = tile * count // 2 if tile < int4_triton.ROWS[-1] else tile * count // 4 + 1
        chosen = torch.randint(0, count, (rows,), generator=generator)
        offsets = chosen.bincount(minlength=count).cumsum(0).to(device)
        hidden = torch.randn(rows, 2 * gate_up.packed.shape[-1], generator=generator).to(device, dtype)
        routing = torch.rand(rows, generator=generator).to(device)
        inner = int4.gated(hidden, gate_up, offsets, layer.act_fn)
        outer = int4.weighted(inner, down, offsets, routing)
        errors = (
            _error(int4_triton.gated(hidden, gate_up, offsets, layer.act_fn), inner),
            _error(int4_triton.weighted(inner, down, offsets, routing), outer),
        )
        if not all(error < TOLERANCE for error in errors):  # also where it is no number
            return f"it computes something else here (relative errors {errors[0]:.2g}, {errors[1]:.2g})"
    return ""


def _error(found: Tensor, expected: Tensor) -> float:
    return float((found.float() - expected.float()).norm() / expected.float().norm())
