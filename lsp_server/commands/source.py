"""FILE:LINE:COLUMN -> a text and an offset in it, or one sentence that says what is wrong with it.

Knows files and positions; nothing of models and requests.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from grammars.languages import language_for
from lsp_server.documents import split_lines, without_surrogates
from lsp_server.usage import UsageError

STDIN = "-"
EXAMPLE = "for example app.py:12:9, both counted from 1"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A cursor in a text: `offset` in code points. `path` is "" for standard input."""

    text: str
    offset: int
    path: str
    language: str


def place_at(argument: str, language: str = "") -> Place:
    """The place that "FILE:LINE:COLUMN" names. FILE may hold colons and may be "-". Raises UsageError."""
    found = re.fullmatch(r"(.+):(\d{1,9}):(\d{1,9})", argument, re.ASCII | re.DOTALL)
    if not found:
        raise UsageError(f"not FILE:LINE:COLUMN: {without_surrogates(argument)}", EXAMPLE)
    name = found[1]
    shown = "standard input" if name == STDIN else without_surrogates(name)
    text = _decode(_read(name, shown), shown)
    path = "" if name == STDIN else str(Path(name).absolute())
    offset = offset_of(text, int(found[2]), int(found[3]), shown)
    return Place(text=text, offset=offset, path=path, language=language or language_of(path))


def offset_of(text: str, line: int, column: int, shown: str) -> int:
    """The offset of a position, both counted from 1; a column after the line's last character is the line's end."""
    lines = split_lines(text)
    if not 1 <= line <= len(lines):
        raise UsageError(f"{shown} has no line {line}", f"its lines are 1 to {len(lines)}")
    length = len(lines[line - 1].rstrip("\r\n"))
    if not 1 <= column <= length + 1:
        raise UsageError(f"line {line} of {shown} has no column {column}", f"the cursor can stand at 1 to {length + 1}")
    return sum(map(len, lines[: line - 1])) + column - 1


def language_of(path: str) -> str:
    """The LSP language id that fits a file's name."""
    ids = language_for("", path).language_ids
    return ids[0] if ids else "plaintext"


def _read(name: str, shown: str) -> bytes:
    if name == STDIN:
        return sys.stdin.buffer.read()
    path = Path(name)
    try:
        if path.is_dir():
            raise UsageError(f"{shown} is a folder", "name a file in it")
        if path.exists() and not path.is_file():
            raise UsageError(f"{shown} is not an ordinary file", f"pipe it in: midfill complete {STDIN}:LINE:COLUMN")
        return path.read_bytes()
    except FileNotFoundError:
        raise UsageError(f"there is no file {shown}", _looked_from()) from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {shown}: {getattr(error, 'strerror', None) or error}") from None


def _looked_from() -> str:
    try:
        return f"looked for it from {Path.cwd()}"
    except FileNotFoundError:
        return "the working directory has been deleted: change into another one"


def _decode(data: bytes, shown: str) -> str:
    if b"\0" in data:
        raise UsageError(f"{shown} is a binary file", "name a text file in UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown} is not UTF-8: byte 0x{data[error.start]:02x} in line {line}", "convert it") from None
