"""What lies in the folder of a checkpoint, as the hub has it: config.json, safetensors shards and their index.

Reads the headers only, checks that everything is there and of a kind that can be loaded, and gives weights the names
they have in the decoder. The vision tower is not wanted by anybody and never read. Knows no torch.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffusion.api import EngineError

CONFIG, SINGLE, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
DTYPES = {"F32": 4, "F16": 2, "BF16": 2}
"""Bytes per number of the dtypes that weights may have, as safetensors calls them."""

UNWANTED = re.compile(r"model\.encoder\.(vision_tower|embed_vision)\.|lm_head\.weight$")
DECODER, ENCODER = "model.decoder.", "model.encoder.language_model."
PULL = "get it again with `midfill model pull`"


@dataclass(frozen=True, kw_only=True)
class Stored:
    """A weight in a shard: its name there, its dtype as safetensors calls it, its shape."""

    shard: Path
    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Weights by their names in the decoder; `encoder.layers.N.layer_scalar` is all that the encoder has of its own.
    `fingerprint` tells one checkpoint from another."""

    folder: Path
    config: dict[str, Any]
    weights: dict[str, Stored]
    fingerprint: str

    @property
    def shards(self) -> dict[Path, list[str]]:
        """Shard -> names of the weights that are wanted from it."""
        found: dict[Path, list[str]] = {}
        for name, stored in self.weights.items():
            found.setdefault(stored.shard, []).append(name)
        return found


def read(folder: Path) -> Checkpoint:
    """Raises EngineError naming the file that is missing, damaged, or of a kind that cannot be loaded."""
    config = read_config(folder / CONFIG)
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    found: dict[str, Stored] = {}
    for shard, expected in _shards(folder).items():
        header = read_header(shard)
        digest.update(json.dumps(header, sort_keys=True).encode())
        if absent := sorted(expected - header.keys()):
            raise EngineError(f"{shard} does not hold {absent[0]}: it belongs to another checkpoint", PULL, "model")
        for name, entry in header.items():
            if not UNWANTED.match(name):
                found[name] = Stored(shard=shard, name=name, dtype=entry["dtype"], shape=tuple(entry["shape"]))
    weights = dict(_renamed(found))
    for name, stored in weights.items():
        if stored.dtype not in DTYPES:
            hint = "take a checkpoint in bfloat16, float16 or float32; midfill quantises it itself"
            raise EngineError(f"{name} in {stored.shard} has the unknown dtype {stored.dtype}", hint, "model")
    return Checkpoint(folder=folder, config=config, weights=weights, fingerprint=digest.hexdigest())


def read_config(path: Path) -> dict[str, Any]:
    """config.json of a model that can be loaded. Raises EngineError."""
    try:
        config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise EngineError(f"{path} is missing", PULL, "model") from error
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read: {error}", PULL, "model") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind != "diffusion_gemma" or not isinstance(config.get("text_config"), dict):
        hint = "midfill loads checkpoints of DiffusionGemmaForBlockDiffusion; others can be served elsewhere"
        raise EngineError(f"{path} describes a model of the unknown architecture {kind!r}", hint, "model")
    if made := config.get("quantization_config"):
        method = made.get("quant_method", "?") if isinstance(made, dict) else made
        hint = "take the one in bfloat16, which midfill quantises itself, or let vLLM serve this one"
        raise EngineError(f"{path} describes a checkpoint that is already quantised ({method})", hint, "model")
    if not config.get("tie_word_embeddings", True):
        raise EngineError(f"{path}: encoder and decoder do not share weights", "such models cannot be loaded", "model")
    return config


def read_header(path: Path) -> dict[str, Any]:
    """The entries of a safetensors file, of which all bytes are there. Raises EngineError."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = path.stat().st_size
            if length > min(size, 100_000_000) or size < 8:
                raise EngineError(f"{path} is no safetensors file", PULL, "model")
            header: dict[str, Any] = json.loads(file.read(length))
        header.pop("__metadata__", None)
        end = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    except FileNotFoundError as error:
        raise EngineError(f"the shard {path} is missing", PULL, "model") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"{path} is no safetensors file", PULL, "model") from error
    if size != end:
        raise EngineError(f"{path} is truncated or damaged: {size} of {end} bytes", PULL, "model")
    return header


def _shards(folder: Path) -> dict[Path, set[str]]:
    """Shards with the names that the index says are in them; one that holds nothing of interest is left out."""
    index = folder / INDEX
    if not index.is_file():
        return {folder / SINGLE: set()}
    try:
        places: dict[str, str] = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        shards: dict[Path, set[str]] = {}
        for name, file in places.items():
            if file != Path(file).name:
                raise ValueError(f"{file!r} is not the name of a file")
            if not UNWANTED.match(name):
                shards.setdefault(folder / file, set()).add(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise EngineError(f"{index} cannot be read: {error}", PULL, "model") from error
    return shards


def _renamed(found: dict[str, Stored]) -> Iterator[tuple[str, Stored]]:
    """Encoder and decoder share their weights: either may have been stored."""
    for name, stored in found.items():
        if name.startswith(ENCODER):
            own = name.removeprefix(ENCODER)
            if own.endswith(".layer_scalar"):
                yield f"encoder.{own}", stored
            elif DECODER + own not in found:
                yield own, stored
        else:
            yield name.removeprefix(DECODER), stored
