"""Weights as packed 4-bit groups, and the two products that mixture-of-experts layers make with them.

A group is `group` neighbouring inputs of one output. Weight = (nibble - 8) * scale, symmetric: one bfloat16 scale per
group and no zero point (4.25 bits per weight with groups of 64). Byte j of a group holds its input j in the low nibble
and input j + group / 2 in the high one, so that a kernel reads the activations of both halves contiguously. The
products here are the plain reference: one expert at a time is unpacked. Knows tensors only, no model and no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

SHRINKS = (1.0, 0.92, 0.84, -1.05)
"""Scales that are tried per group, as a factor of the one that maps the largest weight to nibble 0. Clipping an outlier
costs less than a coarse grid for the rest; a negative factor maps it to the other end. The least squared error wins."""


@dataclass(frozen=True, kw_only=True)
class Packed:
    """E matrices (O, I). packed: (E, O, I / 2) uint8; scale: (E, O, I / group) bfloat16."""

    packed: Tensor
    scale: Tensor

    @property
    def group(self) -> int:
        """Inputs per scale."""
        return 2 * self.packed.shape[-1] // self.scale.shape[-1]


def pack(weight: Tensor, group: int) -> Packed:
    """Quantise (E, O, I) on its device, one matrix at a time. `group` divides I."""
    experts, outputs, inputs = weight.shape
    packed = torch.empty(experts, outputs, inputs // 2, dtype=torch.uint8, device=weight.device)
    scale = torch.empty(experts, outputs, inputs // group, dtype=torch.bfloat16, device=weight.device)
    for index in range(experts):
        groups = weight[index].float().view(outputs, -1, group)
        scale[index] = _best_scale(groups)
        nibbles = (_round(groups, scale[index].float()[..., None]) + 8).to(torch.uint8)
        low, high = nibbles.chunk(2, -1)
        packed[index] = (low | (high << 4)).view(outputs, -1)
    return Packed(packed=packed, scale=scale)


def unpack(weight: Packed, index: int, dtype: torch.dtype) -> Tensor:
    """Matrix `index` as (O, I) of `dtype`."""
    packed, scale = weight.packed[index], weight.scale[index]
    halves = packed.view(*scale.shape, -1)
    nibbles = torch.cat((halves & 15, halves >> 4), -1).to(dtype) - 8
    return (nibbles * scale.to(dtype)[..., None]).view(packed.shape[0], -1)


def gated(rows: Tensor, weight: Packed, offsets: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """activation(gate) * up of `rows` (S, H), sorted by expert, for matrices (2I, H) with the gate first -> (S, I).

    offsets: (E,) where each expert's rows end; an expert may have none.
    """
    out = rows.new_empty(len(rows), weight.packed.shape[1] // 2)
    for index, here in _segments(offsets):
        gate, up = (rows[here] @ unpack(weight, index, rows.dtype).T).chunk(2, -1)
        out[here] = activation(gate) * up
    return out


def weighted(rows: Tensor, weight: Packed, offsets: Tensor, routing: Tensor) -> Tensor:
    """`rows` (S, I), sorted by expert, through matrices (H, I), times `routing` (S,) -> (S, H)."""
    out = rows.new_empty(len(rows), weight.packed.shape[1])
    for index, here in _segments(offsets):
        out[here] = rows[here] @ unpack(weight, index, rows.dtype).T
    return out * routing[:, None].to(out.dtype)


def _segments(offsets: Tensor) -> Iterator[tuple[int, slice]]:
    start = 0
    for index, end in enumerate(offsets.tolist()):
        if end > start:
            yield index, slice(start, end)
        start = end


def _best_scale(groups: Tensor) -> Tensor:
    """(O, n, group) -> (O, n) bfloat16."""
    extreme = groups.gather(-1, groups.abs().argmax(-1, keepdim=True)) / -8
    best = torch.full_like(extreme, torch.inf)
    chosen = torch.zeros_like(extreme)
    for shrink in SHRINKS:
        scale = (extreme * shrink).bfloat16().float()
        error = (_round(groups, scale) * scale - groups).square().sum(-1, keepdim=True)
        better = error < best
        best, chosen = torch.where(better, error, best), torch.where(better, scale, chosen)
    return chosen[..., 0].bfloat16()


def _round(groups: Tensor, scale: Tensor) -> Tensor:
    """Whole numbers from -8 to 7; a group of zeros has scale zero."""
    return torch.where(scale == 0, 0.0, groups / scale).round().clamp(-8, 7)
