"""The script for a borrowed accelerator, run on the CPU: pack, train, cut into parts, join."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from diffusion import model
from diffusion.api import EngineError
from diffusion.profiles import load_profile
from diffusion.training import gpu

from .test_own_code import SOURCE


def corpus_of(folder: Path, copies: int) -> Path:
    folder.mkdir()
    for split in ("train", "heldout"):
        rows = ({"package": "p", "path": f"{i}.py", "text": f"# {i}\n{SOURCE}"} for i in range(copies))
        (folder / f"python.{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_pack_run_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    precision = torch.get_float32_matmul_precision()
    packed, out, joined = tmp_path / "packed.xz", tmp_path / "out", tmp_path / "model"
    assert gpu.main(["pack", str(packed), "--corpus", str(corpus_of(tmp_path / "corpus", 30)), "--megabytes", "1"]) == 0
    assert packed.stat().st_size < 1e6
    monkeypatch.setattr(gpu, "PART_BYTES", 4 * 2**20)
    options = ["--minutes", "0.001", "--device", "cpu", "--batch", "1", "--workers", "1", "--no-compile"]
    try:
        assert gpu.main(["run", str(packed), str(out), *options]) == 0
    finally:
        torch.set_float32_matmul_precision(precision)
    assert len(list(out.glob("model.*"))) >= 4
    assert gpu.main(["join", str(out), str(joined)]) == 0
    assert {path.name for path in joined.iterdir()} == {"config.json", "model.safetensors", "tokenizer.json"}
    from dataclasses import replace

    assert model.load(replace(load_profile("embedded"), weights=joined)).vocabulary_size == 8192
    (step,) = {json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()[-1:]}
    assert step > 4000  # it went on from the shipped weights


def test_what_is_not_a_corpus_or_not_whole_is_a_clear_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EngineError, match="holds no corpus"):
        gpu.pack(tmp_path, tmp_path / "packed")
    (tmp_path / "packed").write_bytes(b"nonsense")
    with pytest.raises(EngineError, match="cannot be read"):
        gpu.run(tmp_path / "packed", tmp_path / "o", minutes=1, device="cpu", batch=1, workers=0, more=[])
    (tmp_path / "model.000").write_bytes(b"half")
    assert gpu.main(["join", str(tmp_path), str(tmp_path / "model")]) == 1
    assert "does not hold a whole model" in " ".join(capsys.readouterr().err.split())
