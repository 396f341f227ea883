"""Open documents as the client has them, character for character: lines, incremental edits, positions.

Knows the position rules of LSP (lines end at \\r\\n, \\n or \\r only; columns count units of the agreed encoding; a
position past the end of a line or of the document is clamped) and no LSP types. A Document is immutable: whoever
holds one keeps the text of its moment.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Literal

Encoding = Literal["utf-8", "utf-16", "utf-32"]
Position = tuple[int, int]
"""Line from 0, column in units of the encoding."""

BLOCK = 256
"""Lines whose place in the text is looked for together."""

_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\n|\r)|[^\r\n]++")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Document:
    """One version of an open document. `lines` keep their ends; the last one has none and may be empty."""

    uri: str
    language: str = "plaintext"
    version: int | None = None
    lines: tuple[str, ...] = ("",)

    @cached_property
    def text(self) -> str:
        """The whole text; may hold lone surrogates, as the client may."""
        return "".join(self.lines)

    def with_text(self, text: str, version: int | None) -> Document:
        return replace(self, lines=split_lines(text), version=version)

    def with_edit(self, start: Position, end: Position, text: str, encoding: Encoding, version: int | None) -> Document:
        """Replace start..end by `text`. Positions are clamped; an end before the start counts as the start."""
        first, head, _ = self._split(start, encoding)
        last, _, tail = self._split(max(start, end), encoding)
        # A "\r" that ends the line before may become one line end with a "\n" that now comes first.
        if first > 0 and self.lines[first - 1].endswith("\r"):
            first, head = first - 1, self.lines[first - 1] + head
        changed = _pair_surrogates(head + text + tail)
        middle = split_lines(changed)
        if last + 1 < len(self.lines) and middle[-1] == "":
            middle = middle[:-1]
        edited = replace(self, lines=self.lines[:first] + middle + self.lines[last + 1 :], version=version)
        if "text" in self.__dict__:  # Cutting one text in two costs less than joining thousands of lines.
            low, gone = self._start(first), sum(map(len, self.lines[first : last + 1]))
            edited.__dict__["text"] = self.text[:low] + "".join(middle) + self.text[low + gone :]
        return edited

    def offset_at(self, position: Position, encoding: Encoding) -> int:
        """Code points before a position, clamped. Inside a character: before that character."""
        line, head, _ = self._split(position, encoding)
        column = len(head) if self.lines[line].startswith(head) else len(head) - 1
        return self._start(line) + column

    def position_at(self, offset: int, encoding: Encoding) -> Position:
        """The position of a code point offset within the text."""
        block = bisect_right(self._blocks, offset) - 1
        line, start = block * BLOCK, self._blocks[block]
        while line + 1 < len(self.lines) and offset >= start + len(self.lines[line]):
            start += len(self.lines[line])
            line += 1
        return line, units(self.lines[line][: offset - start], encoding)

    def _start(self, line: int) -> int:
        """Where a line starts, in code points."""
        block = line // BLOCK
        return self._blocks[block] + sum(map(len, self.lines[block * BLOCK : line]))

    @cached_property
    def _blocks(self) -> list[int]:
        """Where every BLOCK-th line starts, in code points."""
        lengths = (sum(map(len, self.lines[at - BLOCK : at])) for at in range(BLOCK, len(self.lines), BLOCK))
        return list(accumulate(lengths, initial=0))

    def _split(self, position: Position, encoding: Encoding) -> tuple[int, str, str]:
        """Clamp a position: the line's number, what stands before it on the line, what stands after, end included."""
        line, column = max(position[0], 0), max(position[1], 0)
        if line >= len(self.lines):
            return len(self.lines) - 1, self.lines[-1], ""
        content = self.lines[line].rstrip("\r\n")
        head, tail = _split_at(content, column, encoding)
        return line, head, tail + self.lines[line][len(content) :]


def split_lines(text: str) -> tuple[str, ...]:
    """Lines with their ends, split at \\r\\n, \\n and \\r only. The last has no end: "a\\n" is two lines."""
    lines = _LINE.findall(text)
    if not lines or lines[-1].endswith(("\n", "\r")):
        lines.append("")
    return tuple(lines)


def units(text: str, encoding: Encoding) -> int:
    """How many units of `encoding` a text without line ends has."""
    if encoding == "utf-32" or text.isascii():
        return len(text)
    if encoding == "utf-8":
        return len(text.encode("utf-8", "surrogatepass"))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def without_surrogates(text: str) -> str:
    """The same text in as many code points, with U+FFFD for what cannot be encoded."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _split_at(line: str, column: int, encoding: Encoding) -> tuple[str, str]:
    """Cut a line after `column` units, or at its end. UTF-16 may cut a pair in two, as it does in the client."""
    if encoding == "utf-32" or line.isascii():
        return line[:column], line[column:]
    if encoding == "utf-16":
        data = line.encode("utf-16-le", "surrogatepass")
        return tuple(part.decode("utf-16-le", "surrogatepass") for part in (data[: 2 * column], data[2 * column :]))  # type: ignore[return-value]
    data = line.encode("utf-8", "surrogatepass")
    while 0 < column < len(data) and data[column] & 0xC0 == 0x80:
        column -= 1
    return data[:column].decode("utf-8", "surrogatepass"), data[column:].decode("utf-8", "surrogatepass")


def _pair_surrogates(text: str) -> str:
    """Make one character of two halves that an edit has brought together."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
