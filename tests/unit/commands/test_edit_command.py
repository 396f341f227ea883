"""`midfill edit` with the scripted engine: what is written, what is only shown, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lsp_server.__main__ import main as midfill

TEXT = b"\xef\xbb\xbfdef total(items):\r\n    n = 0\r\n    return n\r\n"
EDITED = TEXT.replace(b"n = 0", b"n = sum(items)")

Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Writes a script and a file to edit; gives the value of --engine."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(TEXT)

    def write(*entries: dict[str, Any]) -> str:
        (tmp_path / "script.json").write_text(json.dumps(entries))
        return f"scripted:{tmp_path / 'script.json'}"

    return write


def test_the_lines_are_written_anew_and_the_difference_is_shown(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = script({"fill": "n = sum(items)\nreturn n"})
    assert midfill(["edit", "a.py:2-3", "sum them up", "--engine", engine]) == 0
    assert Path("a.py").read_bytes() == EDITED
    assert "-    n = 0\n+    n = sum(items)\n     return n\n" in capsys.readouterr().out


def test_a_dry_run_only_shows(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"fill": "n = sum(items)\nreturn n"})
    assert midfill(["edit", "a.py:2-3", "sum them up", "--dry-run", "--engine", engine]) == 0
    assert Path("a.py").read_bytes() == TEXT
    assert "+    n = sum(items)" in capsys.readouterr().out


def test_json_has_the_text_and_the_changes(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"fill": "    n = sum(items)"})
    assert midfill(["edit", "a.py:2", "--fill", "--json", "--dry-run", "--engine", engine]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["text"] == "    n = sum(items)\r\n"
    assert (answer["model"], answer["written"]) == ("scripted", False)
    assert answer["changes"] == [{"start": 27, "end": 28, "text": "sum(items)"}]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["a.py:2"], 2, "needs an instruction, or --fill"),
        (["a.py:2", "x", "--fill"], 2, "needs an instruction, or --fill"),
        (["a.py", "x"], 2, "not FILE:FIRST-LAST"),
        (["-:1-2", "x"], 2, "midfill edit --help"),
        (["a.py:3-2", "x"], 2, "wrong order"),
        (["a.py:2-9", "x"], 2, "no line 9"),
        (["b.py:1", "x"], 2, "no file b.py"),
        ([".env:1", "x"], 1, "left alone"),
        (["a.py:2", " "], 1, "the instruction is empty"),
        (["a.py:2", "x"], 1, "it takes no instructions"),
    ],
)
def test_what_is_refused(
    script: Script, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, says: str
) -> None:
    Path(".env").write_text("TOKEN=1\n")
    engine = script({"error": {"code": "unsupported", "message": "it takes no instructions"}})
    assert midfill(["edit", *arguments, "--engine", engine]) == code
    err = capsys.readouterr().err.strip()
    assert says in err
    assert "\n" not in err
    assert Path("a.py").read_bytes() == TEXT
