"""The fused products against the reference in float64, in Triton's interpreter where there is no GPU; and that they
compile for real ones."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.activations import ACT2FN

from diffusion import experts, int4, kernels
from diffusion.int4 import Packed
from diffusion.quantisation import group_for

from . import small_moe

pytest.importorskip("triton")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:overflow encountered in exp")]

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# The interpreter cuts bfloat16 off where a GPU rounds.
ERROR = {torch.float32: 1e-5, torch.float16: 5e-4, torch.bfloat16: 5e-3}
GELU = ACT2FN["gelu_pytorch_tanh"]


@pytest.fixture(scope="module")
def kernel() -> Iterator[ModuleType]:
    """The module as it is read when Triton interprets, and gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE.type == "cpu":
            patch.setenv("TRITON_INTERPRET", "1")
        sys.modules.pop("diffusion.int4_triton", None)
        yield importlib.import_module("diffusion.int4_triton")
        sys.modules.pop("diffusion.int4_triton", None)


def problem(counts: list[int], outputs: int, inputs: int, group: int, seed: int = 0) -> tuple[Tensor, Packed, Tensor]:
    """Random rows (S, inputs), packed matrices (E, outputs, inputs) and where each expert's rows end."""
    generator = torch.Generator().manual_seed(seed)
    weight = int4.pack(torch.randn(len(counts), outputs, inputs, generator=generator), group)
    rows = torch.randn(sum(counts), inputs, generator=generator)
    on_device = Packed(packed=weight.packed.to(DEVICE), scale=weight.scale.to(DEVICE))
    return rows.to(DEVICE), on_device, torch.tensor(counts, device=DEVICE).cumsum(0)


def check(kernel: ModuleType, counts: list[int], inner: int, inputs: int, group: int, dtype: torch.dtype) -> None:
    """Both products at these sizes, element by element within what one rounding of the result may do."""
    rows, weight, offsets = problem(counts, 2 * inner, inputs, group)
    rows = rows.to(dtype)
    expected = int4.gated(rows.double(), weight, offsets, GELU)
    found = kernel.gated(rows, weight, offsets, GELU)
    assert found.dtype == dtype and found.shape == expected.shape
    scale = max(1.0, float(expected.abs().max())) if len(expected) else 1.0
    torch.testing.assert_close(found.double(), expected, atol=ERROR[dtype] / 10 * scale, rtol=2 * ERROR[dtype])

    rows, weight, offsets = problem(counts, inner, inputs, group, seed=1)
    rows, routing = rows.to(dtype), torch.rand(len(rows), device=DEVICE)
    expected = int4.weighted(rows.double(), weight, offsets, routing.double())
    found = kernel.weighted(rows, weight, offsets, routing)
    scale = max(1.0, float(expected.abs().max())) if len(expected) else 1.0
    torch.testing.assert_close(found.double(), expected, atol=ERROR[dtype] / 10 * scale, rtol=2 * ERROR[dtype])


@pytest.mark.parametrize("dtype", ERROR, ids=str)
@pytest.mark.parametrize("group", [32, 64, 128])
def test_all_types_and_groups(kernel: ModuleType, dtype: torch.dtype, group: int) -> None:
    check(kernel, [3, 0, 1, 18], inner=80, inputs=256, group=group, dtype=dtype)


@pytest.mark.parametrize(
    ("counts", "inner", "inputs"),
    [
        ([0, 0, 0, 0, 0], 64, 64),
        ([0, 0, 0, 0, 1], 64, 64),
        ([1, 0, 0, 0, 0], 1, 64),
        ([16, 16, 16], 64, 64),
        ([17, 0, 31, 1, 15], 65, 192),
        ([90], 7, 64),
        ([130, 3], 63, 704),
    ],
    ids=str,
)
def test_borders(kernel: ModuleType, counts: list[int], inner: int, inputs: int) -> None:
    """Nothing to do, first and last experts only, full tiles, one row more than a tile, all tile sizes, odd outputs."""
    check(kernel, counts, inner, inputs, group_for(inputs, 64), torch.float32)


