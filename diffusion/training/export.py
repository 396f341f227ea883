"""From a checkpoint to a model folder: config.json of the library's class, model.safetensors, tokenizer.json.

Weights are stored in float16 under the library's names; what the class needs and a dense model does not use is zero.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from transformers import DiffusionGemmaConfig

from diffusion.api import EngineError
from diffusion.engine import ResidentEngine
from diffusion.model import ResidentModel, assemble
from diffusion.profiles import ModelProfile
from diffusion.training.network import Size, parameter_shapes
from diffusion.vocabulary import Vocabulary

PREFIX = "model.decoder."
WEIGHTS = "model.safetensors"


def export(
    checkpoint: Path, tokenizer: Path, destination: Path, profile: ModelProfile, size: Size | None = None
) -> None:
    """Write the averaged weights of `checkpoint` into `destination`. Raises EngineError."""
    size = size or Size()
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        destination.mkdir(parents=True, exist_ok=True)
        save_file(
            library_weights(state["average"], size),
            destination / WEIGHTS,
            metadata={name: str(value) for name, value in state["progress"].items()},
        )
        (destination / WEIGHTS).chmod(0o644)  # the library writes for its owner only; these are for everybody
        (destination / "config.json").write_text(
            json.dumps(library_config(size, profile), indent=1) + "\n", encoding="utf-8"
        )
        if tokenizer.resolve() != (destination / "tokenizer.json").resolve():
            shutil.copyfile(tokenizer, destination / "tokenizer.json")
    except (OSError, RuntimeError, KeyError) as error:
        raise EngineError(f"cannot export {checkpoint}: {error}") from error


def read(folder: Path, size: Size) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Weights of an exported model by the training network's names, float32, and how far their training was.

    Raises EngineError where they are missing, damaged or of another shape.
    """
    path = folder / WEIGHTS
    try:
        with safe_open(path, "pt") as file:
            metadata: dict[str, str] = file.metadata() or {}
            weights = {name: file.get_tensor(PREFIX + name).float() for name in parameter_shapes(size)}
    except (OSError, SafetensorError) as error:
        raise EngineError(f"the weights {path} cannot be continued from: {error}", "or train with --fresh") from error
    if any(tuple(weights[name].shape) != shape for name, shape in parameter_shapes(size).items()):
        raise EngineError(f"the weights {path} are of another shape", "train with --fresh")
    return weights, metadata


def resident(weights: dict[str, Tensor], size: Size, profile: ModelProfile, vocabulary: Vocabulary) -> ResidentEngine:
    """An engine around weights in memory, as a client would meet them after an export, in float32."""
    config = DiffusionGemmaConfig.from_dict(library_config(size, profile))
    model, wrong = assemble(config, library_weights(weights, size, torch.float32))
    assert not wrong, wrong
    return ResidentEngine(profile, vocabulary, ResidentModel(model, torch.device("cpu"), torch.float32))


def library_weights(weights: dict[str, Tensor], size: Size, dtype: torch.dtype = torch.float16) -> dict[str, Tensor]:
    """The state dict of the library's class, decoder names only (the encoder is tied to them). Experts give zero."""
    state = {PREFIX + name: weights[name].to(dtype).contiguous() for name in parameter_shapes(size)}
    for index in range(size.layers):
        state[f"{PREFIX}layers.{index}.experts.down_proj"] = torch.zeros(1, size.hidden, 1, dtype=dtype)
    return state


def library_config(size: Size, profile: ModelProfile) -> dict[str, Any]:
    """config.json. The vision tower cannot be left out of the class; it is as small as can be and dropped at load."""
    rope = {"rope_type": "default", "rope_theta": size.rope_theta}
    return {
        "model_type": "diffusion_gemma",
        "canvas_length": profile.layout.gap + profile.layout.pins,
        "text_config": {
            "model_type": "diffusion_gemma_text",
            "vocab_size": size.vocabulary,
            "hidden_size": size.hidden,
            "intermediate_size": size.inner,
            "num_hidden_layers": size.layers,
            "num_attention_heads": size.heads,
            "num_key_value_heads": size.heads,
            "num_global_key_value_heads": size.heads,
            "head_dim": size.head_dim,
            "global_head_dim": size.head_dim,
            "layer_types": ["sliding_attention"] * (size.layers - 1) + ["full_attention"],
            "sliding_window": 2 * profile.layout.encoder,
            "max_position_embeddings": 4 * profile.layout.encoder,
            "rope_parameters": {"sliding_attention": rope, "full_attention": rope},
            "num_experts": 1,
            "top_k_experts": 1,
            "moe_intermediate_size": 1,
            "pad_token_id": profile.tokens["pad"],
            "bos_token_id": profile.tokens["bos"],
            "eos_token_id": profile.tokens["eof"],
        },
        "vision_config": {
            "model_type": "gemma4_vision",
            "hidden_size": 8,
            "intermediate_size": 8,
            "num_hidden_layers": 1,
            "num_attention_heads": 1,
            "num_key_value_heads": 1,
            "head_dim": 8,
        },
    }
