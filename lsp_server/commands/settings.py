"""`midfill settings`: what there is to set, what config.toml sets of it, and the same as a table or schema for others.

Knows the table of settings; no editor and no server.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from typing import Any

from rich.table import Table

from lsp_server.commands import render
from lsp_server.config_file import ConfigFile, config_path
from lsp_server.settings import ROWS, Row, Settings, read
from lsp_server.usage import Parser

START, END = "<!-- settings -->", "<!-- /settings -->"
"""The table of README.md stands between these lines."""

SCOPES = {"file": "language-overridable", "window": "window", "user": "machine"}
"""Ours -> those of VS Code. A workspace must not choose the model: that may be one on another machine."""

EPILOG = """\
Settings come from config.toml in your configuration folder (the weakest), from the editor's initialization options and
from its configuration (section midfill). All use the same names. They take effect at once.
"""


def main(argv: Sequence[str]) -> int:
    """Print; 1 if config.toml holds something that cannot be used. Raises UsageError."""
    arguments = _parser().parse_args(argv)
    if arguments.form:
        print(FORMS[arguments.form](), end="")
        return 0
    out, err = render.consoles()
    file = ConfigFile()
    file.reread()
    settings, found = read(file.body, Settings(), source=str(file.path), strict=True)
    problems = [message for message in (file.problem, *(problem.message for problem in found)) if message]
    if arguments.json:
        values = {row.name: getattr(settings, row.field) for row in ROWS}
        print(json.dumps({"file": str(file.path), "settings": values, "problems": problems}))
        return int(bool(problems))
    table = Table("setting", "value", "meaning", box=None, pad_edge=False)
    for row in ROWS:
        value = getattr(settings, row.field)
        table.add_row(row.name, _toml(value), row.doc, style="bold" if value != row.default else "")
    out.print(table)
    missing = "" if file.path.exists() else ", which does not exist: these are the defaults"
    out.print(f"\nread from {file.path}{missing}")
    for problem in problems:
        err.print(problem, style="yellow")
    return int(bool(problems))


def markdown() -> str:
    """The table of README.md."""
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    lines += [f"| `{row.name}` | {_shown(row.default)} | {row.doc}{_limits(row)} |" for row in ROWS]
    return "\n".join(lines) + "\n"


def json_schema() -> str:
    """For config.toml and for editors that check what they are told."""
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Settings of midfill",
        "type": "object",
        "additionalProperties": False,
        "properties": {row.name: _property(row) for row in ROWS},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def vscode() -> str:
    """What stands under `contributes.configuration.properties` in the manifest of an extension."""
    rows = {}
    for row in ROWS:
        body = _property(row)
        rows[f"midfill.{row.name}"] = {
            "markdownDescription" if name == "description" else name: value for name, value in body.items()
        } | {"scope": SCOPES[row.scope]}
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


FORMS: dict[str, Callable[[], str]] = {"markdown": markdown, "json-schema": json_schema, "vscode": vscode}


def _property(row: Row) -> dict[str, Any]:
    body: dict[str, Any] = {"type": _kind(row.default), "default": row.default, "description": row.doc}
    if isinstance(row.default, tuple):
        items = {"type": "string"} | ({"enum": list(row.choices)} if row.choices else {})
        return body | {"default": list(row.default), "items": items}
    if row.pattern:
        body["pattern"] = f"^{row.pattern}$"
    return body | ({"minimum": row.low, "maximum": row.high} if row.high else {})


def _kind(default: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", tuple: "array"}
    return kinds[type(default)]


def _limits(row: Row) -> str:
    if row.choices:
        return f" One or more of {', '.join(f'`{choice}`' for choice in row.choices)}."
    return f" From {row.low:,} to {row.high:,}." if row.high else ""


def _shown(default: Any) -> str:
    """A default in a table."""
    if isinstance(default, tuple):
        return ", ".join(f"`{item}`" for item in default) or "none"
    return f"`{_toml(default)}`" if default != "" else "empty"


def _toml(value: Any) -> str:
    """As it is written in config.toml, which for these types is as in JSON."""
    return json.dumps(value, ensure_ascii=False)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill settings",
        description=f"What there is to set. Your settings for all editors stand in {config_path()}.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="the values and problems of config.toml as one JSON object")
    for form, function in FORMS.items():
        what = str(function.__doc__).splitlines()[0]
        forms.add_argument(f"--{form}", dest="form", action="store_const", const=form, help=what)
    return parser
