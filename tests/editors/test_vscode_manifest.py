"""The manifest of the VS Code extension holds the server's settings as they are."""

from __future__ import annotations

import json
from pathlib import Path

from lsp_server.commands.settings import vscode
from lsp_server.server import COMMANDS

MANIFEST = Path(__file__).parents[2] / "editors" / "vscode" / "package.json"


def test_settings_are_the_servers() -> None:
    generated, own = json.loads(MANIFEST.read_text())["contributes"]["configuration"]
    assert generated["properties"] == json.loads(vscode()), "run `npm run settings` in editors/vscode"
    assert not generated["properties"].keys() & own["properties"].keys()


def test_commands_have_other_names_than_the_servers() -> None:
    """The client registers the server's commands under their own names, and VS Code takes each name once."""
    contributed = {command["command"] for command in json.loads(MANIFEST.read_text())["contributes"]["commands"]}
    assert not contributed & {name for name, _ in COMMANDS}
