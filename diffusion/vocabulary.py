"""Text to token ids and back, and what the canvas must know about single ids: which ones hold a newline.

Wraps a tokenizer.json. Knows no layout and no model; special ids come from the profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from tokenizers import Tokenizer

from diffusion.api import EngineError


class Vocabulary:
    """`specials`: ids below it are no text. They are never produced by `encode` and vanish in `decode`."""

    def __init__(self, path: Path, specials: int) -> None:
        if not path.is_file():
            hint = "`midfill model pull` fetches a model; the embedded one comes with midfill, reinstall it"
            raise EngineError(f"the tokenizer {path} is missing", hint, "model")
        self.specials, self.path = specials, path
        self._tokenizer = Tokenizer.from_file(str(path))
        # Code that mentions <|mask|> is text like any other.
        self._tokenizer.encode_special_tokens = True
        # Between two keystrokes nearly all lines are the same.
        self.encode_line = lru_cache(maxsize=32_768)(self._encode_line)

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, line ends made LF. Any Unicode text without lone surrogates."""
        return list(self._tokenizer.encode(normalise(text), add_special_tokens=False).ids)

    def _encode_line(self, line: str) -> tuple[int, ...]:
        """Ids of one line with its newline in front. Also as `encode_line`, remembered."""
        return tuple(self._tokenizer.encode(line, add_special_tokens=False).ids)

    def encode_pieces(self, pieces: Sequence[str]) -> list[list[int]]:
        """Each piece by itself: no token spans a border."""
        return [list(item.ids) for item in self._tokenizer.encode_batch(list(pieces), add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """Text of `ids` without the special ones. Half a UTF-8 sequence becomes U+FFFD."""
        return str(self._tokenizer.decode([i for i in ids if i >= self.specials], skip_special_tokens=False))

    @cached_property
    def texts(self) -> list[str]:
        """The text of each id by itself, "" for special ones."""
        return [self.decode([i]) for i in range(len(self))]

    @cached_property
    def newline_ids(self) -> frozenset[int]:
        """Ids whose text holds a newline. The tokenizer lets them hold one at most, and only at their start."""
        return frozenset(i for i, text in enumerate(self.texts) if "\n" in text)


def normalise(text: str) -> str:
    """Line ends as LF, the only ones that the model has seen."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
