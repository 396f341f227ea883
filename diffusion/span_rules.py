"""What may stand at the free positions of a chat model's canvas: text and nothing else, no newline in a line, no fence,
and at first the characters that healing took out of the prefix. As additions to logits.

Knows ids, their texts and tensors; knows no model and no canvas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from diffusion.healing import Speller
from diffusion.profiles import ModelProfile
from diffusion.samplers import BANNED

FENCE = "```"

SPELLED = 8
"""Positions on which what is forced may be spread, unless it needs more."""


class Alphabet:
    """What is particular to a vocabulary. `texts`: what each id says by itself, fewer than the `size` ids of the model
    where it has more of them than its tokenizer."""

    def __init__(self, texts: Sequence[str], size: int, profile: ModelProfile, device: torch.device) -> None:
        chat, tokens = profile.chat, profile.tokens
        assert chat is not None
        last = min(chat.last_text, len(texts) - 1)
        self.texts = [text if chat.first_text <= i <= last else "" for i, text in enumerate(texts)]
        self.speller = Speller(self.texts)
        self.closing = frozenset(i for i, text in enumerate(self.texts) if FENCE in text)
        """Ids that open or close a fence."""
        self.ends = frozenset(tokens[name] for name in ("turn_end", "eos", "pad"))
        """Ids that end the model's turn."""
        self._device = device
        ids = torch.arange(size, device=device)
        self._special = (ids < chat.first_text) | (ids > last)
        self._fence = torch.isin(ids, self.tensor(sorted(self.closing)))
        self._newline = torch.isin(ids, self.tensor([i for i, text in enumerate(self.texts) if "\n" in text]))
        self._end = torch.isin(ids, self.tensor(sorted(self.ends)))

    def tensor(self, ids: Sequence[int]) -> Tensor:
        return torch.tensor(ids, dtype=torch.long, device=self._device)

    def rules(self, *, one_line: bool, fences: bool, forced: str = "", may_end: bool = False) -> SpanRules:
        """`fences`: they may be written. `forced`: how the slot begins. `may_end`: so may ids that end the text, fences
        among them."""
        banned = self._special.clone()
        if one_line:
            banned |= self._newline
        if may_end:
            banned &= ~self._end
        elif not fences:
            banned |= self._fence
        return SpanRules(alphabet=self, banned=banned.float() * BANNED, one_line=one_line, fences=fences, forced=forced)


@dataclass(frozen=True, kw_only=True)
class SpanRules:
    """`banned` (V,) is added to logits everywhere: 0 or BANNED."""

    alphabet: Alphabet
    banned: Tensor
    one_line: bool
    fences: bool
    forced: str
    _ends: dict[str, Tensor] = field(default_factory=dict)

    @property
    def shortest(self) -> int:
        """The fewest positions that hold what is forced."""
        return (self.alphabet.speller.shortest(self.forced) or 0) if self.forced else 0

    def apply(self, logits: Tensor) -> Tensor:
        """logits (N, V) of the free positions of one slot, in order -> the same with bans."""
        bare = logits + self.banned
        if not self.forced:
            return bare
        positions = min(len(logits), max(SPELLED, self.shortest))
        log_p = torch.log_softmax(logits[:positions], -1)
        text, speller = self.forced, self.alphabet.speller
        ids = sorted({i for at in range(len(text)) for i, _ in speller.pieces(text[at:])})
        columns = {token: column for column, token in enumerate(ids)}
        single = log_p[:, self.alphabet.tensor(ids)].tolist()
        closing = [self._permitted(text[at:]) for at in range(len(text))]
        never = log_p.new_full((positions,), -torch.inf)
        best = torch.stack([log_p[:, some].amax(-1) if len(some) else never for some in closing]).tolist()
        spelling = speller.likeliest(
            text, positions, lambda position, i: single[position][columns[i]], lambda position, at: best[at][position]
        )
        if spelling is None:
            return bare
        for position, token in enumerate(spelling.exact):
            bare[position] = BANNED
            bare[position, token] = logits[position, token]
        position, permitted = len(spelling.exact), self._permitted(spelling.rest)
        bare[position] = BANNED
        bare[position, permitted] = logits[position, permitted]
        return bare

    def _permitted(self, rest: str) -> Tensor:
        """Ids whose text begins with `rest` and goes on with nothing that is banned."""
        if rest not in self._ends:
            texts = self.alphabet.texts
            found = [
                i
                for i in self.alphabet.speller.beginning(rest)
                if not (self.one_line and "\n" in texts[i][len(rest) :])
                and (self.fences or i not in self.alphabet.closing)
            ]
            self._ends[rest] = self.alphabet.tensor(found)
        return self._ends[rest]
