"""The document store against an oracle that works on the units of the encoding, naively and from scratch each time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.documents import Document, Encoding, split_lines, units, without_surrogates

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
WIDTHS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}

dense = st.text(st.sampled_from("ab \r\n\x0b\x0c\x1c\x85\u2028\u2029é\u20ac🤦🏽"), max_size=12)
with_halves = st.text(st.sampled_from("a\r\n🤦\ud83e\udd26"), max_size=8)
position = st.tuples(st.integers(0, 8), st.integers(0, 9))
edit = st.tuples(position, position, dense)


class Oracle:
    """A text as a list of units (bytes objects of one unit each), edited by absolute unit offsets."""

    def __init__(self, text: str, encoding: Encoding) -> None:
        self.encoding = encoding
        self.units = self._units(text)

    def _units(self, text: str) -> list[bytes]:
        data, width = text.encode(CODECS[self.encoding], "surrogatepass"), WIDTHS[self.encoding]
        return [data[at : at + width] for at in range(0, len(data), width)]

    def text(self) -> str:
        return b"".join(self.units).decode(CODECS[self.encoding], "surrogatepass")

    def offset(self, line: int, column: int) -> int:
        starts, ends = [0], []
        cr, lf = (self._units(char)[0] for char in "\r\n")
        at = 0
        while at < len(self.units):
            if self.units[at] in (cr, lf):
                ends.append(at)
                at += self.units[at] == cr and self.units[at + 1 : at + 2] == [lf]
                starts.append(at + 1)
            at += 1
        ends.append(len(self.units))
        if line >= len(starts):
            return len(self.units)
        found = min(starts[line] + column, ends[line])
        while self.encoding == "utf-8" and found < len(self.units) and self.units[found][0] & 0xC0 == 0x80:
            found -= 1
        return found

    def apply(self, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        first, last = self.offset(*start), self.offset(*end)
        self.units[first : max(first, last)] = self._units(text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=dense, edits=st.lists(edit, max_size=8))
def test_edits_give_the_text_that_the_client_has(encoding: Encoding, text: str, edits: list[Any]) -> None:
    document = Document(uri="u").with_text(text, 0)
    oracle = Oracle(text, encoding)
    for version, (start, end, new) in enumerate(edits, start=1):
        document = document.with_edit(start, end, new, encoding, version)
        oracle.apply(start, end, new)
        assert document.text == oracle.text()
        assert document.lines == split_lines(document.text)
        assert document.version == version


@given(text=with_halves, edits=st.lists(st.tuples(position, position, with_halves), max_size=6))
def test_halves_of_a_pair_come_and_go_as_in_a_utf16_client(text: str, edits: list[Any]) -> None:
    oracle = Oracle(text, "utf-16")
    document = Document(uri="u").with_text(oracle.text(), 0)
    for start, end, new in edits:
        document = document.with_edit(start, end, new, "utf-16", 1)
        oracle.apply(start, end, new)
        assert document.text == oracle.text()


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=dense, at=position)
def test_positions_are_clamped_as_the_oracle_does(encoding: Encoding, text: str, at: tuple[int, int]) -> None:
    document, oracle = Document(uri="u").with_text(text, 0), Oracle(text, encoding)
    before = text[: document.offset_at(at, encoding)]
    unit = oracle.offset(*at)
    # UTF-16 can point into a pair; the offset is then the one before the character.
    assert 0 <= unit - len(oracle._units(before)) <= (1 if encoding == "utf-16" else 0)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=dense, data=st.data())
def test_offset_to_position_and_back(encoding: Encoding, text: str, data: st.DataObject) -> None:
    document = Document(uri="u").with_text(text, 0)
    offset = data.draw(st.integers(0, len(text)))
    if text[offset - 1 : offset + 1] == "\r\n" and offset:
        return  # between the two there is no position
    assert document.offset_at(document.position_at(offset, encoding), encoding) == offset


@given(st.text(st.sampled_from("a\r\n\x0c\u2028"), max_size=20))
def test_lines_join_to_the_text_and_end_as_lsp_says(text: str) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text
    assert not lines[-1].endswith(("\r", "\n"))
    assert all(line.rstrip("\r\n") + end == line for line in lines[:-1] if (end := line[len(line.rstrip("\r\n")) :]))
    assert len(lines) == text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def test_a_version_keeps_its_text_when_the_next_one_is_made() -> None:
    first = Document(uri="u").with_text("one\n", 1)
    second = first.with_edit((0, 0), (0, 3), "two", "utf-16", 2)
    assert (first.text, second.text) == ("one\n", "two\n")


def test_an_end_before_the_start_deletes_nothing() -> None:
    assert Document(uri="u").with_text("abcd", 1).with_edit((0, 3), (0, 1), "X", "utf-8", 2).text == "abcXd"


def test_surrogates_are_replaced_one_for_one() -> None:
    assert without_surrogates("a\ud800🤦") == "a\ufffd🤦"
    assert units("🤦a", "utf-16") == 3
