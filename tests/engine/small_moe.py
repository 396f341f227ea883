"""Small random checkpoints of the real class, with real experts, in the form that the hub has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from optimum.quanto import QTensor
from optimum.quanto.tensor.packed import PackedTensor
from torch import Tensor, nn
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion


def config(**changes: Any) -> dict[str, Any]:
    """Two kinds of layer, eight experts, dimensions that groups of 64 divide (or, with changes, do not)."""
    text = {
        "model_type": "diffusion_gemma_text",
        "vocab_size": 320,
        "hidden_size": 128,
        "intermediate_size": 192,
        "num_hidden_layers": 3,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 32,
        "global_head_dim": 64,
        "sliding_window": 16,
        "num_experts": 8,
        "top_k_experts": 2,
        "moe_intermediate_size": 64,
    }
    vision = {"model_type": "gemma4_vision", "hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 8}
    return {"model_type": "diffusion_gemma", "text_config": text | changes, "vision_config": vision | heads}


def library_model(body: dict[str, Any], dtype: torch.dtype = torch.float32) -> DiffusionGemmaForBlockDiffusion:
    """Random weights in the library's own class, as tame as trained ones: attention that is not all on one key, and a
    router that is sure of its choice. Else the smallest difference would grow from layer to layer."""
    torch.manual_seed(0)
    model = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig.from_dict(body)).eval().requires_grad_(False)
    for name, weight in model.model.decoder.named_parameters():
        if weight.dim() == 1:
            weight.normal_(1.0, 0.1)
            if name.endswith(("q_norm.weight", "k_norm.weight")):
                weight.mul_(0.4)
            elif name.endswith("router.scale"):
                weight.mul_(2 * len(weight) ** 0.5)
        else:
            weight.normal_(0.0, weight.shape[-1] ** -0.5)
    for number, (mine, encoders) in enumerate(
        zip(model.model.decoder.layers, model.model.encoder.language_model.layers, strict=True)
    ):
        mine.layer_scalar.fill_(1.0 - 0.05 * number)
        encoders.layer_scalar.fill_(0.9 + 0.02 * number)
    return model.to(dtype)


def save(model: DiffusionGemmaForBlockDiffusion, folder: Path, shard_bytes: int = 10**9) -> Path:
    """config.json and safetensors shards of at most so many bytes, with an index if there are several."""
    model.save_pretrained(folder, max_shard_size=shard_bytes)
    return folder


def logits(model: DiffusionGemmaForBlockDiffusion, ids: Tensor, canvas: Tensor) -> Tensor:
    """(B, S, V) float32 of the library's forward pass."""
    with torch.inference_mode():
        return model(input_ids=ids, decoder_input_ids=canvas).logits.float()


def error(found: Tensor, expected: Tensor) -> float:
    """Relative, in the Frobenius norm."""
    return float((found.float() - expected.float()).norm() / expected.float().norm())


def written(folder: Path) -> dict[str, Any]:
    """The index of shards."""
    body: dict[str, Any] = json.loads((folder / "model.safetensors.index.json").read_text())
    return body


def stored_size(weight: nn.Module) -> int:
    """Bytes of all parameters and buffers of a module, shared ones once, quantised ones as they are stored."""
    stored: dict[int, int] = {}
    for tensor in (*weight.parameters(), *weight.buffers()):
        for part in _parts(tensor):
            stored[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
    return sum(stored.values())


def _parts(tensor: Tensor) -> list[Tensor]:
    if isinstance(tensor, QTensor | PackedTensor):
        names, _ = tensor.__tensor_flatten__()
        return [part for name in names for part in _parts(getattr(tensor, name))]
    return [tensor]
