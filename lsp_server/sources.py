"""Where the settings of one editor come from, and what they are in the end, for the window and for each file.

Weakest first: the defaults, config.toml, the client's initialization options, its configuration (that of a file in the
place of that of the window), and what the user has toggled since. Knows no LSP types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lsp_server.config_file import ConfigFile
from lsp_server.settings import NAMES, ROWS, Problem, Settings, read, section

OPTIONS, CLIENT = "the initialization options", "the editor's configuration"
FIELDS = {row.name: row.field for row in ROWS}


@dataclass(kw_only=True)
class Sources:
    """The settings, kept until something changes. Read `of` and `problems`."""

    file: ConfigFile = field(default_factory=ConfigFile)
    _options: Any = None
    _client: Any = None
    _of_file: dict[str, Any] = field(default_factory=dict)
    _toggled: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    _merged: dict[str, tuple[Settings, tuple[Problem, ...]]] = field(default_factory=dict)

    def reread(self) -> bool:
        """Look at config.toml; true if it has changed."""
        return self.file.reread() and self._changed()

    def set_options(self, body: Any) -> None:
        self._options = body
        self._changed()

    def set_client(self, body: Any) -> None:
        """The client's whole configuration: what is no longer in it is unset. One without a word of ours is of no
        interest: some clients send every change of anybody's settings."""
        ours = section(body)
        if isinstance(body, Mapping) and body and ours is body and not set(body) & set(NAMES) and "midfill" not in body:
            return
        self._client = None if isinstance(ours, Mapping) and "midfill" in ours else ours
        self._changed()

    def set_of_file(self, uri: str, body: Any) -> None:
        """The client's configuration for one file."""
        if body is None or section(body) == self._client:
            self._of_file.pop(uri, None)
        else:
            self._of_file[uri] = body
        self._merged.pop(uri, None)

    def forget(self, uri: str) -> None:
        self._of_file.pop(uri, None)
        self._merged.pop(uri, None)

    def toggle(self, name: str, value: Any) -> None:
        """Set something by hand, in the type that it has; it holds until what it stands above is changed."""
        self._toggled[name] = value, getattr(self._below()[0], FIELDS[name])
        self._merged.clear()

    def of(self, uri: str = "") -> Settings:
        """The settings of a file, or those of the window."""
        return self._all(uri)[0]

    def problems(self, uri: str = "") -> tuple[Problem, ...]:
        """Every value that could not be used, in any source."""
        unread = (Problem(key=self.file.problem, message=self.file.problem),) if self.file.problem else ()
        return (*unread, *self._all(uri)[1])

    def _all(self, uri: str) -> tuple[Settings, tuple[Problem, ...]]:
        uri = uri if uri in self._of_file else ""
        if uri not in self._merged:
            below, problems = self._below(uri)
            toggled = {FIELDS[name]: value for name, (value, _) in self._toggled.items()}
            self._merged[uri] = replace(below, **toggled), problems
        return self._merged[uri]

    def _below(self, uri: str = "") -> tuple[Settings, tuple[Problem, ...]]:
        """Without what was toggled."""
        settings, problems = read(self.file.body, Settings(), source=str(self.file.path), strict=True)
        for source, body in ((OPTIONS, self._options), (CLIENT, self._of_file.get(uri, self._client))):
            settings, more = read(body, settings, source=source)
            problems += more
        return settings, problems

    def _changed(self) -> bool:
        """Something below has. What was toggled above a setting that has another value there now has had its day."""
        self._merged.clear()
        below = self._below()[0]
        self._toggled = {name: over for name, over in self._toggled.items() if over[1] == getattr(below, FIELDS[name])}
        return True
