"""Mixture-of-experts layers with packed weights, behind the library's own switch for how experts are computed.

An implementation is a pair of grouped products (int4.gated, int4.weighted or a kernel that does the same) under a name.
Sorts rows by expert, knows neither files nor devices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from diffusion import int4
from diffusion.int4 import Packed

REFERENCE = "midfill_int4"
"""The plain implementation: works on every device."""

NO_EXPERTS = "midfill_no_experts"
"""The class cannot be built without experts. Where their output is zero by construction, they are not computed."""

NAMES = ("gate_up_proj", "down_proj")


@dataclass(frozen=True, kw_only=True)
class Products:
    """The two grouped products of an expert layer, with the signatures of int4.gated and int4.weighted."""

    gated: Callable[[Tensor, Packed, Tensor, Callable[[Tensor], Tensor]], Tensor]
    weighted: Callable[[Tensor, Packed, Tensor, Tensor], Tensor]


def register(name: str, products: Products) -> None:
    """Make `model.set_experts_implementation(name)` compute with these products."""

    def forward(module: Any, hidden: Tensor, top_index: Tensor, top_weights: Tensor) -> Tensor:
        return _forward(products, module, hidden, top_index, top_weights)

    ALL_EXPERTS_FUNCTIONS.register(name, forward)


def place(module: Any, name: str, weight: Packed) -> None:
    """Put packed weights where `module.name` has its parameter, whose memory is given up."""
    setattr(module, name, None)
    module.register_buffer(f"{name}_packed", weight.packed)
    module.register_buffer(f"{name}_scale", weight.scale)


def packed(module: Any, name: str) -> Packed:
    """What `place` has put there."""
    return Packed(packed=getattr(module, f"{name}_packed"), scale=getattr(module, f"{name}_scale"))


def _forward(products: Products, module: Any, hidden: Tensor, top_index: Tensor, top_weights: Tensor) -> Tensor:
    """hidden (N, H), top_index and top_weights (N, K) -> (N, H)."""
    order = top_index.flatten().argsort(stable=True)
    counts = torch.zeros(module.num_experts, dtype=torch.long, device=hidden.device)
    offsets = counts.index_add_(0, top_index.flatten(), torch.ones_like(order)).cumsum(0)
    rows = hidden[order // top_index.shape[1]]
    inner = products.gated(rows, packed(module, "gate_up_proj"), offsets, module.act_fn)
    outer = products.weighted(inner, packed(module, "down_proj"), offsets, top_weights.flatten()[order])
    # Back in order and summed in float32, rather than added in place: the same result every time.
    back = torch.empty_like(outer).index_copy_(0, order, outer)
    return back.view(*top_index.shape, -1).sum(1, dtype=torch.float32).to(hidden.dtype)


def _none(_: Any, hidden: Tensor, __: Tensor, ___: Tensor) -> Tensor:
    return torch.zeros_like(hidden)


register(REFERENCE, Products(gated=int4.gated, weighted=int4.weighted))
ALL_EXPERTS_FUNCTIONS.register(NO_EXPERTS, _none)
