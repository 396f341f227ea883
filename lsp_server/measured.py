"""What the pipeline does without, or otherwise, to measure what that is worth (`midfill lsp --measure`, for
`midfill bench replay`). Knows the fields of a Completer by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lsp_server.cache import Cache

MEASURED: dict[str, Callable[[], dict[str, Any]]] = {
    "": dict,
    "no-warm-start": lambda: {"cache": Cache(starts=0)},
    "no-cache": lambda: {"cache": Cache(length=0)},
    "left-to-right": lambda: {"cache": Cache(starts=0), "decoding": "left-to-right"},
}
