"""A quantised model with random weights, made on its device one weight at a time: it never exists unquantised.

The weights are as tame as trained ones, so that numbers stay finite and the router spreads rows over all experts.
Knows configurations and the loader's parts; no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from diffusion import loader, quantise
from diffusion.quantisation import Quantisation


@torch.inference_mode()
def random_model(text: Mapping[str, Any], how: Quantisation, device: torch.device, dtype: torch.dtype) -> Any:
    """The class with a text_config of `text`. Takes its quantised size and the largest weight. Raises EngineError."""
    config = {"model_type": "diffusion_gemma", "text_config": {"model_type": "diffusion_gemma_text", **text}}
    model = loader.skeleton(config, device)
    generator = torch.Generator(device).manual_seed(0)
    wanted = loader.wanted_shapes(model)
    missing = set(wanted)
    for name, shape in wanted.items():
        weight = _random(name, shape, generator, device, dtype)
        loader.place(model, quantise.quantise(name, weight, how, dtype), missing, how, dtype)
    for layer in (*model.model.encoder.language_model.layers, *model.model.decoder.layers):
        layer.layer_scalar = layer.layer_scalar.to(dtype)
    loader.finish(model, missing, how)
    return model


def _random(
    name: str, shape: tuple[int, ...], generator: torch.Generator, device: torch.device, dtype: torch.dtype
) -> Tensor:
    weight = torch.empty(shape, device=device, dtype=dtype)
    if len(shape) > 1:
        return weight.normal_(0.0, shape[-1] ** -0.5, generator=generator)
    weight.normal_(1.0, 0.1, generator=generator)
    # Attention that is not all on one key, and a router that is sure of its choice.
    tamed = 0.4 if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0
    return weight.mul_(2 * shape[0] ** 0.5 if name.endswith("router.scale") else tamed)
