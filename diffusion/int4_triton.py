"""The two grouped products of int4.py, fused, in Triton: packed weights are unpacked in registers and go nowhere else.

With a canvas of 64 and 8 of 128 experts per position, an expert sees four rows: every weight is used four times, and a
step takes as long as reading the packed weights takes. So:
- one program makes OUTPUTS outputs for all rows of one expert (at most ROWS; experts with more have several programs,
  neighbours in time, so that the second finds the weights in the second-level cache): every byte is read once;
- weights are the left operand of the tensor cores, whose smallest tile has 16 rows on the right: 4 rows of 16 are used
  and the rest is idle, which costs nothing while memory is what is waited for;
- a group of 64 inputs is 32 neighbouring bytes of a row, one sector, and its two halves of activations are neighbours,
  too; loads of several groups are in flight (num_stages);
- nibbles less 8 are exact in every type, and the scale is multiplied onto a group's sum rather than onto each weight:
  fewer instructions (which is what would be waited for on a card with 4.8 TB/s), and sums in float32 that are closer
  to float64 than the reference's;
- which expert a program works for follows from `offsets`, read on the device: shapes of launches depend on the number
  of rows alone, nothing is read back, and a step could be captured as a graph.

The same with TRITON_INTERPRET=1 on the CPU, which is how it is tested. It compiles for compute capability 8.0, 8.9 and
9.0, and has never run on a GPU. Knows tensors only.
"""

# Triton reads the annotations of its functions, which have no types in Python.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor, nn
from transformers.activations import GELUTanh, SiLUActivation

from diffusion.int4 import Packed

SMALLEST_GROUP = 32
"""Half a group is what the tensor cores sum over: 16 at least."""

OUTPUTS = 64
ROWS = (16, 32, 64)
"""Rows of a program: as few as hold an expert's, on average with as much again."""
STAGES, WARPS = 4, 4

ACTIVATIONS: dict[type, int] = {GELUTanh: 0, nn.SiLU: 1, SiLUActivation: 1}
"""As `_activated` knows them."""
INTERPRETED = bool(triton.knobs.runtime.interpret)
"""The functions below run in the interpreter, on the CPU."""

DTYPES = {torch.bfloat16: tl.bfloat16, torch.float16: tl.float16, torch.float32: tl.float32}


