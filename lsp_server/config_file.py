"""The user's settings for all editors: config.toml in the folder for configurations, read again whenever it changes.

Knows the file; not what stands in it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import platformdirs

from diffusion.api import DISTRIBUTION


def config_path() -> Path:
    return platformdirs.user_config_path(DISTRIBUTION) / "config.toml"


@dataclass(kw_only=True)
class ConfigFile:
    """What the file says: nothing where there is none, what it said before where it cannot be read now. `problem` is
    then the sentence that says why."""

    path: Path = field(default_factory=config_path)
    body: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    _stamp: tuple[int, ...] | None = None

    def reread(self) -> bool:
        """Look whether the file is another one than before, and read it if so. True: `body` or `problem` may be new."""
        try:
            found = self.path.stat()
            stamp: tuple[int, ...] = (found.st_mtime_ns, found.st_size, found.st_ino)
        except OSError:
            stamp = ()
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.body, self.problem = tomllib.loads(self.path.read_text(encoding="utf-8")), ""
        except FileNotFoundError:
            self.body, self.problem = {}, ""
        except (OSError, ValueError, RecursionError) as error:  # not readable, not UTF-8, no TOML
            self.problem = f"{self.path} cannot be read: {error} (correct or remove the file)"
        return True
