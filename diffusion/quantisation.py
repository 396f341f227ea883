"""How weights are kept in memory, in words, and the groups that 4-bit weights come in. Knows no tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

LINEAR_GROUP = 128
"""Inputs per group of 4-bit linears, at most."""


@dataclass(frozen=True, kw_only=True)
class Quantisation:
    """`linears`: attention and dense MLP; `experts`: packed in groups of `group` inputs at most. Embeddings, norms and
    the router stay as they are. "none" keeps the dtype of the activations."""

    linears: Literal["int8", "int4", "float8", "none"] = "int8"
    experts: Literal["int4", "none"] = "int4"
    group: Literal[128, 64, 32] = 64


def group_for(inputs: int, wanted: int) -> int:
    """The largest group up to `wanted` that divides `inputs`, halving; 0 where not even 16 does."""
    group = wanted
    while group >= 16 and inputs % group:
        group //= 2
    return group if group >= 16 else 0