def gated(rows: Tensor, weight: Packed, offsets: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
    """As int4.gated. Raises ValueError for groups, types and activations that it is not made for."""
    if type(activation) not in ACTIVATIONS:
        raise ValueError(f"there is no kernel for the activation {type(activation).__name__}")
    out = rows.new_empty(len(rows), weight.packed.shape[1] // 2)
    _launch(_gated_kernel, rows, weight, offsets, out, ACTIVATION=ACTIVATIONS[type(activation)])
    return out


def weighted(rows: Tensor, weight: Packed, offsets: Tensor, routing: Tensor) -> Tensor:
    """As int4.weighted. Raises ValueError as `gated` does."""
    out = rows.new_empty(len(rows), weight.packed.shape[1])
    _launch(_weighted_kernel, rows, weight, offsets, out, routing.float().contiguous())
    return out


def rows_per_program(rows: int, experts: int) -> int:
    """The tile for so many rows in all: static for a canvas width and a batch."""
    return next((tile for tile in ROWS if 2 * rows <= tile * experts), ROWS[-1])


def tiles(rows: int, experts: int, tile: int) -> int:
    """The most tiles that `rows` can make, however they are spread: each expert's last one may be begun only."""
    return rows // tile + min(rows, experts)


def _launch(
    kernel: Any, rows: Tensor, weight: Packed, offsets: Tensor, out: Tensor, *more: Tensor, **constants: int
) -> None:
    group = weight.group
    if group < SMALLEST_GROUP or group & (group - 1):
        raise ValueError(f"there is no kernel for groups of {group}")
    if rows.dtype not in DTYPES:
        raise ValueError(f"there is no kernel for activations of {rows.dtype}")
    if not len(rows):
        return
    experts, _, groups = weight.scale.shape
    tile = rows_per_program(len(rows), experts)
    # The interpreter takes the bits of bfloat16 for whole numbers; float32 has the same products.
    product = tl.float32 if INTERPRETED and rows.dtype == torch.bfloat16 else DTYPES[rows.dtype]
    grid = (tiles(len(rows), experts, tile), triton.cdiv(out.shape[1], OUTPUTS))
    kernel[grid](
        rows.contiguous(), weight.packed, weight.scale, offsets, out, *more,
        experts, out.shape[1], groups,
        GROUP=group, ROWS=tile, OUTPUTS=OUTPUTS, EXPERTS=triton.next_power_of_2(experts), PRODUCT=product,
        num_stages=STAGES, num_warps=WARPS, **constants,
    )  # fmt: skip


@triton.jit
def _sum(one, other):
    return one + other


@triton.jit
def _largest(one, two, three, other_one, other_two, other_three):
    return tl.maximum(one, other_one), tl.maximum(two, other_two), tl.maximum(three, other_three)


@triton.jit
def _my_rows(offsets, experts, ROWS: tl.constexpr, EXPERTS: tl.constexpr):
    """The expert of this program, its first row here, and where the expert's rows end. Expert -1: there is no work."""
    each = tl.arange(0, EXPERTS)
    ends = tl.load(offsets + each, mask=each < experts, other=0).to(tl.int32)
    begins = tl.load(offsets + each - 1, mask=(each > 0) & (each < experts), other=0).to(tl.int32)
    counts = tl.where(each < experts, (ends - begins + ROWS - 1) // ROWS, 0)
    before = tl.associative_scan(counts, 0, _sum) - counts
    tile = tl.program_id(0)
    mine = (before <= tile) & (tile < before + counts)
    first = begins + (tile - before) * ROWS
    found = (tl.where(mine, each, -1), tl.where(mine, first, 0), tl.where(mine, ends, 0))
    return tl.reduce(found, 0, _largest)


@triton.jit
def _less_eight(nibbles, PRODUCT: tl.constexpr):
    """nibbles - 8, exactly. In 16 bits a nibble is put into the last bits of a power of two, and that is taken off:
    a third of the instructions that converting whole numbers takes."""
    if tl.bfloat16 == PRODUCT:
        return (nibbles.to(tl.uint16) | 0x4300).to(tl.bfloat16, bitcast=True) - 136.0
    elif tl.float16 == PRODUCT:
        return (nibbles.to(tl.uint16) | 0x6400).to(tl.float16, bitcast=True) - 1032.0
    else:
        return nibbles.to(PRODUCT) - 8.0


@triton.jit
def _group_sum(packed, outputs_here, columns, low, high, accumulate, PRODUCT: tl.constexpr):
    """accumulate + a group's weights without their scale (OUTPUTS, GROUP) times the rows' inputs (GROUP, ROWS)."""
    pair = tl.load(packed + columns, mask=outputs_here, other=0)
    accumulate = tl.dot(_less_eight(pair & 15, PRODUCT), low, accumulate, input_precision="ieee")
    return tl.dot(_less_eight(pair >> 4, PRODUCT), high, accumulate, input_precision="ieee")


@triton.jit
def _gated_kernel(
    rows, packed, scale, offsets, out, experts, outputs, groups,
    GROUP: tl.constexpr, ROWS: tl.constexpr, OUTPUTS: tl.constexpr, EXPERTS: tl.constexpr,
    PRODUCT: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """rows (S, H), packed (E, 2I, H / 2), out (S, I). A program makes gate and up of the same outputs."""
    expert, row, end = _my_rows(offsets, experts, ROWS, EXPERTS)
    if expert >= 0:
        HALF: tl.constexpr = GROUP // 2
        o = tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
        s = row + tl.arange(0, ROWS)
        j = tl.arange(0, HALF)
        line = expert.to(tl.int64) * 2 * outputs + o
        here, mine = o < outputs, s < end
        gates = packed + line[:, None] * (groups * HALF) + j[None, :]
        ups = packed + (line + outputs)[:, None] * (groups * HALF) + j[None, :]
        gate_scales = scale + line * groups
        up_scales = gate_scales + outputs * groups
        inputs = rows + s[None, :].to(tl.int64) * (groups * GROUP) + j[:, None]
        gate = tl.full((OUTPUTS, ROWS), 0.0, tl.float32)
        up = tl.full((OUTPUTS, ROWS), 0.0, tl.float32)
        none = tl.full((OUTPUTS, ROWS), 0.0, tl.float32)
        for g in range(groups):
            low = tl.load(inputs + g * GROUP, mask=mine[None, :], other=0.0).to(PRODUCT)
            high = tl.load(inputs + g * GROUP + HALF, mask=mine[None, :], other=0.0).to(PRODUCT)
            gate_scale = tl.load(gate_scales + g, mask=here, other=0.0).to(tl.float32)
            up_scale = tl.load(up_scales + g, mask=here, other=0.0).to(tl.float32)
            gate += _group_sum(gates, here[:, None], g * HALF, low, high, none, PRODUCT) * gate_scale[:, None]
            up += _group_sum(ups, here[:, None], g * HALF, low, high, none, PRODUCT) * up_scale[:, None]
        result = _activated(gate, ACTIVATION) * up
        where = out + s[None, :].to(tl.int64) * outputs + o[:, None]
        tl.store(where, result.to(out.dtype.element_ty), mask=here[:, None] & mine[None, :])


@triton.jit
def _weighted_kernel(
    rows, packed, scale, offsets, out, routing, experts, outputs, groups,
    GROUP: tl.constexpr, ROWS: tl.constexpr, OUTPUTS: tl.constexpr, EXPERTS: tl.constexpr,
    PRODUCT: tl.constexpr,
):  # fmt: skip
    """rows (S, I), packed (E, H, I / 2), routing (S,) float32, out (S, H)."""
    expert, row, end = _my_rows(offsets, experts, ROWS, EXPERTS)
    if expert >= 0:
        HALF: tl.constexpr = GROUP // 2
        o = tl.program_id(1) * OUTPUTS + tl.arange(0, OUTPUTS)
        s = row + tl.arange(0, ROWS)
        j = tl.arange(0, HALF)
        line = expert.to(tl.int64) * outputs + o
        here, mine = o < outputs, s < end
        weights = packed + line[:, None] * (groups * HALF) + j[None, :]
        scales = scale + line * groups
        inputs = rows + s[None, :].to(tl.int64) * (groups * GROUP) + j[:, None]
        total = tl.full((OUTPUTS, ROWS), 0.0, tl.float32)
        none = tl.full((OUTPUTS, ROWS), 0.0, tl.float32)
        for g in range(groups):
            low = tl.load(inputs + g * GROUP, mask=mine[None, :], other=0.0).to(PRODUCT)
            high = tl.load(inputs + g * GROUP + HALF, mask=mine[None, :], other=0.0).to(PRODUCT)
            group_scale = tl.load(scales + g, mask=here, other=0.0).to(tl.float32)
            total += _group_sum(weights, here[:, None], g * HALF, low, high, none, PRODUCT) * group_scale[:, None]
        total *= tl.load(routing + s, mask=mine, other=0.0)[None, :]
        where = out + s[None, :].to(tl.int64) * outputs + o[:, None]
        tl.store(where, total.to(out.dtype.element_ty), mask=here[:, None] & mine[None, :])


@triton.jit
def _activated(x, ACTIVATION: tl.constexpr):
    """GELU in the form with tanh (0), written with exp as x * sigmoid(2 y), or SiLU (1)."""
    y = x
    if ACTIVATION == 0:
        y = 1.5957691216057308 * (x + 0.044715 * x * x * x)
    return x / (1.0 + tl.exp(-y))
