"""A ModelProfile says everything that is particular to one model: token ids, layout, sampler defaults, where the
weights are. One TOML file per model under profiles/; a user's own files lie in the configuration folder. No torch.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

import platformdirs

from diffusion.api import DISTRIBUTION, EngineError

_PACKAGE = Path(str(resources.files("diffusion")))


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Sizes of the native layout, in token ids. See layouts.py for the picture."""

    widths: tuple[int, ...]
    line_width: int
    block_width: int
    gap: int
    pins: int
    context: int
    encoder: int


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """Defaults of the denoising loop. `entropy_bound` in nats; `temperature` at the first and at the last step;
    `lengths` are tried at most, and no more than hold `length_mass` of the probability."""

    noise: Literal["absorbing", "uniform"]
    self_conditioning: Literal["none", "zero_at_pins", "one_hot_at_pins"]
    steps: int
    entropy_bound: float
    temperature: tuple[float, float]
    lengths: int
    length_mass: float


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """From scores to what they mean, fitted on held-out cuts. Both are logistic: sigmoid(scale * logit + bias).

    `end` maps the raw end-of-middle probabilities, `confidence` the score of a candidate.
    """

    end_scale: float = 1.0
    end_bias: float = 0.0
    confidence_weights: tuple[float, ...] = ()
    confidence_bias: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """One model. `tokens` names special ids, `languages` maps LSP language ids to ids; ids below `specials` are
    never text. `weights` is a folder."""

    name: str
    title: str
    weights: Path
    layout: Layout
    sampler: Sampler
    tokens: dict[str, int]
    languages: dict[str, int]
    specials: int
    calibration: Calibration | None = field(default=None)


def load_profile(name: str) -> ModelProfile:
    """The profile called `name`, the user's own before those of the package. Raises EngineError."""
    folders = (platformdirs.user_config_path(DISTRIBUTION) / "profiles", _PACKAGE / "profiles")
    for folder in folders:
        # A name, not a path: it comes from a command line.
        if name == Path(name).name and (folder / f"{name}.toml").is_file():
            return parse_profile(folder / f"{name}.toml")
    known = sorted({path.stem for folder in folders for path in folder.glob("*.toml")})
    raise EngineError(f"there is no model profile {name!r}", f"known profiles: {', '.join(known)}")


def parse_profile(path: Path) -> ModelProfile:
    """Read one TOML file. Raises EngineError naming the file and what is wrong in it."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        languages: dict[str, int] = dict(data["languages"])
        last_special = max(*data["tokens"].values(), languages.pop("reserved", 0), *languages.values())
        return ModelProfile(
            name=data["name"],
            title=data["title"],
            weights=_weights_folder(data["weights"], path),
            layout=Layout(**_tuples(data["layout"])),
            sampler=Sampler(**_tuples(data["sampler"])),
            tokens=dict(data["tokens"]),
            languages=languages,
            specials=last_special + 1,
            calibration=Calibration(**_tuples(data["calibration"])) if "calibration" in data else None,
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise EngineError(f"the model profile {path} cannot be read: {error}", "correct or remove the file") from error


def _weights_folder(text: str, profile_path: Path) -> Path:
    """ "package:NAME" is a folder of this package; anything else is a path, relative to the profile's file."""
    scheme, _, rest = text.partition(":")
    if scheme == "package":
        return _PACKAGE / rest
    return (profile_path.parent / Path(text).expanduser()).resolve()


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
