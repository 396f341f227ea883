"""A tiny random model of the real class and a tokenizer to go with it, made once per run. Knows the training code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from diffusion.api import FillRequest
from diffusion.engine import ResidentEngine
from diffusion.model import ResidentModel, assemble
from diffusion.opening import Desk, Tally, Task
from diffusion.profiles import ModelProfile, load_profile
from diffusion.training.export import library_config, library_weights
from diffusion.training.network import Network, Size
from diffusion.training.tokenizer import train
from diffusion.vocabulary import Vocabulary

TEXTS = [
    Path(__file__).read_text(),
    *(path.read_text() for path in sorted(Path(__file__).parents[2].glob("diffusion/*.py"))),
]


@dataclass(frozen=True)
class Tiny:
    """Random weights, float32: the training network and the library's class around the same numbers."""

    profile: ModelProfile
    vocabulary: Vocabulary
    network: Network
    library: DiffusionGemmaForBlockDiffusion
    model: ResidentModel


def prepared(engine: ResidentEngine, tiny: Tiny, asked: FillRequest) -> tuple[Task, Desk]:
    """What the engine has before it on a request, its prompt encoded."""
    task = engine.tasks.task(asked)
    desk = Desk(model=tiny.model, cache=tiny.model.new_cache(), profile=tiny.profile, tally=Tally())
    tiny.model.encode(task.prompt.encoder, desk.cache)
    return task, desk


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    return make_tiny(tmp_path_factory, window=1024)


@pytest.fixture(scope="session")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """The same with a sliding window of 16, which short texts overflow."""
    return make_tiny(tmp_path_factory, window=16)


def make_tiny(tmp_path_factory: pytest.TempPathFactory, window: int) -> Tiny:
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("tiny")
    profile = replace(load_profile("embedded"), weights=folder)
    train(TEXTS, profile, 512, folder / "tokenizer.json")
    size = Size(vocabulary=512, hidden=32, inner=48, layers=3, heads=2, head_dim=16)
    network = Network(size, compute=torch.float32)
    with torch.no_grad():
        for weight in network.named_weights().values():
            weight.normal_(1.0 if weight.dim() == 1 else 0.0, 0.3)
    shape = library_config(size, profile)
    shape["text_config"]["sliding_window"] = window
    config = DiffusionGemmaConfig.from_dict(shape)
    # Two of them: the resident one attends in its own way, the other as the library does.
    weights = library_weights(network.named_weights(), size, torch.float32)
    (library, wrong), (copy, _) = assemble(config, weights), assemble(config, weights)
    assert not wrong
    model = ResidentModel(copy, torch.device("cpu"), torch.float32)
    return Tiny(profile, Vocabulary(folder / "tokenizer.json", profile.specials), network, library, model)
