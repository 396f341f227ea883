"""`midfill doctor --model`: the memory plan before anything is loaded or even fetched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from diffusion.api import EngineError
from lsp_server.commands import doctor
from lsp_server.usage import UsageError


def plan(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    code = doctor.main(["--json", *arguments])
    return code, json.loads(capsys.readouterr().out)


def test_what_would_be_resident(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = plan(capsys, "--model", "diffusiongemma", "--vram", "24GB")
    assert code == 0 and told["fits"]
    sizes = dict(told["lines"])
    assert sizes["experts"] == "12.13 GB" and sizes["weights in all"] == "15.30 GB"
    assert {"linears", "embedding", "cache per 1000 tokens", "a step, 64 positions"} < sizes.keys()
    _, shorter = plan(capsys, "--model", "diffusiongemma", "--vram", "24GB", "--tokens", "1000")
    most = [name for name in sizes if name.startswith("most")]
    assert float(dict(shorter["lines"])[most[0]].split()[0]) < float(sizes[most[0]].split()[0]) - 1


@pytest.mark.parametrize("vram", ["16GB", "16 GiB", "15258MiB"])
def test_what_does_not_fit_is_refused_with_alternatives(vram: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--model", "diffusiongemma", "--vram", vram]) == 1
    said = capsys.readouterr().out
    assert "the model needs 22.8 GB (15.3 GB of weights" in said
    assert "-> a vLLM server" in said and "-> `midfill model use embedded`" in said


@pytest.mark.parametrize("vram", ["x", "0GB", "-1GB", "24", "1e9GB", "9" * 30 + "GB"])
def test_amounts_that_are_none(vram: str) -> None:
    with pytest.raises(UsageError, match="24GB"):
        doctor.main(["--model", "embedded", f"--vram={vram}"])


def test_wrong_calls() -> None:
    with pytest.raises(UsageError, match="need --model"):
        doctor.main(["--vram", "24GB"])
    with pytest.raises(EngineError, match="no model profile 'nonsense'"):
        doctor.main(["--model", "nonsense", "--vram", "24GB"])
