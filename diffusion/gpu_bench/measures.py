"""What `midfill bench gpu` measures, one figure after the other: the machine, the kernel, the memory of a model with
random weights, a layer, denoising steps, a whole canvas, reading a text, and reading again what has changed.

The floor beside a time is what reading the weights takes, and the cache, at the bandwidth measured here. Knows no
command line.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from diffusion import kernels
from diffusion.canvas import span_canvas
from diffusion.experts import REFERENCE
from diffusion.gpu_bench import products
from diffusion.gpu_bench.bench import Bench, Figures
from diffusion.gpu_bench.random_model import random_model
from diffusion.kernels import FUSED
from diffusion.kv_cache import KeyValueCache
from diffusion.model import ResidentModel
from diffusion.span_rules import Alphabet, SpanRules
from diffusion.uniform import denoise

PLAIN_STEPS = 3
"""Denoising steps that are timed with the plain product, which is slow."""

WARM, TYPED, EDITED = 64, 16, 64
"""Ids that are read before reading is timed; ids typed behind a text; the change of one, counted from its end."""


@dataclass(frozen=True, kw_only=True)
class _Ready:
    """A model on the device, the implementations of its experts that can be compared, and the bandwidth in bytes per
    second."""

    bench: Bench
    library: Any
    model: ResidentModel
    names: tuple[str, ...]
    rules: SpanRules
    bandwidth: float

    def each(self) -> Iterator[str]:
        """The implementations, in use one after the other."""
        for name in self.names:
            self.library.set_experts_implementation(name)
            yield name

    def read(self) -> KeyValueCache:
        """The text in a new cache."""
        cache = self.model.new_cache()
        self.model.encode(self.ids, cache)
        return cache

    @property
    def ids(self) -> list[int]:
        """A text of random ids."""
        generator = torch.Generator().manual_seed(0)
        size = (self.bench.buckets.tokens,)
        ids: list[int] = torch.randint(0, self.model.vocabulary_size, size, generator=generator).tolist()
        return ids


def measured(bench: Bench) -> Iterator[Figures]:
    """All figures, as they become known. What does not fit into memory is left out, and that is said."""
    bandwidth = _bandwidth(bench)
    yield _machine(bench, bandwidth)
    yield from products.correctness(bench)
    bench.reset_peak()
    begun = time.monotonic()
    library = random_model(bench.text, bench.quantisation, bench.device, bench.dtype)
    yield _memory(bench, time.monotonic() - begun)
    chosen = kernels.choose(library.model.decoder, bench.device, bench.dtype)
    yield Figures("experts", words=chosen.words)
    model = ResidentModel(library, bench.device, bench.dtype)
    alphabet = Alphabet([""] * model.vocabulary_size, model.vocabulary_size, bench.profile, bench.device)
    ready = _Ready(
        bench=bench,
        library=library,
        model=model,
        names=(REFERENCE, FUSED) if chosen.name == FUSED or products.interpreted() else (REFERENCE,),
        rules=alphabet.rules(one_line=False, fences=True),
        bandwidth=bandwidth,
    )
    layer = library.model.decoder.layers[0].experts
    for section in (
        products.speed(bench, layer, ready.names, bandwidth),
        _steps(ready),
        _canvas(ready),
        _reading(ready),
    ):
        yield from _as_far_as_memory_goes(section)


def _bandwidth(bench: Bench) -> float:
    """Bytes per second, read and written, of a copy on the device."""
    source = torch.ones(bench.buckets.copied, dtype=torch.uint8, device=bench.device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / (bench.ms(lambda: target.copy_(source)) / 1000)


def _machine(bench: Bench, bandwidth: float) -> Figures:
    values: dict[str, str | float] = {"device": bench.where, "torch": torch.__version__}
    if bench.on_gpu:
        properties = torch.cuda.get_device_properties(bench.device)
        values |= {"memory_gb": properties.total_memory / 1e9, "processors": properties.multi_processor_count}
        values |= {"capability": f"{properties.major}.{properties.minor}", "cuda": str(torch.version.cuda)}
    return Figures("machine", **values, bandwidth_gb_s=bandwidth / 1e9)


def _memory(bench: Bench, seconds: float) -> Figures:
    """GB: what the plan says, what is resident, the most while the model was made."""
    plan = bench.plan
    values = {"planned_gb": plan.weights / 1e9, "planned_experts_gb": plan.experts / 1e9}
    if bench.on_gpu:
        values["resident_gb"] = torch.cuda.memory_allocated(bench.device) / 1e9
    return Figures("memory", **values, **bench.peak(), made_in_s=seconds)


def _steps(ready: _Ready) -> Iterator[Figures]:
    """Denoising steps as the engine does them, from the second one on: with self-conditioning, logits, sampling."""
    bench, plan, cache = ready.bench, ready.bench.plan, ready.read()
    share = bench.text["top_k_experts"] / bench.text["num_experts"]
    for width, batch in bench.buckets.all:
        hit = 1 - (1 - share) ** (width * batch)
        # The embedding is read twice: as the output layer, and for self-conditioning.
        size = plan.experts * hit + plan.linears + 2 * plan.embedding + plan.cache * len(cache.ids)
        for name in ready.each():
            bench.reset_peak()
            times = _denoise(ready, cache, width, batch, PLAIN_STEPS if name == REFERENCE else bench.buckets.steps)
            yield Figures(
                "step", width=width, batch=batch, experts=products.WORDS[name], ms=statistics.median(times[1:]),
                floor_ms=1000 * size / ready.bandwidth, **bench.peak(),
            )  # fmt: skip


def _canvas(ready: _Ready) -> Iterator[Figures]:
    """A canvas of the greatest width, from noise to the profile's last step: random weights never settle before."""
    steps, width, cache = ready.bench.profile.sampler.steps, ready.bench.buckets.widths[-1], ready.read()
    for name in ready.each():
        seconds = sum(_denoise(ready, cache, width, 1, steps)) / 1000
        yield Figures(
            "canvas", width=width, steps=steps, experts=products.WORDS[name], seconds=seconds, tokens_s=width / seconds
        )


