"""The memory plan of a profile as one JSON object: `python -I -m diffusion.plan_report PROFILE BYTES TOKENS`.

BYTES is the memory of a device; 0 stands for what is free on the best one of this machine. TOKENS of context, 0: as
many as the profile's layout has. Before anything of the model is loaded; torch only where this machine is asked.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from diffusion import checkpoint, memory_plan
from diffusion.api import EngineError
from diffusion.profiles import ModelProfile, load_profile


def report(name: str, free: int, tokens: int) -> dict[str, Any]:
    """`lines`: what and how much. `fits`: whether all of it does; if not, `message` and `hint` say why and what would.

    Raises EngineError.
    """
    profile = load_profile(name)
    tokens = tokens or profile.layout.encoder
    where = "of the device named"
    if not free:
        from diffusion import devices

        chosen = devices.choose()
        free, where = chosen.free, f"free on {chosen}"
    config, positions = text_config(profile), most_positions(profile)
    plan = memory_plan.plan(config, profile.quantisation)
    lines = memory_plan.lines(plan, tokens)
    lines.append(
        (f"most, {positions} positions", f"{(plan.total(positions, tokens) + memory_plan.RESERVE) / 1e9:.2f} GB")
    )
    told: dict[str, Any] = {"lines": [*lines, (where, f"{free / 1e9:.2f} GB")], "fits": True, "message": "", "hint": ""}
    try:
        memory_plan.refuse_beyond(config, profile.quantisation, free=free, positions=positions, tokens=tokens)
    except EngineError as error:
        told |= {"fits": False, "message": error.message, "hint": error.hint}
    return told


def text_config(profile: ModelProfile) -> dict[str, Any]:
    """From the weights, or from the profile where they are not here yet. Raises EngineError."""
    path = profile.weights / checkpoint.CONFIG
    if path.is_file() or not profile.architecture:
        found: dict[str, Any] = checkpoint.read_config(path)["text_config"]
        return found
    return profile.architecture


def most_positions(profile: ModelProfile) -> int:
    """Of all canvases of a batch together."""
    return profile.sampler.lengths * profile.layout.block_width


def main() -> int:
    name, free, tokens = sys.argv[1:]
    try:
        print(json.dumps(report(name, int(free), int(tokens))))
    except EngineError as error:
        print(json.dumps({"error": error.message, "hint": error.hint}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
