"""Fills on a device that is not the CPU: nothing is left on the wrong one."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

from diffusion.api import EditRequest, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.experts import NO_EXPERTS
from diffusion.model import ResidentModel
from diffusion.profiles import ModelProfile
from diffusion.samplers import uniform_noise
from diffusion.vocabulary import Vocabulary

from .chat_tiny import make_chat_tiny
from .conftest import Tiny
from .pretended_gpu import GPU, OnGpu, move, pretended_gpu

REQUESTS = [
    FillRequest(id="1", language="python", prefix="def f(a):\n    return ", suffix="\n\nf(1)\n", seed=3, n=3),
    FillRequest(
        id="2", language="python", prefix="def f(a):\n    x = fo", suffix=")\n    return x\n", seed=4, mode="block"
    ),
    FillRequest(id="3", language="python", prefix="import os\n", suffix="", seed=5),
]


def test_the_pretence_is_as_strict_as_a_gpu() -> None:
    with pretended_gpu() as device:
        there = torch.arange(4, device=device)
        assert isinstance(there, OnGpu) and there.device == GPU and there.tolist() == [0, 1, 2, 3]
        here = torch.arange(4)
        with pytest.raises(RuntimeError, match="on the CPU and on"):
            _ = there + here
        with pytest.raises(RuntimeError, match="on the CPU and on"):
            _ = here[there]
        with pytest.raises(RuntimeError, match="a generator of another device"):
            torch.multinomial(torch.ones(4, device=device), 1, generator=torch.Generator())
        assert (there[here] + there.cpu().to(device)).cpu().tolist() == [0, 2, 4, 6]
        assert (there.float() * 2.0).sum().item() == 12.0


def resident(library: Any, device: torch.device) -> ResidentModel:
    """The same numbers on the device."""
    copy = deepcopy(library)
    copy.set_experts_implementation("eager" if copy.config.text_config.num_experts > 1 else NO_EXPERTS)
    if device == GPU:
        move(copy)
    return ResidentModel(copy, device, torch.float32)


def answers(
    profile: ModelProfile, vocabulary: Vocabulary, library: Any, asked: Sequence[FillRequest | EditRequest]
) -> list[list[list[str]]]:
    """Per device and request the candidates' texts."""
    found: list[list[list[str]]] = []
    with pretended_gpu():
        for device in (torch.device("cpu"), GPU):
            engine = ResidentEngine(profile, vocabulary, resident(library, device))
            found.append([])
            for request in asked:
                *_, last = engine.fill(request)
                assert isinstance(last, Result)
                found[-1].append([candidate.text for candidate in last.candidates])
    return found


@pytest.mark.slow
def test_fills_of_the_native_layout(tiny: Tiny) -> None:
    on_cpu, on_gpu = answers(tiny.profile, tiny.vocabulary, tiny.library, REQUESTS)
    assert on_cpu == on_gpu and any(on_cpu)


@pytest.mark.slow
def test_fills_of_the_chat_layout(tmp_path: Path) -> None:
    """Here the last digit of a sum decides which random id is taken, and another one comes out of the GPU's way of
    attending. That nothing is on the wrong device is what counts."""
    chat = make_chat_tiny(tmp_path)
    edit = EditRequest(id="4", selected="b = 2\n", before="a = 1\n", after="c = 3\n", instruction="rename b", steps=2)
    for found in answers(chat.profile, chat.vocabulary, chat.library, [*REQUESTS, edit]):
        assert len(found) == len(REQUESTS) + 1 and any(found)


def test_a_step_gives_the_same_there(tmp_path: Path) -> None:
    chat = make_chat_tiny(tmp_path)
    logits, noise = [], []
    with pretended_gpu():
        for device in (torch.device("cpu"), GPU):
            model = resident(chat.library, device)
            cache = model.new_cache()
            model.encode(range(40, 140), cache)
            hidden = model.decode(model.tensor([range(200, 232)]), model.tensor([range(100, 132)]), cache)
            logits.append(model.logits(hidden).cpu())
            generator = torch.Generator(device).manual_seed(1)
            noise.append(uniform_noise(torch.Size((2, 9)), 0, 700, generator, device).cpu())
    torch.testing.assert_close(*logits, atol=1e-4, rtol=1e-4)
    assert noise[0].equal(noise[1])
