"""`midfill bench gpu` on a small model and the CPU: the same script, all its figures, with the kernel interpreted."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from diffusion import memory_plan
from diffusion.api import BadRequest, EngineError
from diffusion.gpu_bench import command
from diffusion.gpu_bench.random_model import random_model
from diffusion.quantisation import Quantisation

from . import small_moe

TINY = ["--scale", "tiny", "--device", "cpu"]
ERRORS = {"float32": 1e-6, "float16": 1e-3, "bfloat16": 1e-2}


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.slow
def test_every_figure(tmp_path: Path) -> None:
    """Through the command that people type, in a process of its own, since Triton is told to interpret."""
    pytest.importorskip("triton")
    file = tmp_path / "gpu.jsonl"
    done = subprocess.run(
        [sys.executable, "-I", "-m", "lsp_server", "bench", "gpu", *TINY, "--quick", "--json", "--output", str(file)],
        capture_output=True, text=True, env=os.environ | {"TRITON_INTERPRET": "1"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert file.read_text() == done.stdout
    told = lines(done.stdout)
    found: dict[str, list[dict[str, Any]]] = {}
    for figure in told:
        found.setdefault(figure["what"], []).append(figure)
    kernels = found["kernel"]
    assert {(figure["dtype"], figure["group"]) for figure in kernels} == {(d, g) for d in ERRORS for g in (64, 128)}
    assert all(figure["error"] < ERRORS[figure["dtype"]] for figure in kernels)
    for what in ("layer", "step", "canvas"):
        assert [figure["experts"] for figure in found[what]] == ["plain", "fused"]
    reading = [(figure["text"], figure["tokens"], figure["encoded"]) for figure in found["reading"]]
    assert reading == [("new", 96, 96), ("typed on", 112, 16), ("changed", 96, 64)] * 2
    assert all(figure["floor_ms"] > 0 < figure["ms"] for figure in [*found["layer"], *found["step"]])
    assert told[-1]["what"] == "done" and "left out" not in found


@pytest.mark.slow
def test_what_is_known_is_kept_when_the_time_is_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, seconds = tmp_path / "gpu.jsonl", itertools.count()
    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    assert command.main([*TINY, "--limit", "3", "--output", str(file)]) == 0
    *told, last = lines(file.read_text())
    assert told[0]["what"] == "machine" and told[0]["bandwidth_gb_s"] > 0
    assert last["what"] == "stopped" and "done" not in capsys.readouterr().out


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_is_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == command.SKIPPED
    assert capsys.readouterr().out.startswith("skipped: no GPU: ")
    assert command.main(["--json"]) == command.SKIPPED
    assert json.loads(capsys.readouterr().out)["what"] == "skipped"


def test_called_wrongly(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="is for a GPU"):
        command.main(["--device", "cpu"])
    with pytest.raises(BadRequest, match="whole number of seconds"):
        command.main([*TINY, "--limit", "soon"])
    with pytest.raises(EngineError, match="cannot be written"):
        command.main([*TINY, "--output", str(tmp_path)])


@pytest.mark.parametrize("how", [Quantisation(), Quantisation(linears="int4", group=32)], ids=str)
def test_a_random_model_is_as_large_as_planned_and_finite(how: Quantisation) -> None:
    text = small_moe.config()["text_config"]
    model = random_model(text, how, torch.device("cpu"), torch.bfloat16)
    planned = memory_plan.plan(text, how).weights
    assert planned <= small_moe.stored_size(model) < 1.02 * planned + 20_000
    ids = torch.arange(40)[None]
    found = small_moe.logits(model, ids, ids[:, :16] + 100)
    assert found.isfinite().all() and found.std() > 0.1
