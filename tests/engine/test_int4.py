"""Packed 4-bit groups: what is lost, and that the grouped products do what the library's experts do."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from diffusion import experts, int4
from diffusion.quantisation import group_for

from . import small_moe


@pytest.mark.parametrize(("group", "loss"), [(32, 0.085), (64, 0.093), (128, 0.10)])
def test_a_normal_weight_loses_as_much_as_four_bits_must(group: int, loss: float) -> None:
    weight = torch.randn(2, 64, 512, generator=torch.Generator().manual_seed(0))
    packed = int4.pack(weight, group)
    unpacked = torch.stack([int4.unpack(packed, i, torch.float32) for i in range(2)])
    assert loss / 1.2 < small_moe.error(unpacked, weight) < loss
    assert packed.group == group
    stored = packed.packed.nbytes + packed.scale.nbytes
    assert stored * 8 == weight.numel() * (4 + 16 / group)


@given(st.integers(0, 2**32), st.integers(-8, 7), st.floats(1e-3, 1e3))
def test_what_lies_on_the_grid_is_kept(seed: int, extreme: int, scale: float) -> None:
    """Whatever the scale, positions do not move: packing is exact for numbers that four bits can hold."""
    generator = torch.Generator().manual_seed(seed)
    whole = torch.randint(-7, 8, (1, 3, 64), generator=generator).float()
    whole[:, :, 5] = -8  # the end of the grid is in use
    whole[:, 1, :] = 0
    whole[:, 2, 7] = extreme
    weight = whole * torch.tensor(scale).bfloat16().float()
    torch.testing.assert_close(int4.unpack(int4.pack(weight, 64), 0, torch.float32), weight[0])


def test_groups_that_do_not_divide_are_halved() -> None:
    assert [group_for(n, 128) for n in (2816, 704, 96, 48, 40, 1)] == [128, 64, 32, 16, 0, 0]


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4), st.integers(0, 2**32))
def test_products_equal_those_of_unpacked_weights(counts: list[int], seed: int) -> None:
    """Experts without rows, one row, several; in float64 beside the plain formula."""
    generator = torch.Generator().manual_seed(seed)
    gate_up = int4.pack(torch.randn(4, 32, 64, generator=generator), 32)
    down = int4.pack(torch.randn(4, 24, 16, generator=generator), 16)
    offsets = torch.tensor(counts).cumsum(0)
    rows = torch.randn(sum(counts), 64, generator=generator, dtype=torch.float64)
    routing = torch.rand(sum(counts), generator=generator, dtype=torch.float64)
    inner = int4.gated(rows, gate_up, offsets, F.silu)
    outer = int4.weighted(inner, down, offsets, routing)
    expert_of = torch.repeat_interleave(torch.arange(4), torch.tensor(counts))
    for row, expert, weight, inside, out in zip(rows, expert_of, routing, inner, outer, strict=True):
        gate, up = (int4.unpack(gate_up, int(expert), torch.float64) @ row).chunk(2)
        torch.testing.assert_close(inside, F.silu(gate) * up)
        torch.testing.assert_close(out, int4.unpack(down, int(expert), torch.float64) @ inside * weight)


def test_an_expert_layer_equals_the_library_s_on_the_same_numbers() -> None:
    """The library's eager experts, given the unpacked weights, are the oracle."""
    body = small_moe.config()
    layer = small_moe.library_model(body).model.decoder.layers[0].experts
    layer.config._experts_implementation = "eager"
    packs = {name: int4.pack(getattr(layer, name), 64) for name in experts.NAMES}
    for name, packed in packs.items():
        unpacked = torch.stack([int4.unpack(packed, index, torch.float32) for index in range(8)])
        getattr(layer, name).copy_(unpacked)
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(37, 128, generator=generator)
    top_index = torch.stack([torch.randperm(8, generator=generator)[:2] for _ in range(37)])
    top_weights = torch.rand(37, 2, generator=generator)
    expected = layer(hidden, top_index, top_weights)
    for name, packed in packs.items():
        experts.place(layer, name, packed)
    layer.config._experts_implementation = experts.REFERENCE
    assert layer.gate_up_proj is None
    torch.testing.assert_close(layer(hidden, top_index, top_weights), expected, atol=1e-5, rtol=1e-5)
