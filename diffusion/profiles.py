"""A ModelProfile says everything that is particular to one model: token ids, layout, sampler defaults, where the
weights are. One TOML file per model under profiles/; a user's own files lie in the configuration folder. No torch.
"""

from __future__ import annotations

import contextlib
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast, get_args

import platformdirs

from diffusion.api import DISTRIBUTION, EngineError
from diffusion.quantisation import Quantisation

_PACKAGE = Path(str(resources.files("diffusion")))

Backend = Literal["resident", "vllm", "openai"]
"""Who computes: the model in this process, or a server that the profile names (see diffusion.remote)."""


NATIVE_TOKENS = ("pad", "bos", "eof", "mask", "end", "file", "window", "context")
CHAT_TOKENS = ("pad", "eos", "bos", "turn", "turn_end", "channel", "channel_end")
"""Special ids that a profile has to name."""


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
    `lengths` are tried at most, and no more than hold `length_mass` of the probability. Canvases that fall `margin`
    nats behind the best one are given up. `corrections`: so many times at most a model with the native layout takes
    back what does not fit (infill.py). `drafted`: lines that the encoder writes left to right are candidates, too."""

    noise: Literal["absorbing", "uniform"]
    self_conditioning: Literal["none", "zero_at_pins", "one_hot_at_pins"]
    steps: int
    entropy_bound: float
    temperature: tuple[float, float]
    lengths: int
    length_mass: float
    margin: float = 8.0
    corrections: int = 0
    drafted: bool = False


FEATURES = 10
"""So many numbers the confidence in a middle is computed from (ranking.features)."""


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """From scores to what they mean, fitted on held-out cuts. Both are logistic: sigmoid(scale * logit + bias).

    `end` maps the raw end-of-middle probabilities, `confidence` the features of a candidate (ranking.features).
    `gate`: the confidence from which on an answer is worth being shown unasked, None if nobody has measured it.
    """

    end_scale: float = 1.0
    end_bias: float = 0.0
    confidence_weights: tuple[float, ...] = ()
    confidence_bias: float = 0.0
    gate: float | None = None

    def __post_init__(self) -> None:
        if len(self.confidence_weights) not in (0, FEATURES):
            raise ValueError(f"[calibration] has {len(self.confidence_weights)} confidence_weights, not {FEATURES}")


@dataclass(frozen=True, kw_only=True)
class Chat:
    """What the chat layout needs beside sizes (chat_layout.py, floating.py), in token ids.

    `rule` and `edit_rule` are the system turns. Ids from `first_text` to `last_text` are text, no others. `suffix`: ids
    of the suffix's copy in the user's turn. `float_steps` denoise a canvas of unknown length; `shifts` are tried around
    the length that was found, `lengths` where none was, weighed by `length_bias` (lengths.bias); `restored` ids of the
    suffix head are renoised to choose.
    """

    rule: str
    edit_rule: str
    first_text: int
    last_text: int
    suffix: int
    float_steps: int
    shifts: tuple[int, ...]
    lengths: tuple[int, ...]
    length_bias: tuple[float, float, float, float, float]
    restored: int


@dataclass(frozen=True, kw_only=True)
class ModelProfile:
    """One model. `tokens` names special ids, `languages` maps LSP language ids to ids; ids below `specials` are
    never text. `weights` is a folder; `repository` is where they can be had on the hub, "" if nowhere. `aliases` are
    other names. `cache_mb` is the memory for keys and values of all document windows. Without `quantisation` the
    weights are loaded as they are. With `chat` the layout is that of a chat model, else the native one. `architecture`
    is text_config where weights are not at hand yet. `copying`: the weights of copies (copying.py), none if empty."""

    name: str
    title: str
    weights: Path
    repository: str = ""
    aliases: tuple[str, ...] = ()
    cache_mb: float = 1024
    quantisation: Quantisation | None = None
    layout: Layout
    sampler: Sampler
    tokens: dict[str, int]
    languages: dict[str, int]
    specials: int
    copying: tuple[float, ...] = ()
    calibration: Calibration | None = field(default=None)
    chat: Chat | None = None
    architecture: dict[str, Any] = field(default_factory=dict)


def load_profile(name: str) -> ModelProfile:
    """The profile called `name`, the user's own before those of the package. Raises EngineError."""
    return parse_profile(profile_file(name))


