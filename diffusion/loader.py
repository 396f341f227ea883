"""From a checkpoint to a resident model that never existed in bfloat16: shard by shard, quantised on the device.

The class is built without memory; weights are read one at a time, quantised where the model will be, and written as a
snapshot, from which they are loaded then and every later time. Encoder and decoder get the same modules. Knows
checkpoints, snapshots and the class; neither profiles nor what the model is for.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from filelock import FileLock
from huggingface_hub.errors import StrictDataclassError
from safetensors import SafetensorError, safe_open
from torch import Tensor
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from diffusion import checkpoint as checkpoints
from diffusion import experts, memory_plan, parts, quantise, snapshot
from diffusion.api import EngineError, Progress
from diffusion.checkpoint import Checkpoint
from diffusion.quantisation import Quantisation
from diffusion.snapshot import Part, Recipe, Snapshot

Report = Callable[[Progress], None]
OWN = "encoder."
"""Names that begin with it are the encoder's own: its layer scalars."""


def load(
    folder: Path, how: Quantisation, device: torch.device, dtype: torch.dtype, on_progress: Report = lambda _: None
) -> DiffusionGemmaForBlockDiffusion:
    """The model in `folder` (config.json and a snapshot, or shards to make one of), on `device`.

    Raises EngineError naming the file that is missing, damaged, or of an unknown kind.
    """
    found = prepared(folder, how, device, dtype, on_progress)
    snapshot.verify(found)
    model = skeleton(checkpoints.read_config(folder / checkpoints.CONFIG), device)
    wanted = set(wanted_shapes(model))
    done = 0
    for part in found.parts:
        place(model, parts.read(found.folder / part.file, device), wanted, how, dtype)
        done += part.bytes
        on_progress(Progress(done=done, total=found.bytes))
    finish(model, wanted, how)
    return model


def prepared(
    folder: Path, how: Quantisation, device: torch.device, dtype: torch.dtype, on_progress: Report = lambda _: None
) -> Snapshot:
    """The snapshot in `folder`, made now if there is none of this kind. One process makes it, others wait for it.

    Raises EngineError.
    """
    if how.linears == "float8" and device.type == "mps":
        raise EngineError("this device has no 8-bit floats", 'set linears = "int8" in the profile', "model")
    found = existing(folder, how, dtype)
    if found is None:
        source = checkpoints.read(folder)
        with FileLock(folder / f"{snapshot.FOLDER}.lock"):
            found = existing(folder, how, dtype) or convert(source, how, device, dtype, on_progress)
    return found


def forget(folder: Path) -> None:
    """Remove the snapshot of a checkpoint that is still there. Raises EngineError."""
    checkpoints.read(folder)
    shutil.rmtree(folder / snapshot.FOLDER, ignore_errors=True)


def existing(folder: Path, how: Quantisation, dtype: torch.dtype) -> Snapshot | None:
    """A complete snapshot that was made like this, and from the checkpoint beside it, if one is there.

    Raises EngineError.
    """
    found = snapshot.find(folder / snapshot.FOLDER)
    if found is None or not found.complete:
        return None
    try:
        recipe = _recipe(checkpoints.read(folder), how, dtype).as_json()
    except EngineError:  # shards that have been removed to save space, or part of them
        recipe = _recipe_like(found, how, dtype)
        if found.recipe != recipe:
            hint = "get the checkpoint again with `midfill model pull`"
            raise EngineError(f"{found.folder} was quantised in another way: {found.recipe}", hint, "model") from None
    return found if found.recipe == recipe else None


def convert(
    checkpoint: Checkpoint,
    how: Quantisation,
    device: torch.device,
    dtype: torch.dtype,
    on_progress: Report = lambda _: None,
) -> Snapshot:
    """Make the snapshot of a checkpoint, or what is missing of it. Raises EngineError.

    Host memory: one shard, mapped, and what becomes of it.
    """
    _check_names(checkpoint)
    recipe = _recipe(checkpoint, how, dtype)
    made = snapshot.begin(checkpoint.folder / snapshot.FOLDER, recipe)
    text = checkpoint.config["text_config"]
    _check_disk(made, memory_plan.plan(text, how, dtype.itemsize).weights)
    finished = {part.shard for part in made.parts}
    sizes = {shard: shard.stat().st_size for shard in checkpoint.shards}
    total = sum(sizes.values())
    done = sum(size for shard, size in sizes.items() if shard.name in finished)
    for shard, names in checkpoint.shards.items():
        if shard.name in finished:
            continue
        try:
            tensors: dict[str, Tensor] = {}
            with safe_open(shard, "pt") as file:
                for name in names:
                    weight = file.get_tensor(checkpoint.weights[name].name).to(device)
                    tensors |= quantise.quantise(name, weight, how, dtype)
                    on_progress(Progress(done=done, total=total))
                made = _written(made, shard.name, tensors)
        except (OSError, SafetensorError) as error:
            raise EngineError(
                f"{shard} cannot be converted: {error}", "repeat it: it goes on from here", "model"
            ) from error
        done += sizes[shard]
        on_progress(Progress(done=done, total=total))
    return snapshot.finish(made)


