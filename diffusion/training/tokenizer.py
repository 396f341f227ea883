"""Trains the tokenizer of the embedded model: byte-level BPE in which a line start is one token.

A newline together with the indentation behind it is one piece, digits are single, a word takes one leading space at
most, and nothing merges across these borders. Knows the special tokens by their ids in the profile, no more.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from diffusion.profiles import ModelProfile

PIECES = r"\n[ \t]*| ?[\p{L}\p{M}_]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}_]+|[^\S\n]+"
"""Line starts, words, digits, punctuation runs, other blanks: the units inside which BPE merges."""


def special_tokens(profile: ModelProfile) -> list[str]:
    """Names of the special tokens in the order of their ids, gaps filled with reserved names."""
    names = {token_id: f"<|{name}|>" for name, token_id in profile.tokens.items()}
    for language, token_id in profile.languages.items():
        names.setdefault(token_id, f"<|{language}|>")
    return [names.get(token_id, f"<|reserved-{token_id}|>") for token_id in range(profile.specials)]


def train(texts: Iterable[str], profile: ModelProfile, size: int, destination: Path) -> Tokenizer:
    """Train on `texts` (line ends LF) and write `destination` (tokenizer.json). Returns the tokenizer.

    Algorithm: byte-pair encoding over bytes (Sennrich et al. 2016; Radford et al. 2019), `size` entries in all.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[AddedToken(name, special=True, normalized=False) for name in special_tokens(profile)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=48,
        show_progress=True,
    )
    tokenizer.train_from_iterator(texts, trainer)
    destination.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(destination))
    return tokenizer
