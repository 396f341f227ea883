"""The passes of a model without experts, in as few operations as they need.

The library computes a router and masks that nothing comes of here, and spreads what one product could do over several:
with as few rows as a completion has, that is half of the time. Same mathematics, same weights, same cache as the
library's own passes, to which a test holds it equal. Knows tensors only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.cache_utils import Cache
from transformers.models.diffusion_gemma.modeling_diffusion_gemma import apply_rotary_pos_emb

from diffusion import attention
from diffusion.experts import NO_EXPERTS


def fits(model: Any) -> bool:
    """Can `model`, the library's DiffusionGemmaModel, be computed here?"""
    text, layers = model.config.text_config, [*model.decoder.layers, *model.encoder.language_model.layers]
    shapes = {(layer.self_attn.head_dim, layer.self_attn.num_key_value_groups) for layer in layers}
    return (
        text._experts_implementation == NO_EXPERTS
        and text.hidden_activation == "gelu_pytorch_tanh"
        and shapes == {(text.head_dim, 1)}
        and all(layer.layer_scalar == 1 for layer in layers)
    )


@dataclass(frozen=True, kw_only=True)
class Layer:
    """Weights of a layer. `qkv` (2 or 3 x heads x dim, H): without values where the keys are their source. `scales`
    (2 x heads, dim): of the norms of queries and keys. `gate_up` (2 I, H). `causal` and `both_ways`: the library's
    attention modules of encoder and decoder, which say what rows see."""

    before_attention: Tensor
    qkv: Tensor
    scales: Tensor
    out: Tensor
    after_attention: Tensor
    before_mlp: Tensor
    gate_up: Tensor
    down: Tensor
    after_mlp: Tensor
    after_both: Tensor
    causal: Any
    both_ways: Any


class Dense:
    """Encoder and decoder over the weights of `model`, the library's DiffusionGemmaModel, which it goes on sharing."""

    def __init__(self, model: Any) -> None:
        decoder, text = model.decoder, model.config.text_config
        self._embedding: Tensor = decoder.embed_tokens.weight
        self._embedding_scale = float(decoder.embed_tokens.embed_scale)
        self._eps: float = text.rms_norm_eps
        self._norm: Tensor = decoder.norm.weight
        self._layers = [
            _layer(causal, both_ways)
            for causal, both_ways in zip(model.encoder.language_model.layers, decoder.layers, strict=True)
        ]
        self._kinds: list[str] = text.layer_types
        self._rotary = decoder.rotary_emb

    def encode(self, ids: Tensor, cache: Cache) -> Tensor:
        """Hidden states (B, n, H) of `ids` (B, n) behind what `cache` holds; they become part of it."""
        past = cache.get_seq_length()
        positions = torch.arange(past, past + ids.shape[1], device=ids.device)[None]
        return self._pass(self._embedded(ids), positions, cache)

    def decode(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Hidden states (B, S, H) of canvases (B, S) at `positions` (B, S), without a self-conditioning signal. What
        they see before them is the history of attention.shared_history."""
        return self._pass(self._rms(self._embedded(ids)), positions, None)

    def _embedded(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self._embedding) * self._embedding_scale

    def _pass(self, x: Tensor, positions: Tensor, cache: Cache | None) -> Tensor:
        """Through all layers: causal where there is a `cache` to append to, else to both sides."""
        turns = {kind: self._rotary(x, positions, kind) for kind in set(self._kinds)}
        for index, (layer, kind) in enumerate(zip(self._layers, self._kinds, strict=True)):
            query, key, value = self._projected(self._rms(x, layer.before_attention), layer, *turns[kind])
            if cache is not None:
                key, value = cache.update(key, value, index)
            seen_by = layer.both_ways if cache is None else layer.causal
            mixed, _ = attention.attend(seen_by, query, key, value, None, scaling=1.0)
            x = x + self._rms(F.linear(mixed.flatten(2), layer.out), layer.after_attention)
            gate, up = F.linear(self._rms(x, layer.before_mlp), layer.gate_up).chunk(2, -1)
            h = F.linear(F.gelu(gate, approximate="tanh") * up, layer.down)
            x = x + self._rms(self._rms(h, layer.after_mlp), layer.after_both)
        return self._rms(x, self._norm)

    def _projected(self, h: Tensor, layer: Layer, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """h (B, S, H), cos and sin (B or 1, S, dim) -> query, key (both turned), value (B, heads, S, dim)."""
        two, dim = layer.scales.shape
        # Every head of queries, keys and values is normed by itself, so that one call does for all.
        normed = self._rms(F.linear(h, layer.qkv).view(*h.shape[:2], -1, dim))
        turned = apply_rotary_pos_emb(normed[:, :, :two] * layer.scales, cos, sin, unsqueeze_dim=2)
        query, key = turned.transpose(1, 2).chunk(2, 1)
        return query, key, normed[:, :, -two // 2 :].transpose(1, 2)

    def _rms(self, x: Tensor, scale: Tensor | None = None) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], scale, self._eps)


def _layer(causal: Any, both_ways: Any) -> Layer:
    """From the library's layers of encoder and decoder, which share their weights."""
    own = both_ways.self_attn
    heads = own.q_proj.out_features // own.head_dim
    projections = [own.q_proj, own.k_proj] + ([] if own.v_proj is None else [own.v_proj])
    return Layer(
        before_attention=both_ways.input_layernorm.weight,
        qkv=_joined(projections),
        scales=torch.stack([own.q_norm.weight] * heads + [own.k_norm.weight] * heads),
        out=own.o_proj.weight,
        after_attention=both_ways.post_attention_layernorm.weight,
        before_mlp=both_ways.pre_feedforward_layernorm.weight,
        gate_up=_joined([both_ways.mlp.gate_proj, both_ways.mlp.up_proj]),
        down=both_ways.mlp.down_proj.weight,
        after_mlp=both_ways.post_feedforward_layernorm_1.weight,
        after_both=both_ways.post_feedforward_layernorm.weight,
        causal=causal.self_attn,
        both_ways=own,
    )


def _joined(linears: list[Any]) -> Tensor:
    """The weights (n, H) of `linears` one below the other, where they lie from now on: column by column, which is up to
    twice as fast with few rows."""
    joined = torch.cat([linear.weight for linear in linears]).T.contiguous().T
    start = 0
    for linear in linears:
        linear.weight.data = joined[start : start + linear.out_features]
        start += linear.out_features
    return joined