def skeleton(config: Mapping[str, Any], device: torch.device) -> DiffusionGemmaForBlockDiffusion:
    """The class without weights and without its vision tower; encoder and decoder share what they can share.

    Raises EngineError for a configuration that the class does not take.
    """
    try:
        typed = DiffusionGemmaConfig.from_dict(dict(config))
        with torch.device("meta"):
            model = DiffusionGemmaForBlockDiffusion(typed).eval().requires_grad_(False)
    except (StrictDataclassError, ValueError, TypeError, KeyError, AttributeError) as error:
        hint = "midfill needs the config.json that came with the weights"
        said = " ".join(str(error).split())
        raise EngineError(f"the model cannot be built from its configuration: {said}", hint, "model") from error
    model.model.encoder.vision_tower = None
    model.model.encoder.embed_vision = None
    encoder, decoder = model.model.encoder.language_model, model.model.decoder
    decoder.rotary_emb = type(decoder.rotary_emb)(typed.text_config, device=device)
    embedding = decoder.embed_tokens
    embedding.embed_scale = torch.tensor(embedding.scalar_embed_scale, device=device)
    share(encoder, decoder)
    for layer in (*encoder.layers, *decoder.layers):
        layer.layer_scalar = torch.ones(1, device=device)
    return model


def share(encoder: Any, decoder: Any) -> None:
    """Give the encoder the decoder's modules, whatever has become of their weights; all but the layers themselves and
    their attentions, which differ, and the layer scalars."""
    for name in ("embed_tokens", "norm", "rotary_emb"):
        setattr(encoder, name, getattr(decoder, name))
    for mine, other in zip(encoder.layers, decoder.layers, strict=True):
        for name, module in (*other.named_children(), *other.self_attn.named_children()):
            if name != "self_attn":
                setattr(mine if hasattr(mine, name) else mine.self_attn, name, module)


def wanted_shapes(model: DiffusionGemmaForBlockDiffusion) -> dict[str, tuple[int, ...]]:
    """Name in the decoder -> shape, of all weights that a checkpoint must have."""
    state = model.model.decoder.state_dict()
    return {name: tuple(value.shape) for name, value in state.items() if not name.endswith(".layer_scalar")}


def place(
    model: DiffusionGemmaForBlockDiffusion,
    tensors: Mapping[str, Tensor],
    wanted: set[str],
    how: Quantisation,
    dtype: torch.dtype,
) -> None:
    """Put the tensors of whole weights where they belong, and take their names out of `wanted`. Raises EngineError."""
    for name, pieces in _by_weight(tensors).items():
        try:
            if name.endswith(".layer_scalar"):
                stack = model.model.encoder.language_model if name.startswith(OWN) else model.model.decoder
                layer = stack.get_submodule(name.removeprefix(OWN).rpartition(".")[0])
                layer.layer_scalar = pieces[name].to(dtype)
            else:
                quantise.place(model.model.decoder, name, pieces, how)
        except (KeyError, AttributeError) as error:
            raise EngineError(f"the snapshot does not fit the model: {name}", "make it anew", "model") from error
        wanted.discard(name)


def finish(model: DiffusionGemmaForBlockDiffusion, missing: Iterable[str], how: Quantisation) -> None:
    """After the last weight. Raises EngineError when one has not come."""
    if names := sorted(missing):
        raise EngineError(
            f"the snapshot lacks {names[0]}", "make it anew with `midfill model quantize --anew`", "model"
        )
    model.lm_head.weight = model.model.decoder.embed_tokens.weight
    if how.experts != "none":
        model.set_experts_implementation(experts.REFERENCE)


def _written(made: Snapshot, shard: str, tensors: dict[str, Tensor]) -> Snapshot:
    """A part of the snapshot on disk, complete or not there. Raises OSError."""
    path = made.folder / shard
    unfinished = path.with_suffix(".unfinished")
    metadata = {"format": "pt", "midfill": json.dumps(made.recipe)}
    size, checksum = parts.write(unfinished, tensors, metadata)
    unfinished.replace(path)
    return snapshot.add(made, Part(file=path.name, shard=shard, bytes=size, sha256=checksum))


def _by_weight(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The parts of a weight are named after it: x._data, x._scale; x.packed, x.scale; or x itself."""
    found: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        weight = name.removesuffix(".packed").removesuffix("._data").removesuffix("._data")
        weight = weight.removesuffix("._scale").removesuffix("._shift")
        if ".experts." in weight:
            weight = weight.removesuffix(".scale")
        found.setdefault(weight, {})[name] = tensor
    return found


def _check_names(checkpoint: Checkpoint) -> None:
    """Before hours of work: whether all weights are there and of the right shape. Raises EngineError."""
    wanted = wanted_shapes(skeleton(checkpoint.config, torch.device("meta")))
    where = f"the checkpoint {checkpoint.folder} does not fit its config.json"
    for name, shape in wanted.items():
        stored = checkpoint.weights.get(name)
        if stored is None:
            raise EngineError(f"{where}: {name} is missing", checkpoints.PULL, "model")
        if stored.shape != shape:
            problem = f"{name} in {stored.shard.name} has the shape {list(stored.shape)} instead of {list(shape)}"
            raise EngineError(f"{where}: {problem}", checkpoints.PULL, "model")


def _recipe(checkpoint: Checkpoint, how: Quantisation, dtype: torch.dtype) -> Recipe:
    return Recipe(fingerprint=checkpoint.fingerprint, quantisation=how, dtype=str(dtype).removeprefix("torch."))


def _recipe_like(found: Snapshot, how: Quantisation, dtype: torch.dtype) -> dict[str, Any]:
    name = str(dtype).removeprefix("torch.")
    return Recipe(fingerprint=found.recipe.get("fingerprint", ""), quantisation=how, dtype=name).as_json()


def _check_disk(made: Snapshot, needed: int) -> None:
    needed -= made.bytes
    free = shutil.disk_usage(made.folder).free
    if needed > free:
        message = f"the snapshot needs {needed / 1e9:.1f} GB and {free / 1e9:.1f} GB are free in {made.folder}"
        raise EngineError(message, "free some space there; what has been converted stays", "model")
