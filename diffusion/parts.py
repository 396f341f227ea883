"""Safetensors files as parts of a snapshot: written so that large tensors can be used where they are mapped.

Knows tensors and one file at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
from itertools import chain
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from diffusion.api import EngineError

ALIGNMENT = 64
"""Bytes: what torch gives its own tensors."""

DTYPES = {
    torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.float8_e4m3fn: "F8_E4M3",
    torch.uint8: "U8", torch.int8: "I8",
}  # fmt: skip
"""As safetensors calls them."""


def write(path: Path, tensors: dict[str, Tensor], metadata: dict[str, str]) -> tuple[int, str]:
    """A safetensors file, one tensor after the other; its size and checksum.

    The library's own writer orders by dtype, which leaves large tensors at odd addresses when the file is mapped. Here
    what is a multiple of ALIGNMENT comes first, and the header is filled up to one.
    """
    ordered = sorted(tensors, key=lambda name: (tensors[name].nbytes % ALIGNMENT != 0, -tensors[name].itemsize, name))
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name in ordered:
        tensor = tensors[name]
        offsets = [end, end := end + tensor.nbytes]
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": offsets}
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in chain((len(text).to_bytes(8, "little"), text), (_bytes(tensors[name]) for name in ordered)):
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return 8 + len(text) + end, digest.hexdigest()


def read(part: Path, device: torch.device) -> dict[str, Tensor]:
    """The tensors of one part; on the CPU they are mapped from the file. Raises EngineError."""
    try:
        with safe_open(part, "pt") as file:
            return {name: file.get_tensor(name).to(device) for name in file.keys()}  # noqa: SIM118  it is no dict
    except (OSError, SafetensorError) as error:
        raise EngineError(f"{part} cannot be read: {error}", "see `midfill model info`", "model") from error


def _bytes(tensor: Tensor) -> Any:
    """What lies in memory, without a copy where that is the CPU's."""
    return tensor.cpu().contiguous().flatten().view(torch.uint8).numpy()
