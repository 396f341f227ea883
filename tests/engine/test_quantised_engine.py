"""A quantised model at work: fills in the chat layout, its cache, its share of device words in the status; and devices
that are not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffusion import devices, loader, model
from diffusion.api import EngineError, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.profiles import ModelProfile
from diffusion.quantisation import Quantisation
from diffusion.vocabulary import Vocabulary
from tests.chat_models import small_profile, train_tokenizer

from . import small_moe

VOCABULARY = 700
MAKINGS = [Quantisation(), Quantisation(linears="int4", group=32), Quantisation(linears="float8")]


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> ModelProfile:
    folder = tmp_path_factory.mktemp("chat")
    train_tokenizer(VOCABULARY, folder / "tokenizer.json")
    small_moe.save(small_moe.library_model(small_moe.config(vocab_size=VOCABULARY, sliding_window=64)), folder)
    return small_profile(folder, VOCABULARY)


@pytest.mark.parametrize("how", MAKINGS, ids=lambda how: how.linears)
def test_it_fills(how: Quantisation, profile: ModelProfile) -> None:
    """Random weights write nonsense, but they write, from the snapshot as from the checkpoint."""
    quantised = replace(profile, quantisation=how)
    vocabulary = Vocabulary(profile.weights / "tokenizer.json", profile.specials)
    answers = []
    for _ in range(2):
        engine = ResidentEngine(quantised, vocabulary, model.load(quantised))
        assert engine.device.startswith("cpu (") or torch.cuda.is_available()
        request = FillRequest(id="1", language="python", prefix="def f(x):\n    return ", suffix="\n\n\nf(1)\n", seed=3)
        *_, result = engine.fill(request)
        assert isinstance(result, Result) and result.cost.forwards > 0
        answers.append([candidate.text for candidate in result.candidates])
    assert answers[0] == answers[1]


def test_a_warm_cache_gives_what_a_cold_one_gives(profile: ModelProfile) -> None:
    quantised = loader.load(profile.weights, Quantisation(), torch.device("cpu"), torch.float32)
    resident = model.ResidentModel(quantised, torch.device("cpu"), torch.float32)
    ids = torch.randint(10, 600, (150,), generator=torch.Generator().manual_seed(1)).tolist()
    warm, cold = resident.new_cache(), resident.new_cache()
    resident.encode(ids, warm)
    changed = [*ids[:90], *ids[100:]]
    assert resident.encode(changed, warm) < len(changed)
    resident.encode(changed, cold)
    canvas, positions = resident.tensor([[7] * 16]), resident.tensor([list(range(140, 156))])
    found = [resident.logits(resident.decode(canvas, positions, cache)) for cache in (warm, cold)]
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)


TOO_OLD = (
    "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading\n"
    "and installing a new version from the URL: http://www.nvidia.com/Download/index.aspx"
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TOO_OLD, "the NVIDIA driver is too old for CUDA 12.8: update it, or install an older torch"),
        (
            "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
            "there is no NVIDIA driver",
        ),
        ("No CUDA GPUs are available", "there is no NVIDIA GPU"),
        (
            "CUDA driver initialization failed, you might not\nhave a CUDA gpu.",
            "CUDA does not start: CUDA driver initi",
        ),
    ],
)
def test_why_there_is_no_cuda(error: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch says, with all of its advice, in a few words that stand in the status."""

    def init() -> None:
        raise RuntimeError(error)

    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    chosen = devices.choose()
    assert chosen.device.type == "cpu" and chosen.free > 0
    assert str(chosen).startswith(f"cpu ({said}") and "\n" not in str(chosen)


def test_a_torch_without_cuda_beside_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(torch.version, "hip", None)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "none")
    assert devices.cuda_problem() == "torch is built without CUDA"
    monkeypatch.setattr(devices, "DRIVER", tmp_path)
    assert "install a torch with CUDA" in devices.cuda_problem()


def test_cuda_before_mps_before_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "cuda_problem", lambda: "")
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10**9, 2 * 10**9))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Big Card")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert (str(devices.choose()), devices.choose().free) == ("cuda (Big Card)", 10**9)
    monkeypatch.setattr(devices, "cuda_problem", lambda: "no")
    assert devices.choose().device.type == "mps"


def test_float8_on_a_device_without_it(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no 8-bit floats") as caught:
        loader.prepared(tmp_path, Quantisation(linears="float8"), torch.device("mps"), torch.bfloat16)
    assert 'linears = "int8"' in caught.value.hint
