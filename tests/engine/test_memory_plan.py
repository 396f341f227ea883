"""The memory plan against what small models really take, and the loader's own memory while it works."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from diffusion import loader, memory_plan, model
from diffusion.api import EngineError
from diffusion.canvas import Canvas
from diffusion.denoise import Rules, denoise
from diffusion.model import ResidentModel
from diffusion.profiles import load_profile
from diffusion.quantisation import Quantisation

from . import small_moe

CPU = torch.device("cpu")
BIG = load_profile("diffusiongemma-26b-a4b-it")
PUBLISHED: dict[str, Any] = BIG.architecture
HOW = BIG.quantisation
assert HOW is not None


def peak(work: Any) -> tuple[int, int]:
    """Bytes that `work` allocates at most, and what of it stays."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as run:
        work()
    live = most = 0
    events = [event for event in run.profiler.kineto_results.events() if event.name() == "[memory]"]  # type: ignore[union-attr]
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        most = max(most, live)
    return most, live


@pytest.mark.parametrize(
    "how",
    [
        Quantisation(),
        Quantisation(linears="int4", group=128),
        Quantisation(linears="float8", group=32),
        Quantisation(linears="none", experts="none"),
    ],
)
def test_weights_take_what_the_plan_says(how: Quantisation, tmp_path: Path) -> None:
    body = small_moe.config()
    small_moe.save(small_moe.library_model(body), tmp_path)
    for dtype in (torch.bfloat16, torch.float32):
        resident = loader.load(tmp_path, how, CPU, dtype)
        planned = memory_plan.plan(body["text_config"], how, dtype.itemsize)
        decoder = resident.model.decoder
        rotary = small_moe.stored_size(decoder.rotary_emb)
        experts = sum(small_moe.stored_size(layer.experts) for layer in decoder.layers)
        assert planned.experts == experts
        assert (
            planned.embedding == small_moe.stored_size(decoder.embed_tokens) - decoder.embed_tokens.embed_scale.nbytes
        )
        assert planned.weights == pytest.approx(small_moe.stored_size(resident) - rotary, rel=0.01)


@pytest.mark.parametrize(("canvases", "width"), [(1, 16), (1, 64), (5, 16)])
@pytest.mark.parametrize("signal", ["none", "zero_at_pins", "one_hot_at_pins"])
def test_a_step_takes_at_most_what_the_plan_says(canvases: int, width: int, signal: str) -> None:
    body = small_moe.config(vocab_size=30_000)
    resident = ResidentModel(small_moe.library_model(body), CPU, torch.float32)
    cache = resident.new_cache()
    resident.encode(range(200), cache)
    pins = tuple(range(50, 58))
    batch = [
        Canvas(slot=(7,) * width, free=(True,) * width, pins=pins, cut=200, gap=width, end=1) for _ in range(canvases)
    ]
    banned = torch.zeros(30_000, dtype=torch.bool)
    sampler = replace(BIG.sampler, self_conditioning=signal)  # type: ignore[arg-type]
    rules = Rules.banning(banned, banned)

    def work() -> None:
        for _ in denoise(resident, cache, batch, rules=rules, sampler=sampler, steps=3, specials=10):
            pass

    planned = memory_plan.plan(body["text_config"], None, 4).step(canvases * (width + len(pins)), 200)
    measured, _ = peak(work)
    assert measured <= planned
    if signal == "one_hot_at_pins":
        assert planned < 2.5 * measured, "a plan that is always right says nothing"


