"""What this installation can run a model with, as one JSON object: `python -I -m diffusion.facts PROFILE`.

A process of its own, since `midfill doctor` must not load torch, and must survive a torch that cannot be loaded.
Loads no model; a server that the profile names is asked what it can do.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from diffusion.api import EngineError

WEIGHT_FILES = ("config.json", "tokenizer.json", "model.safetensors")
SEVERAL = ("model.safetensors.index.json", "snapshot/snapshot.json")
"""In place of the last of them: weights in several files."""


def facts(profile: str) -> dict[str, Any]:
    """Each part either as it is or as {"error": sentence, "hint": what to do}."""
    return {"torch": _told(_torch), "profile": _told(lambda: _profile(profile))}


def _told(part: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return part()
    except EngineError as error:
        return {"error": error.message, "hint": error.hint}
    except (ImportError, OSError, RuntimeError) as error:
        return {"error": f"{type(error).__name__}: {error}", "hint": "install midfill again"}


def _torch() -> dict[str, Any]:
    import torch

    from diffusion import devices

    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "device": str(devices.choose()),
        "cuda": torch.version.cuda or "",
    }


def _profile(name: str) -> dict[str, Any]:
    from diffusion.profiles import backend_of, load_profile

    if backend_of(name) != "resident":
        from diffusion.remote.engine import load

        engine = load(name)
        return {"name": name, "title": engine.title, "server": engine.device, "note": engine.note}
    profile = load_profile(name)
    files = [profile.weights / file for file in WEIGHT_FILES]
    if any((profile.weights / name).is_file() for name in SEVERAL):
        files = [*files[:2], *profile.weights.glob("*.safetensors"), *profile.weights.glob("*/*.safetensors")]
    return {
        "name": profile.name,
        "title": profile.title,
        "weights": str(profile.weights),
        "bytes": sum(file.stat().st_size for file in files if file.is_file()),
        "repository": profile.repository,
        "missing": [file.name for file in files if not file.is_file()],
    }


if __name__ == "__main__":
    print(json.dumps(facts(sys.argv[1])))
