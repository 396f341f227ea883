"""The training loop: batches, optimiser, schedule, averaged weights, checkpoints, log. See train.py for the command.

The run is a sequence of phases that only the state decides: next token alone until `warm_start_tokens` of text are
read, then windows and canvases. Stopping at any moment loses the steps since the last checkpoint and nothing else.
Knows tensors and files; what an example is, it leaves to examples.py.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import pickle
import random
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from diffusion.api import EngineError
from diffusion.profiles import ModelProfile
from diffusion.training import network, objective
from diffusion.training.dataset import Corpus
from diffusion.training.examples import Rows
from diffusion.training.loading import Workers, one_by_one
from diffusion.training.muon import Muon
from diffusion.training.network import Network, Packed, Size
from diffusion.vocabulary import Vocabulary

LONGEST_STEP = 30.0
"""Seconds. A step that took longer was paused (by a signal or a sleeping machine) and counts as this much."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a run is made with. Rates are those of the stable phase; the warm-up is in steps. `loss_rows` per window.
    `workers`: processes that make examples beside the run; with none a run can be repeated exactly."""

    batch: int = 4
    muon_rate: float = 0.02
    adam_rate: float = 0.003
    weight_decay: float = 0.01
    warmup: int = 100
    average: float = 0.99
    warm_start_tokens: int = 6_000_000
    next_token_share: float = 0.5
    loss_rows: int = 512
    workers: int = 0
    evaluate_every: int = 500
    checkpoint_seconds: float = 300.0
    seed: int = 1


@dataclass(kw_only=True)
class Progress:
    """Where a run is. `text_tokens` counts window tokens; padding, context and canvases are not text."""

    step: int = 0
    text_tokens: int = 0
    seconds: float = 0.0


class Trainer:
    """A run in `folder`: state.pt (or `cooled.pt` while cooling down), log.jsonl."""

    def __init__(
        self,
        *,
        folder: Path,
        corpus: Path,
        profile: ModelProfile,
        vocabulary: Vocabulary,
        size: Size,
        settings: Settings,
        device: str,
    ) -> None:
        self.folder, self.profile, self.vocabulary, self.settings = folder, profile, vocabulary, settings
        self.device = torch.device(device)
        self.train_split, self.heldout = Corpus(corpus, "train"), Corpus(corpus, "heldout")
        self.progress = Progress()
        self.rng = random.Random(settings.seed)
        compute = fast_dtype(self.device)
        self.network = Network(size, seed=settings.seed, compute=compute).to(self.device)
        self.average = {name: weight.detach().clone() for name, weight in self.network.named_weights().items()}
        self.muon, self.adam = _optimisers(self.network, settings)
        self._optimisers_since = 0
        self._workers = (
            Workers(corpus, profile, vocabulary.path, settings.batch, settings.workers, settings.seed)
            if settings.workers
            else None
        )
        self.folder.mkdir(parents=True, exist_ok=True)

    # --- state ---------------------------------------------------------------------------------------------------

    def save(self, name: str) -> None:
        """Write a checkpoint through a temporary file. Raises EngineError when the disk refuses; the old one stays."""
        path, partial = self.folder / name, self.folder / f"{name}.partial"
        state = {
            "weights": {name: weight.detach() for name, weight in self.network.named_weights().items()},
            "average": self.average,
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "progress": dataclasses.asdict(self.progress),
            "random": self.rng.getstate(),
        }
        try:
            torch.save(state, partial)
            partial.replace(path)
        except (OSError, RuntimeError) as error:
            partial.unlink(missing_ok=True)
            raise EngineError(f"cannot write the checkpoint {path}: {error}", "free some disk space") from error

    def load(self, name: str) -> bool:
        """Continue from a checkpoint; False if there is none. Raises EngineError if it cannot be read."""
        path = self.folder / name
        if not path.is_file():
            return False
        try:
            state = torch.load(path, map_location=self.device, weights_only=True)
            self.load_weights(state["weights"], state["average"])
            self.muon.load_state_dict(state["muon"])
            self.adam.load_state_dict(state["adam"])
            self.progress = Progress(**state["progress"])
            version, internal, gauss = state["random"]
            self.rng.setstate((version, tuple(internal), gauss))
        except (OSError, RuntimeError, KeyError, TypeError, ValueError, EOFError, pickle.UnpicklingError) as error:
            raise EngineError(
                f"the checkpoint {path} cannot be read: {str(error).splitlines()[0]}",
                "remove it to start again from the shipped weights",
            ) from error
        return True

    def continue_from(self, weights: dict[str, Tensor], metadata: dict[str, str]) -> None:
        """Go on from exported weights where no checkpoint is left: the optimisers start anew."""
        self.load_weights(weights, weights)
        known = {name: float(metadata.get(name, 0)) for name in ("step", "text_tokens", "seconds")}
        self.progress = Progress(
            step=int(known["step"]), text_tokens=int(known["text_tokens"]), seconds=known["seconds"]
        )
        self._optimisers_since = self.progress.step

    def load_weights(self, weights: dict[str, Tensor], average: dict[str, Tensor]) -> None:
        """Take over weights by the library's names. Raises KeyError or RuntimeError where they do not fit."""
        with torch.no_grad():
            for name, weight in self.network.named_weights().items():
                weight.copy_(weights[name])
                self.average[name].copy_(average[name])

    # --- the loop ------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        minutes: float,
        cooldown: float,
        on_step: Callable[[Progress, dict[str, float]], None],
        evaluate: Callable[[], dict[str, float]],
    ) -> None:
        """Train for `minutes` of active time, the last `cooldown` of them with the rates going linearly to 2 %.

        What is learned while cooling goes to cooled.pt; state.pt stays as it was before, to be continued.
        """
        name = "state.pt"
        begun, saved = self.progress.seconds, time.monotonic()
        try:
            while (spent := self.progress.seconds - begun) < minutes * 60:
                if name == "state.pt" and cooldown and spent >= (minutes - cooldown) * 60:
                    self.save(name)
                    name = "cooled.pt"
                start = time.monotonic()
                left = (minutes * 60 - spent) / (cooldown * 60) if cooldown else 1.0
                report = self.step(rate=max(0.02, min(1.0, left)))
                self.progress.seconds += min(time.monotonic() - start, LONGEST_STEP)
                if self.progress.step % self.settings.evaluate_every == 0:
                    report |= evaluate()
                on_step(self.progress, report)
                self._log(report)
                if time.monotonic() - saved > self.settings.checkpoint_seconds:
                    self.save(name)
                    saved = time.monotonic()
        finally:
            self.save(name)

    def step(self, rate: float) -> dict[str, float]:
        """One optimiser step at `rate` times the full learning rates (warm-up applied here). Returns the losses."""
        warm = self.progress.text_tokens < self.settings.warm_start_tokens
        batch = self._next_batch(canvases=not warm)
        losses = self._losses(batch, self.rng)
        losses["total"].backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        rate *= min(1.0, (self.progress.step - self._optimisers_since + 1) / self.settings.warmup)
        for optimiser, full in ((self.muon, self.settings.muon_rate), (self.adam, self.settings.adam_rate)):
            for group in optimiser.param_groups:
                group["lr"] = full * rate
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        self.progress.step += 1
        self.progress.text_tokens += sum(rows.text_tokens for rows in batch)
        self._average()
        return {name: float(value.detach()) for name, value in losses.items()}

    def _next_batch(self, canvases: bool) -> list[Rows]:
        if self._workers:
            return self._workers.next(canvases)
        return one_by_one(
            self.train_split, self.rng, self.vocabulary, self.profile, self.settings.batch, canvases=canvases
        )

    def heldout_losses(self, batches: int = 8) -> dict[str, float]:
        """Losses of the averaged weights on the same held-out windows every time."""
        rng = random.Random(0)
        sums: dict[str, list[float]] = {}
        warm = self.progress.text_tokens < self.settings.warm_start_tokens
        with torch.no_grad(), self.averaged():
            for _ in range(batches):
                batch = one_by_one(
                    self.heldout, rng, self.vocabulary, self.profile, self.settings.batch, canvases=not warm
                )
                for name, value in self._losses(batch, rng).items():
                    sums.setdefault(f"heldout_{name}", []).append(float(value))
        return {name: sum(values) / len(values) for name, values in sums.items()}

    def averaged(self) -> _Swapped:
        """Context manager: the network holds the averaged weights inside."""
        return _Swapped(self.network, self.average)

    def _losses(self, batch: list[Rows], rng: random.Random) -> dict[str, Tensor]:
        """total, next_token and (with canvases) slot losses, in nats per token."""
        ids, positions, segment, cut = (self._stack(batch, name) for name in ("ids", "positions", "segment", "cut"))
        packed = Packed(ids, positions, segment, cut, window=self.profile.layout.encoder)
        hidden = self.network(packed).flatten(0, 1)
        chosen = _choose_rows(batch, self.settings.loss_rows * len(batch), rng)
        index = torch.from_numpy(chosen).to(self.device)
        targets, weights, slot = (self._stack(batch, name).flatten()[index] for name in ("targets", "weights", "slot"))
        slot_weights, next_weights = weights * slot, weights * ~slot
        slot_sum, next_sum = slot_weights.sum().clamp(min=1), next_weights.sum().clamp(min=1)
        has_slots = bool(slot.any())
        share = self.settings.next_token_share if has_slots else 1.0
        combined = slot_weights / slot_sum + share * next_weights / next_sum
        total, losses = objective.cross_entropy(
            hidden[index], self.network.weight("embed_tokens.weight"), targets, combined, self.network.compute
        )
        report = {"total": total, "next_token": (losses * next_weights).sum() / next_sum}
        return report | ({"slot": (losses * slot_weights).sum() / slot_sum} if has_slots else {})

    def _stack(self, batch: list[Rows], name: str) -> Tensor:
        return torch.from_numpy(np.stack([getattr(rows, name) for rows in batch])).to(self.device)

    def _average(self) -> None:
        keep = min(self.settings.average, (1 + self.progress.step) / (10 + self.progress.step))
        names = list(self.average)
        weights = self.network.named_weights()
        with torch.no_grad():
            torch._foreach_lerp_(
                [self.average[name] for name in names], [weights[name].detach() for name in names], 1.0 - keep
            )

    def _log(self, report: dict[str, float]) -> None:
        line = dataclasses.asdict(self.progress) | {name: round(value, 4) for name, value in report.items()}
        if not all(math.isfinite(value) for value in report.values()):
            raise EngineError(f"the loss is not finite at step {self.progress.step}", "lower the learning rates")
        with (self.folder / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


class _Swapped:
    def __init__(self, net: Network, average: dict[str, Tensor]) -> None:
        self._weights, self._average = net.named_weights(), average

    def _swap(self) -> None:
        with torch.no_grad():
            for name, weight in self._weights.items():
                weight.data, self._average[name] = self._average[name], weight.data

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()


def compile_kernels() -> None:
    """Compile the layer and the loss once for all layers. Needs a C++ compiler on a CPU."""
    network.layer = torch.compile(network.layer, dynamic=False)
    objective.chunk_kernel = torch.compile(objective.chunk_kernel, dynamic=False)


def fast_dtype(device: torch.device) -> torch.dtype:
    """The dtype for matrix products: bfloat16, but float32 on a CPU that is faster with it (no bfloat16 units)."""
    if device.type != "cpu":
        return torch.bfloat16

    def seconds(dtype: torch.dtype) -> float:
        rows, weight = torch.ones(512, 256, dtype=dtype), torch.ones(768, 256, dtype=dtype)
        return min(timeit.repeat(lambda: torch.nn.functional.linear(rows, weight), number=1, repeat=5))

    return min(torch.float32, torch.bfloat16, key=seconds)


def use_threads(count: int) -> None:
    """Use `count` threads for everything, and the engine's precision for what is evaluated on the way."""
    torch.set_num_threads(count)
    torch.set_float32_matmul_precision("medium")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _choose_rows(batch: list[Rows], count: int, rng: random.Random) -> Any:
    """Indices into the flattened (B, S) of `count` rows to learn from: all of the slots', as many others as fit.

    A fixed count keeps the compiled kernels; rows of weight 0 fill up.
    """
    weights = np.concatenate([rows.weights for rows in batch])
    slot = np.concatenate([rows.slot for rows in batch])
    generator = np.random.default_rng(rng.getrandbits(32))
    slots = generator.permutation(np.flatnonzero(slot & (weights > 0)))[: count * 3 // 4]
    others = generator.permutation(np.flatnonzero(~slot & (weights > 0)))[: count - len(slots)]
    idle = np.flatnonzero(weights == 0)[: count - len(slots) - len(others)]
    return np.concatenate([slots, others, idle])


def _optimisers(net: Network, settings: Settings) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """Muon for the layers' matrices, AdamW for the embedding and the norms."""
    named = net.named_weights()
    matrices = [weight for name, weight in named.items() if weight.dim() == 2 and name != "embed_tokens.weight"]
    others = [weight for name, weight in named.items() if weight.dim() == 1 or name == "embed_tokens.weight"]
    return (
        Muon(matrices, lr=settings.muon_rate, weight_decay=settings.weight_decay, compute=net.compute),
        torch.optim.AdamW(others, lr=settings.adam_rate, betas=(0.9, 0.98), weight_decay=0.0),
    )
