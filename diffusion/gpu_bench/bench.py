"""What all measurements share: what is measured on what, how a figure is reported, how time and memory are taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from diffusion import memory_plan
from diffusion.profiles import ModelProfile
from diffusion.quantisation import Quantisation


class Figures:
    """One line of the report."""

    def __init__(self, what: str, **values: str | float) -> None:
        self.what, self.values = what, values


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """`widths` of canvases by `batches`; `tokens` of context; `repeats` of a call and `steps` of
    denoising are timed; `copied` bytes measure the bandwidth."""

    widths: tuple[int, ...]
    batches: tuple[int, ...]
    tokens: int
    repeats: int
    steps: int
    copied: int

    @property
    def all(self) -> list[tuple[int, int]]:
        return [(width, batch) for width in self.widths for batch in self.batches]


@dataclass(frozen=True, kw_only=True)
class Bench:
    """What is measured and on what. `text`: the text_config."""

    profile: ModelProfile
    quantisation: Quantisation
    text: dict[str, Any]
    device: torch.device
    where: str
    dtype: torch.dtype
    buckets: Buckets

    @property
    def plan(self) -> memory_plan.Plan:
        return memory_plan.plan(self.text, self.quantisation, self.dtype.itemsize)

    @property
    def on_gpu(self) -> bool:
        return self.device.type == "cuda"

    def wait(self) -> None:
        """Until the device has done what it was told to do."""
        if self.on_gpu:
            torch.cuda.synchronize(self.device)

    def ms(self, call: Callable[[], object]) -> float:
        """The median time of a call, after one that warms up."""
        times = []
        for _ in range(self.buckets.repeats + 1):
            self.wait()
            begun = time.perf_counter()
            call()
            self.wait()
            times.append((time.perf_counter() - begun) * 1000)
        return statistics.median(times[1:])

    def reset_peak(self) -> None:
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats(self.device)

    def peak(self) -> dict[str, float]:
        """GB that were held at most since the last reset; only a GPU counts them."""
        return {"peak_gb": torch.cuda.max_memory_allocated(self.device) / 1e9} if self.on_gpu else {}