def backend_of(name: str) -> Backend:
    """Who computes for the profile called `name`. Raises EngineError."""
    path = profile_file(name)
    backend = read_toml(path).get("backend", "resident")
    if backend not in get_args(Backend):
        choices = ", ".join(get_args(Backend))
        raise EngineError(f"the model profile {path} asks for the backend {backend!r}", f"the backends are {choices}")
    return cast(Backend, backend)


def profile_file(name: str) -> Path:
    """Where the profile called `name` lies, names before aliases. Raises EngineError."""
    files = profile_files()
    if name in files:
        return files[name]
    for path in files.values():
        if name in _aliases(path):
            return path
    raise EngineError(f"there is no model profile {name!r}", f"known profiles: {', '.join(sorted(files))}")


def profile_files() -> dict[str, Path]:
    """Name -> file of every profile; a user's own hides that of the package."""
    folders = (_PACKAGE / "profiles", platformdirs.user_config_path(DISTRIBUTION) / "profiles")
    return {path.stem: path for folder in folders for path in sorted(folder.glob("*.toml"))}


def models_folder() -> Path:
    """Where `midfill model pull` keeps weights, a folder per model."""
    return platformdirs.user_data_path(DISTRIBUTION) / "models"


def _aliases(path: Path) -> list[str]:
    """Of a file that may be damaged: that is another name's business."""
    try:
        return list(tomllib.loads(path.read_text(encoding="utf-8")).get("aliases", ()))
    except (OSError, ValueError, TypeError):
        return []


def chat_profiles() -> list[str]:
    """Names of the profiles with a chat layout, whose models follow instructions; damaged files left out."""
    found = []
    for name, path in profile_files().items():
        with contextlib.suppress(EngineError):
            if "chat" in read_toml(path):
                found.append(name)
    return sorted(found)


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of one file. Raises EngineError naming the file and what is wrong in it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EngineError(f"the model profile {path} cannot be read: {error}", "correct or remove the file") from error


def parse_profile(path: Path) -> ModelProfile:
    """Read one TOML file. Raises EngineError naming the file and what is wrong in it."""
    data = read_toml(path)
    if data.get("backend", "resident") != "resident":
        raise EngineError(f"the model profile {path} names a server and no weights", "take a profile with weights here")
    try:
        languages: dict[str, int] = dict(data["languages"])
        chat = Chat(**_tuples(data["chat"])) if "chat" in data else None
        if absent := [name for name in (CHAT_TOKENS if chat else NATIVE_TOKENS) if name not in data["tokens"]]:
            raise ValueError(f"[tokens] has no {absent[0]}")
        if chat and data["sampler"]["noise"] != "uniform":
            raise ValueError("with [chat], noise is uniform")
        last_special = max(*data["tokens"].values(), languages.pop("reserved", 0), *languages.values())
        return ModelProfile(
            name=data["name"],
            title=data["title"],
            weights=_weights_folder(data["weights"], path),
            repository=data.get("repository", ""),
            aliases=tuple(data.get("aliases", ())),
            cache_mb=float(data.get("cache_mb", ModelProfile.cache_mb)),
            quantisation=Quantisation(**data["quantisation"]) if "quantisation" in data else None,
            layout=Layout(**_tuples(data["layout"])),
            sampler=Sampler(**_tuples(data["sampler"])),
            tokens=dict(data["tokens"]),
            languages=languages,
            specials=chat.first_text if chat else last_special + 1,
            copying=_weights(data.get("copying", {})),
            calibration=Calibration(**_tuples(data["calibration"])) if "calibration" in data else None,
            chat=chat,
            architecture=dict(data.get("architecture", {})),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(f"the model profile {path} cannot be read: {error}", "correct or remove the file") from error


def _weights_folder(text: str, profile_path: Path) -> Path:
    """ "package:NAME" is a folder of this package, "models:NAME" one that was pulled; anything else is a path, relative
    to the profile's file."""
    scheme, _, rest = text.partition(":")
    if scheme in ("package", "models"):
        return (_PACKAGE if scheme == "package" else models_folder()) / rest
    return (profile_path.parent / Path(text).expanduser()).resolve()


def _weights(copying: dict[str, Any]) -> tuple[float, ...]:
    """The weights of [copying], which has nothing else. Raises ValueError."""
    weights = tuple(float(weight) for weight in copying.get("weights", ()))
    if not all(0 <= weight < 1 for weight in weights):
        raise ValueError("[copying] has weights that are not between 0 and 1")
    return weights


def _tuples(table: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