def test_reading_takes_at_most_what_the_plan_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces: twice the text takes twice the cache and no more beside it."""
    for module in (model, memory_plan):
        monkeypatch.setattr(module, "READ_AT_ONCE", 128)
    body = small_moe.config()
    planned = memory_plan.plan(body["text_config"], None, 4)
    for tokens in (512, 1024):
        resident = ResidentModel(small_moe.library_model(body), CPU, torch.float32)
        cache = resident.new_cache()
        measured, kept = peak(partial(resident.encode, [7] * tokens, cache))
        assert kept == pytest.approx(tokens * planned.cache, rel=0.05)
        assert measured <= planned.read(tokens) + 2 * tokens * planned.cache


def test_reading_in_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    body = small_moe.config()
    resident = ResidentModel(small_moe.library_model(body), CPU, torch.float32)
    ids = torch.randint(320, (60,), generator=torch.Generator().manual_seed(4)).tolist()
    whole, pieces = resident.new_cache(), resident.new_cache()
    resident.encode(ids, whole)
    monkeypatch.setattr(model, "READ_AT_ONCE", 7)
    assert resident.encode(ids, pieces) == 60
    assert pieces.ids == whole.ids == ids
    torch.testing.assert_close(pieces.last_hidden, whole.last_hidden, atol=1e-4, rtol=1e-4)
    for mine, theirs in zip(pieces.layers, whole.layers, strict=True):
        torch.testing.assert_close(mine.keys, theirs.keys, atol=1e-4, rtol=1e-4)


def test_the_published_model_fits_into_24_gb() -> None:
    """Against the arithmetic of the design: experts 12.1, embedding 1.5, the rest 1.7; 200 + 20 KiB per token."""
    plan = memory_plan.plan(PUBLISHED, HOW)
    assert plan.experts == pytest.approx(22.84e9 * 4.25 / 8, rel=0.01)
    assert plan.embedding == 262144 * 2816 * 2
    assert plan.linears == pytest.approx(1.66e9, rel=0.02)
    assert plan.cache == 25 * 8192 + 5 * 4096
    assert plan.weights < 15.5e9
    memory_plan.refuse_beyond(PUBLISHED, HOW, free=24e9, positions=5 * 64, tokens=6144)


def test_the_plan_counts_what_the_class_has() -> None:
    """All weights of the published shape, built without memory: not one is forgotten, none is counted twice."""
    body = small_moe.config(layer_types=None, **PUBLISHED)
    shapes = loader.wanted_shapes(loader.skeleton(body, torch.device("meta")))
    plan = memory_plan.plan(PUBLISHED, None)
    assert plan.weights == pytest.approx(2 * sum(math.prod(shape) for shape in shapes.values()), rel=1e-5)
    assert plan.experts == 2 * sum(math.prod(shape) for name, shape in shapes.items() if ".experts." in name)


def test_what_does_not_fit_is_refused_with_numbers_and_alternatives() -> None:
    with pytest.raises(EngineError) as caught:
        memory_plan.refuse_beyond(PUBLISHED, None, free=24e9, positions=64, tokens=6144)
    assert "and 24.0 GB are free" in caught.value.message and "50.5 GB of weights" in caught.value.message
    assert 'experts = "int4"' in caught.value.hint and "embedded" in caught.value.hint
    with pytest.raises(EngineError) as caught:
        memory_plan.refuse_beyond(PUBLISHED, HOW, free=8e9, positions=64, tokens=6144)
    assert "in the profile" not in caught.value.hint and "vLLM" in caught.value.hint


@pytest.mark.parametrize("free", [16.5e9, 17e9, 18e9, 20e9, 22e9, 40e9])
@pytest.mark.parametrize("how", [HOW, None])
def test_an_alternative_fits_and_is_no_more_than_needed(free: float, how: Quantisation | None) -> None:
    offered = memory_plan.alternatives(PUBLISHED, how, free=free, positions=640, tokens=6144)
    assert len(offered) == 3
    needed = float(offered[0].rpartition(": ")[2].removesuffix(" GB"))
    assert needed * 1e9 <= free + 1e7
    changes = offered[0].rpartition(" in the profile")[0]
    if free >= 20e9:
        assert "context" not in changes and 'linears = "int4"' not in changes


@pytest.mark.parametrize("config", [{}, {"hidden_size": 8}, {**PUBLISHED, "num_experts": None}])
def test_a_configuration_without_numbers_is_an_error(config: dict[str, Any]) -> None:
    with pytest.raises(EngineError, match="no size follows"):
        memory_plan.plan(config, HOW)


MEASURE = """
import resource, sys, torch
from pathlib import Path
from diffusion import checkpoint, loader
from diffusion.quantisation import Quantisation
torch.set_num_threads(1)
cpu = torch.device("cpu")
torch.ones(8) @ torch.ones(8)
found = checkpoint.read(Path(sys.argv[1]))
Path("/proc/self/clear_refs").write_text("5")
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmRSS")))
loader.convert(found, Quantisation(), cpu, torch.bfloat16)
lines = Path("/proc/self/status").read_text().splitlines()
print(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the kernel tells no peak")
def test_converting_needs_less_than_two_shards_and_a_gigabyte(tmp_path: Path) -> None:
    """A scaled checkpoint of 0.9 GB in shards of 300 MB. Mapped pages of the shard count, too."""
    if psutil.virtual_memory().available < 6e9:
        pytest.skip("too little memory")
    body = small_moe.config(
        hidden_size=1024, intermediate_size=768, moe_intermediate_size=512, num_experts=32, top_k_experts=4,
        vocab_size=50_000, num_hidden_layers=8, layer_types=["sliding_attention"] * 7 + ["full_attention"],
    )  # fmt: skip
    small_moe.save(small_moe.library_model(body, torch.bfloat16), tmp_path, shard_bytes=300_000_000)
    sizes = [path.stat().st_size for path in tmp_path.glob("model-*.safetensors")]
    assert len(sizes) >= 3 and sum(sizes) > 0.8e9
    done = subprocess.run([sys.executable, "-I", "-c", MEASURE, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    before, most = (1024 * int(line) for line in done.stdout.split())
    assert most < 2 * max(sizes) + 1e9, f"{most / 1e6:.0f} MB in all"
    assert most - before < 1.8 * max(sizes), f"{(most - before) / 1e6:.0f} MB beside the libraries' {before / 1e6:.0f}"
    index = json.loads((tmp_path / "snapshot" / "snapshot.json").read_text())
    assert index["complete"] and sum(part["bytes"] for part in index["parts"]) < 0.45 * sum(sizes)
