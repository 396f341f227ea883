"""FILE:LINE:COLUMN: where it points, and what is said when it points nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from lsp_server.commands.source import offset_of, place_at
from lsp_server.usage import UsageError


@pytest.mark.parametrize(
    ("content", "line", "column", "before"),
    [
        ("a = 1\nb = 2\n", 2, 3, "a = 1\nb "),
        ("a = 1\nb = 2\n", 2, 6, "a = 1\nb = 2"),
        ("a = 1\nb = 2\n", 3, 1, "a = 1\nb = 2\n"),
        ("a\r\nbc\r\n", 2, 2, "a\r\nb"),
        ("a\r\nbc\r\n", 1, 2, "a"),
        ("x = '𝔸é'\n", 1, 7, "x = '𝔸"),
        ("one\x0cstill one\u2028still one\ntwo", 2, 1, "one\x0cstill one\u2028still one\n"),
        ("", 1, 1, ""),
        ("\tx", 1, 2, "\t"),
    ],
)
def test_columns_count_code_points_and_lines_end_as_in_lsp(
    tmp_path: Path, content: str, line: int, column: int, before: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(content.encode())
    place = place_at(f"{path}:{line}:{column}")
    assert place.text == content
    assert place.text[: place.offset] == before
    assert place.language == "python"


def test_byte_order_mark_is_no_column(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_bytes(b"\xef\xbb\xbflet a;")
    place = place_at(f"{tmp_path / 'a.ts'}:1:4")
    assert (place.text[: place.offset], place.language) == ("let", "typescript")


def test_file_names_may_hold_colons(tmp_path: Path) -> None:
    (tmp_path / "a:1:2").write_text("xyz")
    assert place_at(f"{tmp_path}/a:1:2:1:3").offset == 2


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("a.py", "not FILE:LINE:COLUMN"),
        ("a.py:1", "not FILE:LINE:COLUMN"),
        ("a.py:x:1", "not FILE:LINE:COLUMN"),
        ("a.py:-1:1", "not FILE:LINE:COLUMN"),
        ("none.py:1:1", "there is no file none.py"),
        (".:1:1", "is a folder"),
        ("a.py:0:1", "no line 0"),
        ("a.py:4:1", "no line 4"),
        ("a.py:1:7", "no column 7"),
        ("a.py:1:0", "no column 0"),
        ("pipe:1:1", "not an ordinary file"),
        ("binary:1:1", "binary"),
        ("latin:1:1", "not UTF-8: byte 0xe9 in line 2"),
        ("a\0b:1:1", "cannot read"),
        ("\udcff:1:1", "there is no file"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str, said: str) -> None:
    import os

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("a = 1\nb\n")
    (tmp_path / "binary").write_bytes(b"\x7fELF\0\0")
    (tmp_path / "latin").write_bytes(b"a\ncaf\xe9")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError) as raised:
        place_at(argument)
    assert said in raised.value.message
    assert "\n" not in raised.value.message + raised.value.hint


def test_the_hint_names_what_there_is() -> None:
    with pytest.raises(UsageError) as raised:
        offset_of("a\nb", 3, 1, "x")
    assert raised.value.hint == "its lines are 1 to 2"
    with pytest.raises(UsageError) as raised:
        offset_of("a\nbcd", 2, 9, "x")
    assert raised.value.hint == "the cursor can stand at 1 to 4"