def _reading(ready: _Ready) -> Iterator[Figures]:
    """A new text, then the same one typed on, then changed near its end, with the cache that was there."""
    ids, bench = ready.ids, ready.bench
    changed = [*ids[:-EDITED], (ids[-EDITED] + 1) % ready.model.vocabulary_size, *ids[1 - EDITED :]]
    for name in ready.each():
        ready.model.encode(ids[:WARM], ready.model.new_cache())
        cache = ready.model.new_cache()
        for what, text in (("new", ids), ("typed on", [*ids, *ids[:TYPED]]), ("changed", changed)):
            bench.wait()
            begun = time.monotonic()
            encoded = ready.model.encode(text, cache)
            bench.wait()
            seconds = time.monotonic() - begun
            yield Figures(
                "reading", text=what, experts=products.WORDS[name], tokens=len(text), encoded=encoded,
                ms=1000 * seconds, tokens_s=encoded / seconds,
            )  # fmt: skip


def _denoise(ready: _Ready, cache: KeyValueCache, width: int, batch: int, steps: int) -> list[float]:
    """Milliseconds of each step of canvases without pins."""
    profile = ready.bench.profile
    canvases = [span_canvas(profile, width, len(cache.ids), ())] * batch
    run = denoise(ready.model, cache, canvases, rules=ready.rules, sampler=profile.sampler, steps=steps)
    return [step.ms for step in run]


def _as_far_as_memory_goes(section: Iterator[Figures]) -> Iterator[Figures]:
    try:
        yield from section
    except torch.OutOfMemoryError as error:
        torch.cuda.empty_cache()
        yield Figures("left out", reason=f"the rest of this part does not fit: {str(error).splitlines()[0]}")
