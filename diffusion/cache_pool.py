"""The key/value caches of all document windows under one budget of bytes: the least recently used one makes room.

Room is made before a cache grows, so the budget holds at any time; only a window that is larger than all of it is let
through, and forgotten after its request. Knows clients and documents by name; knows no requests.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from diffusion.kv_cache import KeyValueCache, MakeRoom

Key = tuple[str, str, str]
"""Client, document, and what kind of prompt it is."""


class CachePool:
    """`new` makes an empty cache that asks for room before it grows; `budget` in bytes. One cache is in use at a time:
    the one taken last, until it is settled."""

    def __init__(self, new: Callable[[MakeRoom], KeyValueCache], budget: int) -> None:
        self._new, self.budget = new, budget
        self._kept: OrderedDict[Key, KeyValueCache] = OrderedDict()

    @property
    def nbytes(self) -> int:
        """Bytes of all caches."""
        return sum(cache.nbytes for cache in self._kept.values())

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, key: Key) -> KeyValueCache:
        """The cache of that name, new if there is none."""
        cache = self._kept.pop(key, None) or self._new(self._make_room)
        self._kept[key] = cache
        return cache

    def settle(self) -> None:
        """The request is over: the cache taken last stays if it holds something and fits."""
        if self._kept and not 0 < next(reversed(self._kept.values())).nbytes <= self.budget:
            self._kept.popitem()

    def forget(self, client: str) -> None:
        """Give up what is kept for a client that has gone."""
        for key in [key for key in self._kept if key[0] == client]:
            del self._kept[key]

    def clear(self) -> None:
        self._kept.clear()

    def _make_room(self, more: int) -> None:
        """The cache in use is about to take `more` bytes, old buffers of its own not yet given up."""
        while len(self._kept) > 1 and self.nbytes + more > self.budget:
            self._kept.popitem(last=False)
