"""A tokenizer and a profile of the chat kind, as small as can be: the special tokens of the 26B checkpoint, other ids.

Knows the shipped profile, of which it is a copy in small; knows no torch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from diffusion.profiles import ModelProfile, load_profile

SPECIALS = ("<pad>", "<eos>", "<bos>", "<|turn>", "<turn|>", "<|channel>", "<channel|>")
TOKENS = dict(zip(("pad", "eos", "bos", "turn", "turn_end", "channel", "channel_end"), range(7), strict=True))
UNUSED = 3
"""Ids at the end of the vocabulary that are no text, as in the real one."""

SOURCES = [path.read_text() for path in sorted(Path(__file__).parents[1].glob("diffusion/*.py"))]


def train_tokenizer(size: int, destination: Path) -> None:
    """Byte-level BPE of `size` ids in all. As in the real one, a run of newlines is one token and so is a run of two or
    more blanks, a single blank belongs to the word behind it, and nothing spans a line's end."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n+| {2,}| ?[\p{L}\p{M}_]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}_]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - UNUSED,
        special_tokens=[AddedToken(name, special=True, normalized=False) for name in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    fences = ["```python\nx\n\n```\n"] * 50
    tokenizer.train_from_iterator([*SOURCES, *fences], trainer)
    assert tokenizer.get_vocab_size() == size - UNUSED
    tokenizer.add_special_tokens([AddedToken(f"<unused{i}>", special=True) for i in range(UNUSED)])
    tokenizer.save(str(destination))


def small_profile(folder: Path, vocabulary: int) -> ModelProfile:
    """The shipped profile with the ids of train_tokenizer(), a window of 700 ids and canvases up to 64."""
    shipped = load_profile("diffusiongemma-26b-a4b-it")
    assert shipped.chat is not None
    chat = replace(
        shipped.chat,
        first_text=len(SPECIALS),
        last_text=vocabulary - UNUSED - 1,
        suffix=200,
        rule="Complete it.",
        edit_rule="Edit it.",
    )
    layout = replace(
        shipped.layout, widths=(8, 16, 32, 48, 64), line_width=32, block_width=48, pins=8, context=100, encoder=1400
    )
    return replace(
        shipped, weights=folder, layout=layout, chat=chat, tokens=TOKENS, specials=chat.first_text, quantisation=None
    )