@settings(max_examples=25)
@given(
    counts=st.lists(st.one_of(st.just(0), st.integers(0, 40)), min_size=1, max_size=6),
    inner=st.integers(1, 130),
    groups=st.integers(1, 3),
    dtype=st.sampled_from(list(ERROR)),
)
def test_whatever_the_routing(
    kernel: ModuleType, counts: list[int], inner: int, groups: int, dtype: torch.dtype
) -> None:
    check(kernel, counts, inner, 32 * groups, 32, dtype)


def test_neighbours_are_left_alone(kernel: ModuleType) -> None:
    """Rows that are views of something larger are read as they are; what no expert owns is not written."""
    rows, weight, offsets = problem([5, 2], 96, 64, 64)
    wide = torch.full((7, 128), torch.nan, device=DEVICE)
    wide[:, 32:96] = rows
    found = kernel.gated(wide[:, 32:96], weight, offsets, GELU)
    torch.testing.assert_close(found, kernel.gated(rows, weight, offsets, GELU), atol=0, rtol=0)


def test_silu(kernel: ModuleType) -> None:
    rows, weight, offsets = problem([5, 2], 96, 64, 64)
    expected = int4.gated(rows.double(), weight, offsets, torch.nn.SiLU())
    found = kernel.gated(rows, weight, offsets, torch.nn.SiLU())
    torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-5)


def test_what_it_cannot_do(kernel: ModuleType) -> None:
    rows, weight, offsets = problem([2], 32, 48, 16)
    with pytest.raises(ValueError, match="groups of 16"):
        kernel.gated(rows, weight, offsets, GELU)
    rows, weight, offsets = problem([2], 32, 64, 64)
    with pytest.raises(ValueError, match="activation ReLU"):
        kernel.gated(rows, weight, offsets, torch.nn.ReLU())
    with pytest.raises(ValueError, match="float64"):
        kernel.weighted(rows.double(), weight, offsets, torch.ones(2))


def test_a_nibble_in_sixteen_bits(kernel: ModuleType) -> None:
    """The numbers that the interpreter does not see: it multiplies in float32 where a GPU has bfloat16."""
    nibbles = torch.arange(16, dtype=torch.int16)
    for dtype, bits, less in ((torch.bfloat16, 0x4300, 136.0), (torch.float16, 0x6400, 1032.0)):
        assert ((nibbles | bits).view(dtype) - less).tolist() == list(range(-8, 8))


