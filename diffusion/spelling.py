"""What a middle may begin with where the cursor stands inside of a token that healing (healing.py) took out of the
prefix. Knows ids, their texts and tensors; knows no model and no canvas.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from diffusion.healing import Speller
from diffusion.samplers import BANNED

SPELLED = 8
"""Ids that it may take to spell what is forced."""


class Typed:
    """`texts`: what each id says by itself, "" for an id that may not be written; `size`: of the model's vocabulary."""

    def __init__(self, texts: Sequence[str], size: int, device: torch.device) -> None:
        self._speller, self._texts, self._size, self._device = Speller(texts), texts, size, device
        self.completing = lru_cache(maxsize=256)(self._completing)
        self.only = lru_cache(maxsize=64)(self._only)

    def can_spell(self, text: str) -> bool:
        """Are there a few ids that begin with `text`?"""
        return (self._speller.shortest(text) or SPELLED + 1) <= SPELLED

    def pieces(self, text: str) -> list[int]:
        """Ids whose text is a beginning of `text`, not all of it, where others can spell the rest."""
        return [i for i, length in self._speller.pieces(text) if self._speller.shortest(text[length:])]

    def after(self, token: int, text: str) -> str:
        """What is left of `text` behind one of its pieces."""
        return text[len(self._texts[token]) :]

    def covering(self, ids: Sequence[int], text: str) -> int:
        """How many of `ids`, which spell `text` and more, it takes to spell `text`."""
        for count, token in enumerate(ids, 1):
            text = self.after(token, text)
            if not text:
                return count
        return len(ids)

    def banned_at_first(self, text: str) -> Tensor:
        """(V,) bool: ids with which no spelling of `text` begins."""
        banned = torch.ones(self._size, dtype=torch.bool, device=self._device)
        banned[self.completing(text)] = False
        banned[self.pieces(text)] = False
        return banned

    def _completing(self, text: str) -> Tensor:
        """Ids whose text begins with `text`. Also as `completing`, remembered."""
        return torch.tensor(self._speller.beginning(text), dtype=torch.long, device=self._device)

    def _only(self, text: str) -> Tensor:
        """(V,), to be added to logits: 0 for ids whose text begins with `text`, BANNED for others. Also as `only`."""
        added = torch.full((self._size,), BANNED, device=self._device)
        added[self.completing(text)] = 0.0
        return added
