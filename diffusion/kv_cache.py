"""The encoder's keys and values between keystrokes: keep the common prefix, encode the rest.

The library's sliding-window layer forgets what left its window and cannot be cropped after that. Here every layer keeps
its whole history and shows the decoder what it may see: all of it, or the last window - 1 entries. Branches show one
history to many canvases without copying or changing it (attention.py). Knows ids and tensors, no text and no canvas.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache, CacheLayerMixin

from diffusion.attention import shared_history

STEP = 256
"""Buffers grow by so many ids at a time: doubling would hold up to twice what is needed."""

MakeRoom = Callable[[int], None]


class HistoryLayer(CacheLayerMixin):  # type: ignore[misc]
    """Keys and values of one layer, (1, kv heads, length, head dim), in a buffer that grows in steps."""

    is_compileable = False
    is_croppable = True

    def __init__(self, window: int | None, make_room: MakeRoom) -> None:
        self.window = window
        self._make_room = make_room
        self.is_sliding = window is not None
        self.length = 0
        self._buffers: tuple[Tensor, Tensor] | None = None
        self.is_initialized = False

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        self._reserve(key_states, value_states, STEP)
        self.is_initialized = True

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append (1, heads, n, dim) and return what the n new rows may see."""
        start, added = self.length, key_states.shape[-2]
        self._reserve(key_states, value_states, start + added)
        assert self._buffers is not None
        for buffer, new in zip(self._buffers, (key_states, value_states), strict=True):
            buffer[:, :, start : start + added] = new
        self.length += added
        return self._shown(0, added), self._shown(1, added)

    @property
    def keys(self) -> Tensor:
        return self._shown(0, 0)

    @property
    def values(self) -> Tensor:
        return self._shown(1, 0)

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers, used or not."""
        return sum(buffer.nbytes for buffer in self._buffers or ())

    def crop(self, length: int) -> None:
        """Forget everything from `length` on."""
        self.length = min(self.length, length)

    def get_seq_length(self) -> int:
        return self.length

    def get_max_length(self) -> int:
        return -1 if self.window is None else self.window

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        offset = self._first(self.length)
        return self.length - offset + query_length, offset

    def _first(self, before: int) -> int:
        """Index of the oldest entry that a row behind `before` entries may see."""
        return 0 if self.window is None else max(0, before - self.window + 1)

    def _shown(self, which: int, added: int) -> Tensor:
        assert self._buffers is not None
        return self._buffers[which][:, :, self._first(self.length - added) : self.length]

    def _reserve(self, key_states: Tensor, value_states: Tensor, length: int) -> None:
        if self._buffers is not None and self._buffers[0].shape[-2] >= length:
            return
        capacity = -(-length // STEP) * STEP
        self._make_room(sum(states[:, :, :1].nbytes * capacity for states in (key_states, value_states)))
        grown = []
        for index, states in enumerate((key_states, value_states)):
            buffer = states.new_empty((*states.shape[:2], capacity, states.shape[-1]))
            if self._buffers is not None:
                buffer[:, :, : self.length] = self._buffers[index][:, :, : self.length]
            grown.append(buffer)
        self._buffers = (grown[0], grown[1])


class BranchLayer(CacheLayerMixin):  # type: ignore[misc]
    """A HistoryLayer as the library sees it while attention.py shows the history to all rows of a batch: as long as
    the history with what was appended here, and with that alone in it. Appending leaves the history alone."""

    is_compileable = False

    def __init__(self, history: HistoryLayer, batch: int) -> None:
        self._history = history
        self._own = tuple(held[:, :, :0].expand(batch, -1, -1, -1) for held in (history.keys, history.values))
        self.is_sliding = history.is_sliding
        self.is_initialized = True

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing to do: the history is there."""

    @property
    def keys(self) -> Tensor:
        return self._own[0]

    @property
    def values(self) -> Tensor:
        return self._own[1]

    def update(self, key_states: Tensor, value_states: Tensor, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Append (B, heads, n, dim) and return all that the rows have of their own."""
        self._own = (torch.cat((self.keys, key_states), 2), torch.cat((self.values, value_states), 2))
        return self.keys, self.values

    def get_seq_length(self) -> int:
        return self._history.get_seq_length() + int(self.keys.shape[2])

    def get_max_length(self) -> int:
        return self._history.get_max_length()

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self._history.get_mask_sizes(query_length)


class KeyValueCache:
    """The encoder's state for one document window. `windows`: per layer its sliding window, None for full attention.

    `ids` are the encoded ids, `last_hidden` (1, H) the hidden state of the last of them, for the next token's logits.
    `make_room` is called with a number of bytes before so many are taken.
    """

    def __init__(self, windows: Sequence[int | None], make_room: MakeRoom = lambda _: None) -> None:
        self.layers = [HistoryLayer(window, make_room) for window in windows]
        self.ids: list[int] = []
        self.last_hidden: Tensor | None = None

    @property
    def nbytes(self) -> int:
        """Bytes held for keys and values."""
        return sum(layer.nbytes for layer in self.layers)

    def reuse(self, ids: Sequence[int]) -> int:
        """Crop to what `ids` has in common with the cache and return its length.

        The last id is encoded again unless nothing at all changed: its hidden state is needed.
        """
        common = 0
        for cached, new in zip(self.ids, ids, strict=False):
            if cached != new:
                break
            common += 1
        if common < len(self.ids):
            self.last_hidden = None
        if common == len(ids) and self.last_hidden is None:
            common -= 1
        for layer in self.layers:
            layer.crop(common)
        del self.ids[common:]
        return common

    def writable(self) -> Cache:
        """The cache as the encoder takes it, to append to."""
        return Cache(layers=self.layers)

    @contextlib.contextmanager
    def branch(self, batch: int) -> Iterator[Cache]:
        """The cache as `batch` canvases or continuations see it, inside of the context and without a copy."""
        with shared_history([(layer.keys, layer.values) for layer in self.layers]):
            yield Cache(layers=[BranchLayer(layer, batch) for layer in self.layers])
