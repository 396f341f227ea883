"""What the files of a model say without being loaded: whether they have changed, how much memory it needs, and what to
tell who has too little. No torch.
"""

from __future__ import annotations

import contextlib
import json
import math
import struct
from collections.abc import Iterator
from pathlib import Path

from diffusion.api import EngineError
from diffusion.profiles import ModelProfile, load_profile, profile_file, profile_files

BYTES = {False: 4.0, True: 0.65}
"""Per parameter, by whether it is quantised: float32 on a CPU; packed experts, 8-bit linears, bfloat16 embeddings."""
NO_MEMORY = ("out of memory", "allocate memory", "failed to map segment", "not enough memory", "bad_alloc")
"""What torch, safetensors, the loader of libraries and the systems say of it."""


def fingerprint(name: str) -> tuple[tuple[str, int, int], ...]:
    """Path, time and size of the files that a profile's model is made of; other if one of them is not the same."""
    try:
        paths = [profile_file(name), *_in(load_profile(name).weights)]
    except EngineError:  # it may be any file that is missing or wrong
        paths = [*profile_files().values()]
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            found.append((str(path), path.stat().st_mtime_ns, path.stat().st_size))
    return tuple(sorted(found))


def needed(profile: ModelProfile) -> int:
    """Bytes of memory for the weights, from their files' headers; 0 where there are none or they cannot be read."""
    try:
        parameters = sum(_parameters(path) for path in _in(profile.weights) if path.suffix == ".safetensors")
    except (OSError, ValueError, TypeError, KeyError, AttributeError, struct.error):
        return 0
    return round(parameters * BYTES[profile.quantisation is not None])


@contextlib.contextmanager
def lack_of_memory_told(name: str) -> Iterator[None]:
    """Loading the model of a profile: lack of memory, in whatever form, becomes an EngineError with the memory that is
    needed and the profiles that need less."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, ImportError, EngineError) as error:
        if not is_lack_of_memory(error):
            raise
        need, others = _needed_by(name), _smaller(name)
        raise EngineError(
            f"there is not enough memory for the model {name}" + (f", which needs {_gigabytes(need)}" if need else ""),
            "close other programs and run `midfill engine start`"
            + (f", or take a profile that needs less: {others}" if others else "; no other profile here needs less"),
            "model",
        ) from error


def memory_sentence(name: str) -> str:
    """For a message about an engine that may have been killed for lack of memory."""
    need, others = _needed_by(name), _smaller(name)
    sentence = f", which needs {_gigabytes(need)} of memory" if need else ""
    return sentence + (f" (less: {others})" if others else "")


def _smaller(name: str) -> str:
    need = _needed_by(name) or math.inf
    sizes = {other: _needed_by(other) for other in profile_files() if other != name}
    return ", ".join(f"{other} ({_gigabytes(size)})" for other, size in sizes.items() if 0 < size < need)


def is_lack_of_memory(error: BaseException) -> bool:
    """In whatever form it comes."""
    return isinstance(error, MemoryError) or any(said in str(error).lower() for said in NO_MEMORY)


def _needed_by(name: str) -> int:
    try:
        return needed(load_profile(name))
    except EngineError:
        return 0


def _parameters(file: Path) -> int:
    """In a safetensors file: eight bytes of length, then that much JSON, name -> {dtype, shape, data_offsets}."""
    with file.open("rb") as opened:
        (length,) = struct.unpack("<Q", opened.read(8))
        header = json.loads(opened.read(min(length, 100_000_000)))
    return sum(math.prod(entry["shape"]) for name, entry in header.items() if name != "__metadata__")


def _in(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.0f} MB"
