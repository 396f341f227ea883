"""From a checkpoint of several shards to a resident model, through the snapshot: equal to the library's class, without
its memory, and with a sentence for everything that can be wrong with the files."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from diffusion import checkpoint, loader, parts, quantise, snapshot
from diffusion.api import EngineError, Progress
from diffusion.experts import NAMES
from diffusion.quantisation import Quantisation

from . import small_moe

PLAIN = Quantisation(linears="none", experts="none")
INT8 = Quantisation()
CPU = torch.device("cpu")
IDS = torch.randint(320, (2, 40), generator=torch.Generator().manual_seed(2))
CANVAS = torch.randint(320, (2, 24), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint in five shards or more, the vision tower among them."""
    model = small_moe.library_model(small_moe.config())
    folder = small_moe.save(model, tmp_path_factory.mktemp("checkpoint"), shard_bytes=400_000)
    assert len(set(small_moe.written(folder)["weight_map"].values())) >= 5
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "model"))


def load(folder: Path, how: Quantisation = INT8, **more: Any) -> Any:
    return loader.load(folder, how, CPU, torch.float32, **more)


def test_unquantised_it_is_the_library_s_model(folder: Path) -> None:
    """Layer scalars of encoder and decoder differ, the rest is shared: both must come through."""
    expected = small_moe.logits(small_moe.library_model(small_moe.config()), IDS, CANVAS)
    torch.testing.assert_close(small_moe.logits(load(folder, PLAIN), IDS, CANVAS), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_snapshot_gives_the_same_model_again(folder: Path, dtype: torch.dtype) -> None:
    told: list[Progress] = []
    first = loader.load(folder, INT8, CPU, dtype, told.append)
    assert told[-1].done == told[-1].total > 0
    for shard in folder.glob("model-*.safetensors"):
        shard.unlink()
    (folder / checkpoint.INDEX).unlink()
    again = loader.load(folder, INT8, CPU, dtype)
    torch.testing.assert_close(small_moe.logits(again, IDS, CANVAS), small_moe.logits(first, IDS, CANVAS))
    part = snapshot.find(folder / "snapshot").parts[0]  # type: ignore[union-attr]
    header = json.loads((folder / "snapshot" / part.file).read_bytes()[8:].partition(b"}}")[0] + b"}}")
    assert json.loads(header["__metadata__"]["midfill"])["quantisation"] == dataclasses.asdict(INT8)


def test_encoder_and_decoder_hold_the_same_packed_tensors(folder: Path) -> None:
    model = load(folder).model
    for mine, other in zip(model.encoder.language_model.layers, model.decoder.layers, strict=True):
        for name in NAMES:
            assert getattr(mine.experts, f"{name}_packed") is getattr(other.experts, f"{name}_packed")
            assert getattr(mine.experts, name) is None
        assert mine.self_attn.q_proj.weight is other.self_attn.q_proj.weight
        assert type(mine.self_attn) is not type(other.self_attn)
    assert model.encoder.vision_tower is None


def test_weights_on_the_cpu_are_mapped_from_the_snapshot(folder: Path) -> None:
    """A change of the file is seen in the model: nothing has been copied."""
    load(folder)
    model = load(folder)
    packed = model.model.decoder.layers[0].experts.gate_up_proj_packed
    (part,) = [
        path for path in (folder / "snapshot").glob("*.safetensors")
        if "layers.0.experts.gate_up_proj.packed" in checkpoint.read_header(path)
    ]  # fmt: skip
    entry = checkpoint.read_header(part)["layers.0.experts.gate_up_proj.packed"]
    with part.open("r+b") as file:
        start = 8 + int.from_bytes(file.read(8), "little") + entry["data_offsets"][0]
        file.seek(start)
        file.write(bytes([packed.flatten()[0].item() ^ 255]))
    changed = parts.read(part, CPU)["layers.0.experts.gate_up_proj.packed"].flatten()[0]
    assert packed.flatten()[0] == changed


def test_the_vision_tower_is_never_read(folder: Path) -> None:
    """Not even a shard that is missing or broken disturbs, if there is nothing else in it."""
    places = small_moe.written(folder)["weight_map"]
    vision = {name: file for name, file in places.items() if "vision" in name}
    assert vision
    moved = {name: load_file(folder / file)[name] for name, file in vision.items()}
    for file in set(vision.values()):
        rest = {name: weight for name, weight in load_file(folder / file).items() if name not in moved}
        save_file(rest, folder / file) if rest else (folder / file).unlink()
    index = {"weight_map": places | dict.fromkeys(moved, "vision.safetensors")}
    (folder / checkpoint.INDEX).write_text(json.dumps(index))
    (folder / "vision.safetensors").write_bytes(b"nonsense")
    expected = small_moe.logits(small_moe.library_model(small_moe.config()), IDS, CANVAS)
    torch.testing.assert_close(small_moe.logits(load(folder, PLAIN), IDS, CANVAS), expected, atol=1e-4, rtol=1e-4)


def test_names_of_the_encoder_do_as_well(folder: Path) -> None:
    """Tied weights are stored once; which of the two names is up to who wrote the file."""
    for path in sorted(folder.glob("model-*.safetensors")):
        weights = {
            name.replace("model.decoder.", "model.encoder.language_model.")
            if "layer_scalar" not in name and "self_conditioning" not in name else name: weight
            for name, weight in load_file(path).items()
        }  # fmt: skip
        save_file(weights, path)
    places = {name: path.name for path in folder.glob("model-*.safetensors") for name in load_file(path)}
    (folder / checkpoint.INDEX).write_text(json.dumps({"weight_map": places}))
    expected = small_moe.logits(small_moe.library_model(small_moe.config()), IDS, CANVAS)
    torch.testing.assert_close(small_moe.logits(load(folder, PLAIN), IDS, CANVAS), expected, atol=1e-4, rtol=1e-4)


class Interrupted(Exception):
    """What ends a process in the middle."""


def test_an_interrupted_conversion_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards = checkpoint.read(folder).shards
    real, third = quantise.quantise, list(shards.values())[2]

    def quantise_some(name: str, *rest: Any) -> Any:
        if name == third[-1]:
            raise Interrupted
        return real(name, *rest)

    monkeypatch.setattr(quantise, "quantise", quantise_some)
    with pytest.raises(Interrupted):
        load(folder)
    monkeypatch.undo()
    begun = snapshot.find(folder / "snapshot")
    assert begun is not None and not begun.complete and len(begun.parts) == 2
    before = {part.file: (folder / "snapshot" / part.file).stat().st_mtime_ns for part in begun.parts}
    resumed = small_moe.logits(load(folder), IDS, CANVAS)
    after = snapshot.find(folder / "snapshot")
    assert after is not None and after.complete and len(after.parts) == len(shards)
    assert before.items() <= {p.file: (folder / "snapshot" / p.file).stat().st_mtime_ns for p in after.parts}.items()
    shutil.rmtree(folder / "snapshot")
    torch.testing.assert_close(small_moe.logits(load(folder), IDS, CANVAS), resumed)


def test_a_snapshot_needs_its_checkpoint_no_more(folder: Path) -> None:
    """Some or all shards may go; another quantisation then cannot be had."""
    expected = small_moe.logits(load(folder), IDS, CANVAS)
    shard(folder).unlink()
    torch.testing.assert_close(small_moe.logits(load(folder), IDS, CANVAS), expected)
    with pytest.raises(EngineError, match="was quantised in another way"):
        load(folder, Quantisation(linears="int4"))


def test_another_quantisation_is_made_anew(folder: Path) -> None:
    load(folder)
    model = load(folder, Quantisation(linears="int4", group=32))
    assert model.model.decoder.layers[0].experts.down_proj_scale.shape == (8, 128, 2)


# --- what can be wrong

Damage = Callable[[Path], None]


def shard(folder: Path, number: int = 1) -> Path:
    return sorted(checkpoint.read(folder).shards)[number]


def truncate(folder: Path) -> None:
    path = shard(folder)
    path.write_bytes(path.read_bytes()[:-10])


def change_config(**changes: Any) -> Damage:
    def change(folder: Path) -> None:
        body = json.loads((folder / "config.json").read_text())
        for name, value in changes.items():
            (body["text_config"] if name in body["text_config"].keys() - body.keys() else body)[name] = value
        (folder / "config.json").write_text(json.dumps(body))

    return change


def change_weights(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Damage:
    def write(folder: Path) -> None:
        path = shard(folder)
        save_file(change(load_file(path)), path)

    return write


def forget(folder: Path) -> None:
    """A weight is neither in its shard nor in the index."""
    path, places = shard(folder), small_moe.written(folder)["weight_map"]
    name, *rest = [name for name, file in places.items() if file == path.name]
    save_file({other: load_file(path)[other] for other in rest}, path)
    del places[name]
    (folder / checkpoint.INDEX).write_text(json.dumps({"weight_map": places}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda folder: shard(folder).unlink(), "model-0.* is missing"),
        (truncate, r"model-0.* is truncated or damaged: \d+ of \d+ bytes"),
        (lambda folder: shard(folder).write_bytes(b"<html>not found</html>"), "model-0.* is no safetensors file"),
        (lambda folder: shard(folder).write_bytes(b""), "model-0.* is no safetensors file"),
        (lambda folder: shutil.copy(shard(folder, 0), shard(folder, 1)), "model-0.* does not hold model.*another"),
        (change_weights(lambda w: {n: t.half() if t.dim() == 1 else t.to(torch.float8_e4m3fn) for n, t in w.items()}),
         "model-0.* has the unknown dtype F8_E4M3"),
        (lambda folder: (folder / "config.json").unlink(), r"config\.json is missing"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json cannot be read"),
        (lambda folder: (folder / "config.json").write_text("[]"), "unknown architecture"),
        (change_config(model_type="gemma3"), "unknown architecture 'gemma3'"),
        (change_config(quantization_config={"quant_method": "awq"}), r"already quantised \(awq\)"),
        (change_config(tie_word_embeddings=False), "do not share weights"),
        (change_config(hidden_size=64), "in model-0.* has the shape .* instead of"),
        (forget, "does not fit its config.json: .* is missing"),
        (change_config(hidden_size="many"), "cannot be built from its configuration"),
        (lambda folder: (folder / checkpoint.INDEX).write_text("[]"), "index.json cannot be read"),
        (lambda folder: (folder / checkpoint.INDEX).write_text('{"weight_map": {"x": "../../etc/passwd"}}'),
         "is not the name of a file"),
        (lambda folder: (folder / checkpoint.INDEX).unlink(), r"model\.safetensors is missing"),
    ],
)  # fmt: skip
def test_damaged_checkpoints_are_named(damage: Damage, said: str, folder: Path) -> None:
    damage(folder)
    with pytest.raises(EngineError, match=said) as caught:
        load(folder)
    assert caught.value.hint
    assert not (folder / "snapshot" / "snapshot.json").exists() or not snapshot.find(folder / "snapshot").complete  # type: ignore[union-attr]


def flip(path: Path) -> None:
    body = bytearray(path.read_bytes())
    body[-1] ^= 1
    path.write_bytes(bytes(body))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda part: part.unlink(), "is missing"),
        (lambda part: part.write_bytes(part.read_bytes()[:-1]), r"truncated or foreign: \d+ of \d+ bytes"),
        (flip, "has a wrong checksum"),
        (lambda part: (part.parent / "snapshot.json").write_text("{}"), r"snapshot\.json cannot be read"),
        (lambda part: (part.parent / "snapshot.json").write_text('{"parts": [{"file": "/x"}]}'), "cannot be read"),
    ],
)
def test_damaged_snapshots_are_named(damage: Callable[[Path], Any], said: str, folder: Path) -> None:
    load(folder)
    part = sorted((folder / "snapshot").glob("*.safetensors"))[1]
    damage(part)
    with pytest.raises(EngineError, match=said) as caught:
        load(folder)
    assert str(folder) in caught.value.message and "quantize" in caught.value.hint


def test_too_little_disk_is_said_before_the_work(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(EngineError, match=r"snapshot needs 0\.0 GB and 0\.0 GB are free"):
        load(folder)
    assert not list((folder / "snapshot").glob("*.safetensors"))
