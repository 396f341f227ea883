"""A tiny random model of the real class, with experts, a sliding window that short texts overflow and a chat tokenizer,
as a model in memory and as a folder of weights. Knows the library and nothing of how a fill works."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from diffusion.model import ResidentModel, assemble
from diffusion.profiles import ModelProfile
from diffusion.vocabulary import Vocabulary
from tests.chat_models import TOKENS, small_profile, train_tokenizer

VOCABULARY = 700
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
CONFIG = {
    "model_type": "diffusion_gemma",
    "canvas_length": 32,
    "text_config": {
        "model_type": "diffusion_gemma_text",
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_global_key_value_heads": 1,
        "head_dim": 16,
        "global_head_dim": 32,
        "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
        "sliding_window": 64,
        "max_position_embeddings": 4096,
        "num_experts": 4,
        "top_k_experts": 2,
        "moe_intermediate_size": 24,
        "pad_token_id": TOKENS["pad"],
        "bos_token_id": TOKENS["bos"],
        "eos_token_id": TOKENS["eos"],
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


@dataclass(frozen=True)
class ChatTiny:
    """`library` attends as the library does, `model` in our own way, with the same random weights in float32."""

    profile: ModelProfile
    vocabulary: Vocabulary
    library: DiffusionGemmaForBlockDiffusion
    model: ResidentModel


def make_chat_tiny(folder: Path) -> ChatTiny:
    train_tokenizer(VOCABULARY, folder / "tokenizer.json")
    profile = small_profile(folder, VOCABULARY)
    weights = random_weights()
    (library, wrong), (copy, _) = (assemble(DiffusionGemmaConfig.from_dict(CONFIG), weights) for _ in range(2))
    assert not wrong, wrong
    resident = ResidentModel(copy, torch.device("cpu"), torch.float32)
    return ChatTiny(profile, Vocabulary(folder / "tokenizer.json", profile.specials), library, resident)


def random_weights() -> dict[str, torch.Tensor]:
    """By the library's names, those of the decoder; the encoder is tied to them."""
    generator = torch.Generator().manual_seed(0)
    model = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig.from_dict(CONFIG))
    state = {name: value for name, value in model.state_dict().items() if name.startswith("model.decoder.")}
    return {
        name: (value.new_empty(value.shape).normal_(1.0 if value.dim() == 1 else 0.0, 0.2, generator=generator))
        if value.is_floating_point() and "inv_freq" not in name and "layer_scalar" not in name
        else value.clone()
        for name, value in state.items()
    }
