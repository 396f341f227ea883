"""Typed settings and how they are read from what a client sends. A bad value is named and its default used instead.

Knows the names, types and ranges of the settings; not who sent them nor what they are used for.
"""

from __future__ import annotations

import dataclasses
import re
import reprlib
from dataclasses import dataclass
from typing import Any

from lsp_server.context.budget import AUTO, SOURCES


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All there is to set. Clients write the names in camelCase: `debounceMs`, `disabledLanguages` ..."""

    enabled: bool = True
    disabled_languages: tuple[str, ...] = ("plaintext", "markdown", "scminput")
    """Language ids where nothing is offered while typing. An explicit request is answered everywhere."""
    disabled_globs: tuple[str, ...] = ()
    """Files where nothing is offered while typing, as in a .gitignore: `*.lock`, `docs/**`."""
    comments: bool = True
    """Offer completions in comments while typing."""
    strings: bool = True
    """Offer completions in strings while typing."""
    debounce_ms: int = 300
    """Silence to wait for after a keystroke, at most; it is half the time that answers take. 0: none."""
    client_debounce_ms: int = 0
    """What the client itself waits after a keystroke before it asks: it is not waited for again."""
    deadline_ms: int = 250
    """When the best draft has to do as the answer to an automatic request; explicit ones have four times as long."""
    max_lines: int = 12
    """Lines of one completion at most."""
    min_confidence: float = 0.35
    """Automatic completions that are right less often than this are not shown."""
    prefix_chars: int = 8_000
    suffix_chars: int = 4_000
    """How much text before and after the cursor reaches the engine."""
    context_sources: tuple[str, ...] = ("auto",)
    """What a request tells of the surroundings: imports, signatures, cells, files, edits, lines; auto: what has been
    measured to help the model."""
    max_file_chars: int = 1_000_000
    """Larger files are neither completed nor used as context."""
    popup: bool = False
    """Offer `textDocument/completion` also to a client that has inline completion."""
    drafts: bool = False
    """Send `midfill/draft` notifications while the model is at work."""
    engine_idle_minutes: float = 5.0
    """How long the engine keeps the model in memory when no editor is open; 0: for ever."""


RANGES: dict[str, tuple[float, float]] = {
    "debounce_ms": (0, 5_000),
    "client_debounce_ms": (0, 5_000),
    "deadline_ms": (50, 60_000),
    "max_lines": (1, 100),
    "min_confidence": (0.0, 1.0),
    "prefix_chars": (200, 200_000),
    "suffix_chars": (0, 100_000),
    "max_file_chars": (1_000, 100_000_000),
    "engine_idle_minutes": (0, 100_000),
}
CHOICES: dict[str, tuple[str, ...]] = {"context_sources": (AUTO, *SOURCES)}
"""Lists whose items are of a few."""


def read(body: Any, base: Settings) -> tuple[Settings, tuple[str, ...]]:
    """`base` changed by what a client sent, and a sentence for every value that had to be left out.

    Unknown names are ignored, since a client sends its own settings along; null means unset.
    """
    if isinstance(body, dict) and isinstance(body.get("midfill"), dict):
        body = body["midfill"]
    if body is None or body == []:
        return base, ()
    if not isinstance(body, dict):
        return base, (f"the settings must be an object, not {reprlib.repr(body)}",)
    values: dict[str, Any] = {}
    problems = []
    for field in dataclasses.fields(Settings):
        value = body.get(_camel(field.name))
        if value is None:
            continue
        checked, problem = _check(field.name, value, getattr(Settings(), field.name))
        if problem:
            problems.append(f"setting {_camel(field.name)} must be {problem}; using {getattr(base, field.name)!r}")
        else:
            values[field.name] = checked
    return dataclasses.replace(base, **values), tuple(problems)


def _check(name: str, value: Any, default: Any) -> tuple[Any, str]:
    """The value in the type of its default, or what it must be and is not."""
    shown = reprlib.repr(value)
    if isinstance(default, bool):
        return (value, "") if isinstance(value, bool) else (None, f"true or false, not {shown}")
    if isinstance(default, tuple):
        allowed = CHOICES.get(name)
        if isinstance(value, list) and all(isinstance(item, str) and item in (allowed or (item,)) for item in value):
            return tuple(value), ""
        return None, f"a list of {', '.join(allowed) if allowed else 'texts'}, not {shown}"
    low, high = RANGES[name]
    whole = isinstance(default, int)
    number = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    if number and (not whole or value == int(value)):
        return (int(value) if whole else float(value)), ""
    return None, f"a {'whole ' if whole else ''}number from {low:g} to {high:g}, not {shown}"


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match.group(1).upper(), name)
