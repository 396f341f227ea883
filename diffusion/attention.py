"""Attention of many canvases, or continuations, to one cached history without copying it.

The library concatenates the cache to every row's own keys: a batch of six over 400 cached ids copies megabytes in each
layer of each step. Here the rows' queries are folded into one product with the history, and their own keys come beside
it under one softmax. Registered with the library as an attention implementation; without a shared history it is plain
scaled dot-product attention. Knows tensors only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

NAME = "midfill_shared"

_shared: list[Sequence[tuple[Tensor, Tensor]]] = []
"""The history of the call under way, per layer keys and values (1, kv heads, T, D). One thread touches the model."""


@contextlib.contextmanager
def shared_history(layers: Sequence[tuple[Tensor, Tensor]]) -> Iterator[None]:
    """Inside, every row of a batch attends to these keys and values before its own."""
    _shared.append(layers)
    try:
        yield
    finally:
        _shared.pop()


def attend(
    module: Any, query: Tensor, key: Tensor, value: Tensor, _: Any, *, scaling: float, **__: Any
) -> tuple[Tensor, None]:
    """query (B, heads, S, D), key and value (B, kv heads, K, D) -> (B, S, heads, D).

    An encoder's rows are the last S of its K keys and see what is not behind them nor before their sliding window; a
    decoder's rows see everything. With a shared history the K keys are the batch's own and the history comes before.
    """
    causal, window = module.is_causal, module.sliding_window
    if not _shared:
        mask = _causal_mask(query.shape[2], key.shape[2], window, query.device) if causal else None
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scaling, enable_gqa=query.shape[1] != key.shape[1]
        )
        return mixed.transpose(1, 2), None
    past_key, past_value = _shared[-1][module.layer_idx]
    batch, heads, rows, dim = query.shape
    groups, past = past_key.shape[1], past_key.shape[2]
    q = query.reshape(batch, groups, heads // groups * rows, dim)
    folded = q.transpose(0, 1).flatten(1, 2)  # (groups, B * heads / groups * S, D)
    to_past = (folded @ past_key[0].transpose(1, 2)).view(groups, batch, -1, past).transpose(0, 1)
    scores = torch.cat((to_past, q @ key.transpose(2, 3)), -1) * scaling  # (B, groups, heads / groups * S, T + K)
    seen = past + key.shape[2]
    if causal and (rows > 1 or (window is not None and seen > window)):
        hidden = ~_causal_mask(rows, seen, window, query.device).repeat(heads // groups, 1)
        scores = scores.masked_fill(hidden, -torch.inf)
    p = scores.softmax(-1, dtype=torch.float32).to(value.dtype)
    from_past = p[..., :past].transpose(0, 1).flatten(1, 2) @ past_value[0]
    mixed = from_past.view(groups, batch, -1, dim).transpose(0, 1) + p[..., past:] @ value
    return mixed.reshape(batch, heads, rows, dim).transpose(1, 2), None


def _causal_mask(rows: int, columns: int, window: int | None, device: torch.device) -> Tensor:
    """(rows, columns) bool: the rows are the last of the columns; each sees itself and the window - 1 before it."""
    behind = torch.arange(columns - rows, columns, device=device)[:, None] - torch.arange(columns, device=device)
    return (behind >= 0) if window is None else (behind >= 0) & (behind < window)


ALL_ATTENTION_FUNCTIONS.register(NAME, attend)
