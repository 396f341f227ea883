"""Which model the user has chosen with `midfill model use`: the key `model` of config.toml, for every process.

Knows that file; nothing of profiles and models.
"""

from __future__ import annotations

import tomllib

import platformdirs

from diffusion.api import DISTRIBUTION, EngineError

DEFAULT_PROFILE = "embedded"


def chosen_model() -> str:
    """The name of a profile: the embedded model where no other was asked for.

    Raises EngineError for a file that cannot be read: another model than the chosen one would be a silent switch.
    """
    path = platformdirs.user_config_path(DISTRIBUTION) / "config.toml"
    try:
        name = tomllib.loads(path.read_text(encoding="utf-8")).get("model", DEFAULT_PROFILE)
    except FileNotFoundError:
        return DEFAULT_PROFILE
    except (OSError, ValueError) as error:
        raise EngineError(f"{path} cannot be read: {error}", "correct or remove the file", "unavailable") from error
    if not isinstance(name, str) or not name:
        raise EngineError(f"model in {path} must be the name of a profile", 'for example: model = "embedded"')
    return name
