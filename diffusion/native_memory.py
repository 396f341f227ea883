"""What the C libraries beneath torch do with memory, as far as they can be told. Knows no model and no torch."""

from __future__ import annotations

import ctypes
import os
import sys

PRIMITIVES = "64"
"""Products that oneDNN and its wrapper in torch remember, half a megabyte each. Both would remember 1024, by the exact
shape, and shapes of requests seldom come again."""


def bound_products() -> None:
    """Bound what is remembered of matrix products, unless the user has set it. Before the first product: the libraries
    look once."""
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, PRIMITIVES)


def give_back() -> None:
    """Return to the system what has been freed and kept for later, where the C library can: glibc. Takes milliseconds,
    and the next work takes some more."""
    if sys.platform == "linux" and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):
        trim(0)