@pytest.mark.parametrize(("rows", "tile"), [(1, 16), (64, 16), (65, 32), (128, 32), (129, 64), (10_000, 64)])
def test_tiles_are_enough_for_any_routing(kernel: ModuleType, rows: int, tile: int) -> None:
    """The grid depends on the number of rows only: the worst routing has to fit, and it is no larger than that."""
    assert kernel.rows_per_program(rows, 8) == tile
    alone = min(rows, 8) - 1
    last = rows - alone
    assert alone + -(-last // tile) <= kernel.tiles(rows, 8, tile) <= rows // tile + 8


def packed_layer() -> Any:
    """Experts of a small model."""
    layer = small_moe.library_model(small_moe.config()).to(DEVICE).model.decoder.layers[0].experts
    for name in experts.NAMES:
        experts.place(layer, name, int4.pack(getattr(layer, name), 64))
    return layer


def test_a_layer_of_the_model(kernel: ModuleType) -> None:
    """Routed, sorted, back in order: the fused layer gives what the plain one gives."""
    layer = packed_layer()
    kernels.register_fused()
    generator = torch.Generator().manual_seed(1)
    hidden = torch.randn(37, 128, generator=generator).to(DEVICE)
    top_index = torch.stack([torch.randperm(8, generator=generator)[:2] for _ in range(37)]).to(DEVICE)
    top_weights = torch.rand(37, 2, generator=generator).to(DEVICE)
    found = []
    for name in (experts.REFERENCE, kernels.FUSED):
        layer.config._experts_implementation = name
        found.append(layer(hidden, top_index, top_weights))
    torch.testing.assert_close(*found, atol=1e-5, rtol=1e-5)


def test_no_size_depends_on_the_routing() -> None:
    """Around the kernel, too, a layer reads nothing back from its device: with a canvas width and a batch all launches
    are given. On the meta device there is nothing that could be read."""
    layer = small_moe.library_model(small_moe.config()).model.decoder.layers[0].experts
    for name in experts.NAMES:
        packed = int4.pack(getattr(layer, name), 64)
        experts.place(layer, name, Packed(packed=packed.packed.to("meta"), scale=packed.scale.to("meta")))
    products = experts.Products(
        gated=lambda rows, weight, *_: rows.new_empty(len(rows), weight.packed.shape[1] // 2),
        weighted=lambda rows, weight, *_: rows.new_empty(len(rows), weight.packed.shape[1]),
    )
    experts.register("shapes_only", products)
    layer.config._experts_implementation = "shapes_only"
    hidden, index = torch.empty(37, 128, device="meta"), torch.empty(37, 2, device="meta", dtype=torch.long)
    assert layer(hidden, index, torch.empty(37, 2, device="meta")).shape == (37, 128)


COMPILE = """
import json, sys, triton
from triton import language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from diffusion import int4_triton as kernel

TYPES = {"bf16": tl.bfloat16, "fp16": tl.float16, "fp32": tl.float32}

def compiled(function, dtype, capability, rows):
    names = function.arg_names
    constants = {"GROUP": 64, "ROWS": rows, "OUTPUTS": kernel.OUTPUTS, "EXPERTS": 128, "PRODUCT": TYPES[dtype]}
    if "ACTIVATION" in names:
        constants["ACTIVATION"] = 0
    kinds = {"rows": "*" + dtype, "out": "*" + dtype, "packed": "*u8", "scale": "*bf16", "offsets": "*i64"}
    kinds |= {"routing": "*fp32"} | dict.fromkeys(constants, "constexpr")
    signature = {name: kinds.get(name, "i32") for name in names}
    aligned = [i for i, name in enumerate(names) if signature[name].startswith("*") or name == "outputs"]
    source = ASTSource(
        function, signature, {(names.index(name),): value for name, value in constants.items()},
        {(i,): [["tt.divisibility", 16]] for i in aligned},
    )
    options = {"num_warps": kernel.WARPS, "num_stages": kernel.STAGES}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)

for function in (kernel._gated_kernel, kernel._weighted_kernel):
    for variant in json.loads(sys.argv[1]):
        made = compiled(function, *variant)
        text = made.asm["ptx"]
        found = {"spilt": ".local" in text, "in_flight": "cp.async" in text, "cores": "mma" in text}
        print(json.dumps({"shared": made.metadata.shared, **found}))
"""


def test_it_compiles_for_gpus(tmp_path: Path) -> None:
    """Down to machine code, without a GPU: nothing spills into local memory, shared memory leaves room for several
    programs on a processor, loads are in flight while tensor cores work."""
    variants = [("bf16", 80, 16), ("bf16", 90, 64), ("fp16", 89, 32), ("fp32", 80, 16)]
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-I", "-c", COMPILE, json.dumps(variants)],
        capture_output=True, text=True, env=environment | {"TRITON_CACHE_DIR": str(tmp_path)}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    for line, (dtype, *_) in zip(done.stdout.splitlines(), variants * 2, strict=True):
        made = json.loads(line)
        assert made["in_flight"] and not made["spilt"] and made["shared"] < 50_000
        assert made["cores"] or dtype == "fp32"


def test_a_kernel_is_tried_before_it_is_trusted(kernel: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = packed_layer()
    assert kernels.trial(layer, DEVICE, torch.float32) == ""
    right = kernel.weighted
    for wrong in (lambda *given: right(*given) * 1.1, lambda *given: right(*given) * torch.nan):
        monkeypatch.setattr(kernel, "weighted", wrong)
        assert "computes something else here" in kernels.trial(layer, DEVICE, torch.float32)


@pytest.mark.skipif(DEVICE.type == "cuda", reason="there is a GPU")
def test_without_a_gpu_the_status_says_so() -> None:
    decoder = SimpleNamespace(layers=[SimpleNamespace(experts=packed_layer())])
    chosen = kernels.choose(decoder, DEVICE, torch.float32)
    assert (chosen.name, chosen.words) == (experts.REFERENCE, "int4 experts without the fused kernel: it needs CUDA")
