"""All there is to set, in one typed table, and how values are read into it. A bad value is named and left out.

Knows the names, types, ranges and meanings of the settings; not who sent them nor what they are used for. The table in
README.md and the schemas for editors are made from this one (`midfill settings --markdown`).
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from lsp_server.context.budget import AUTO, SOURCES

T = TypeVar("T")
Scope = Literal["file", "window", "user"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One setting: `name` as clients write it. `scope`: may differ from file to file, is one for an editor window, or
    is the user's business alone and none of a workspace. `low` and `high` hold for numbers; `choices` for the items of
    a list; `pattern` for texts. `doc` is one sentence."""

    field: str = ""
    name: str = ""
    default: Any = None
    doc: str
    scope: Scope = "file"
    low: float = 0
    high: float = 0
    choices: tuple[str, ...] = ()
    pattern: str = ""


def _row(default: T, doc: str, **details: Any) -> T:
    return dataclasses.field(default=default, metadata={"row": Row(doc=doc, **details)})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The values of the table."""

    enabled: bool = _row(True, "Offer completions at all.")
    disabled_languages: tuple[str, ...] = _row(
        ("plaintext", "markdown", "scminput"),
        "Language ids where nothing is offered while typing; an explicit request is answered everywhere.",
    )
    disabled_globs: tuple[str, ...] = _row(
        (), "Files where nothing is offered while typing, as in a .gitignore: `*.lock`, `docs/**`."
    )
    comments: bool = _row(True, "Offer completions in comments while typing.")
    strings: bool = _row(True, "Offer completions in strings while typing.")
    debounce_ms: int = _row(
        300,
        "Silence to wait for after a keystroke, at most: it is half the time that answers take; 0 for none.",
        high=5_000,
    )
    client_debounce_ms: int = _row(
        0,
        "What the editor itself waits after a keystroke before it asks, which is not waited for again.",
        high=5_000,
    )
    deadline_ms: int = _row(
        250,
        "When the best draft has to do as the answer while typing; an explicit request has four times as long.",
        low=50,
        high=60_000,
    )
    max_lines: int = _row(12, "Lines of one completion at most.", low=1, high=100)
    min_confidence: float = _row(
        -1.0,
        "Completions that are right less often than this are not shown while typing; -1 for what suits the model.",
        low=-1,
        high=1,
    )
    prefix_chars: int = _row(
        8_000, "How much text before the cursor reaches the engine, in characters.", low=200, high=200_000
    )
    suffix_chars: int = _row(4_000, "How much text behind the cursor reaches the engine, in characters.", high=100_000)
    context_sources: tuple[str, ...] = _row(
        (AUTO,),
        "What a request tells of the surroundings; `auto` stands for what has been measured to help the model.",
        choices=(AUTO, *SOURCES),
    )
    max_file_chars: int = _row(
        1_000_000,
        "Larger files are neither completed nor used as context.",
        scope="window",
        low=1_000,
        high=100_000_000,
    )
    popup: bool = _row(False, "Offer completions in the menu also to an editor that shows ghost text.", scope="window")
    drafts: bool = _row(False, "Send `midfill/draft` notifications while the model is at work.", scope="window")
    model: str = _row(
        "",
        "Profile of the model that completes; empty for the one that `midfill model use` has chosen.",
        scope="user",
        pattern=r"([A-Za-z0-9][A-Za-z0-9._-]{0,63})?",
    )
    engine_idle_minutes: float = _row(
        5.0,
        "How long the engine keeps the model in memory when no editor is open; 0 for ever.",
        scope="user",
        high=100_000,
    )


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match.group(1).upper(), name)


ROWS: tuple[Row, ...] = tuple(
    dataclasses.replace(field.metadata["row"], field=field.name, name=_camel(field.name), default=field.default)
    for field in dataclasses.fields(Settings)
)
NAMES = tuple(row.name for row in ROWS)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A value that cannot be used: `message` is for the user, `key` is the same for the same value from elsewhere."""

    key: str
    message: str


def section(body: Any) -> Any:
    """Our part of what a client sends, with or without the name of the section around it."""
    return body["midfill"] if isinstance(body, Mapping) and isinstance(body.get("midfill"), dict) else body


def read(body: Any, base: Settings, *, source: str = "", strict: bool = False) -> tuple[Settings, tuple[Problem, ...]]:
    """`base` changed by what `source` says, and a problem for every value that had to be left out.

    Unknown names are ignored, since a client sends its own settings along, unless `strict`; null means unset.
    """
    body = section(body)
    where = f" in {source}" if source else ""
    if body is None or body == []:
        return base, ()
    if not isinstance(body, Mapping):
        shown = reprlib.repr(body)
        return base, (Problem(key=shown, message=f"the settings{where} must be an object, not {shown}"),)
    values: dict[str, Any] = {}
    problems = []
    for row in ROWS:
        value = body.get(row.name)
        if value is None or value == row.default == "":
            continue
        checked, expected = _check(row, value)
        if expected:
            shown = reprlib.repr(value)
            left = reprlib.repr(getattr(base, row.field))
            message = f"setting {row.name}{where} must be {expected}, not {shown}; using {left}"
            problems.append(Problem(key=f"{row.name} {shown}", message=message))
        else:
            values[row.field] = checked
    for name in [name for name in body if name not in NAMES] if strict else ():
        near = difflib.get_close_matches(str(name), NAMES, 1)
        hint = f"is {near[0]} meant?" if near else "`midfill settings` lists them"
        problems.append(Problem(key=str(name), message=f"there is no setting {reprlib.repr(name)}{where}: {hint}"))
    return dataclasses.replace(base, **values), tuple(problems)


def _check(row: Row, value: Any) -> tuple[Any, str]:
    """The value in the type of its default, or what it must be and is not."""
    if isinstance(row.default, bool):
        return (value, "") if isinstance(value, bool) else (None, "true or false")
    if isinstance(row.default, str):
        fits = isinstance(value, str) and re.fullmatch(row.pattern, value)
        return (value, "") if fits else (None, "a name")
    if isinstance(row.default, tuple):
        known = row.choices
        if isinstance(value, list) and all(isinstance(item, str) and item in (known or (item,)) for item in value):
            return tuple(value), ""
        return None, f"a list of {', '.join(known) if known else 'texts'}"
    whole = isinstance(row.default, int)
    number = isinstance(value, int | float) and not isinstance(value, bool) and row.low <= value <= row.high
    if number and (not whole or value == int(value)):
        return (int(value) if whole else float(value)), ""
    return None, f"a {'whole ' if whole else ''}number from {row.low:g} to {row.high:g}"
