"""Where context comes from: other files, edits, earlier cells, lines that continue; and that typing leaves it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import FillRequest
from lsp_server.context import SOURCES, Around, Budget, Chooser, EditedLines, OpenFile, build_request, parse, sources_of
from lsp_server.context.chunks import LINES, chunks_of, resembling, words
from lsp_server.context.continuations import MAX_CHARS, continuations
from lsp_server.documents import Document

CURSOR = "│"
ALL = Budget(sources=frozenset(SOURCES))


def only(*names: str, **sizes: Any) -> Budget:
    return Budget(sources=frozenset(names), **sizes)


def document(text: str, name: str = "other.py") -> Document:
    return Document(uri=f"file:///{name}", language="python").with_text(text, 1)


def file(text: str, name: str = "other.py") -> OpenFile:
    return OpenFile(path=name, document=document(text, name))


def request(marked: str, **options: Any) -> FillRequest:
    prefix, suffix = marked.split(CURSOR)
    given: dict[str, Any] = {"language": "python", "budget": ALL} | options
    made = build_request(parse(prefix + suffix, "python"), len(prefix), **given)
    assert isinstance(made, FillRequest)
    return made


def sent(marked: str, kind: str, **options: Any) -> list[str]:
    return [item.text for item in request(marked, **options).context if item.kind == kind]


# --- chunks of other files

PARSER = "def parse_header(stream):\n    magic = stream.read(4)\n    return Header(magic)\n"
DRAWING = "def draw_circle(canvas, radius):\n    canvas.arc(radius)\n"
FILLER = "".join(f"unrelated_{number} = {number}\n" for number in range(3 * LINES))


def test_the_chunk_that_resembles_the_neighbourhood_is_sent() -> None:
    around = Around(files=(file(DRAWING + FILLER, "draw.py"), file(FILLER + PARSER, "parse.py")))
    marked = "def parse_body(stream):\n    header = parse_header(stream)\n    magic = │\n"
    (text, *_) = sent(marked, "file", around=around, budget=only("files", files_chars=400))
    assert "def parse_header" in text
    assert all("draw_circle" not in text for text in sent(marked, "file", around=around))


def test_what_the_window_shows_already_is_not_sent() -> None:
    marked = PARSER + "    magic = │\n"
    assert sent(marked, "file", around=Around(files=(file(PARSER),))) == []


def test_files_come_by_path_whichever_was_looked_at_last() -> None:
    pair = (file(PARSER, "b.py"), file(PARSER.replace("4", "5"), "a.py"))
    marked = "def parse_body(stream):\n    header = parse_header(stream)\n    │\n"
    orders = [request(marked, around=Around(files=files)).context for files in (pair, pair[::-1])]
    assert orders[0] == orders[1]
    assert [item.path for item in orders[0] if item.kind == "file"] == ["a.py", "b.py"]


@given(text=st.text(st.sampled_from("abc_ \n"), max_size=2_000), chars=st.integers(0, 500))
def test_chunks_stay_within_their_budget(text: str, chars: int) -> None:
    chunks = chunks_of(document(text))
    wanted = words(text[:200])
    chosen = resembling(wanted, [chunks, chunks], chars)
    assert sum(len(chunk.text) for _, chunk in chosen) <= chars
    assert [(number, chunk.first) for number, chunk in chosen] == sorted((n, chunk.first) for n, chunk in chosen)


def test_without_anything_in_common_nothing_is_sent() -> None:
    assert sent("alpha = beta(│)\n", "file", around=Around(files=(file(DRAWING),))) == []


# --- edits


def test_edits_elsewhere_are_sent_the_newest_last_and_visible_ones_are_not() -> None:
    other = document("first\nsecond\nthird\nvisible = 1\n")
    edits = tuple(EditedLines(document=other, path="other.py", first=line, last=line) for line in (2, 0, 3))
    assert sent("visible = 1\nx = │\n", "edit", around=Around(edits=edits)) == ["first", "third"]
    assert sent("visible = 1\nx = │\n", "edit", around=Around(edits=edits), budget=only("edits", edits_chars=7)) == [
        "third"
    ]


# --- earlier cells


def test_earlier_cells_are_cut_at_a_line() -> None:
    around = Around(lead="import a\nimport b\n\n")
    assert ALL.lead(around) == around.lead
    assert replace(ALL, cells_chars=12).lead(around) == "import b\n\n"
    assert only("files").lead(around) == ""


# --- lines that continue


def guesses(marked: str, *others: str, count: int = 3) -> tuple[str, ...]:
    prefix, suffix = marked.split(CURSOR)
    return tuple(continuations(prefix + suffix, len(prefix), others, count))


@pytest.mark.parametrize(
    "marked, others, expected",
    [
        ("    self.width = width\n    self.│\n", (), ("width = width",)),
        ("return│\n", ("\treturn None\n",), (" None",)),
        ("return │)\n", ("return f(x)\n", "return y\n"), ("f(x",)),
        ("re│\n", ("return None\n",), ()),  # too little to go by
        ("with lock:\n    │\n", ("with lock:\n        self.count += 1\n",), ("self.count += 1",)),
        ("    with lock:\n│\n", ("with lock:\n    self.count += 1\n",), ("        self.count += 1",)),
        ("        return size\n│\n", ("    return size\nnext_one()\n",), ("    next_one()",)),
        ("import os│\n", ("import os\n",), ()),  # nothing is left of it
        ("return│\nreturn x\n", (), ()),  # stands below already
        ("print(│\n", ("print(a)\nprint(b)\nprint(b)\nprint(c)\nprint(d)\n",), ("b)", "a)", "c)")),
        ("x = 1\nprint(│\n", ("print(a)\nx = 1\nprint(z)\nprint(a)\n",), ("z)", "a)")),
        ("print(│\r\n", ("print(a)\r\n",), ("a)",)),
        ("│", ("x = 1\n",), ()),
        ("name = │", ("name = " + "y" * (MAX_CHARS + 1),), ()),
        ("call(x)│", ("call(x) call(y)\n",), (" call(y)",)),
    ],
)
def test_lines_that_continue(marked: str, others: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert guesses(marked, *others) == expected


def likely(marked: str, *others: str) -> list[float]:
    prefix, suffix = marked.split(CURSOR)
    return [found.likely for found in continuations(prefix + suffix, len(prefix), others, 3).values()]


def test_how_likely_a_guess_is_follows_from_how_it_was_found() -> None:
    (once,) = likely("print(│\n", "print(a)\n")
    (twice,) = likely("print(│\n", "print(a)\nprint(a)\n")
    (longer,) = likely("self.total = sum(│\n", "self.total = sum(a)\n")
    (below,) = likely("x = 1\nprint(│\n", "x = 1\nprint(a)\n")
    assert once < min(twice, longer, below)
    first, second = likely("print(│\n", "print(a)\nprint(a)\nprint(b)\n")
    assert second < first < twice
    assert second < 0.2 and likely("    return self.value│\n", "    return self.value.copy()\n" * 9)[0] > 0.8


@given(text=st.text(st.sampled_from("ab (\n"), max_size=200), data=st.data())
def test_a_guess_makes_a_line_that_stands_somewhere(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    found = continuations(text, offset, (), 3)
    assert all(0 < guess.likely < 1 for guess in found.values())
    lines = {line.strip() for line in text.split("\n")}
    start = text.rfind("\n", 0, offset) + 1
    rest = text[offset:].partition("\n")[0].rstrip()
    assert len(set(found)) == len(found) <= 3
    for guess in found:
        assert "\n" not in guess
        assert (text[start:offset].lstrip() + guess + rest).strip() in lines


def test_lines_of_this_and_open_files_reach_the_engine_and_can_be_switched_off() -> None:
    around = Around(files=(file("total = sum(values)\n"),))
    found = request("total = │\n", around=around)
    assert found.starts == ("sum(values)",) and len(found.likely) == 1
    assert request("total = │\n", around=around, budget=only("files")).starts == ()


# --- typing leaves the context as it is


def typing(line: str, marked: str, around: Around, chooser: Chooser) -> list[FillRequest]:
    """A request after every character of `line`, typed at the mark into one parsed document."""
    prefix, suffix = marked.split(CURSOR)
    parsed = parse(prefix + suffix, "python")
    requests = []
    for end in range(len(line) + 1):
        parsed.update(prefix + line[:end] + suffix)
        made = build_request(
            parsed, len(prefix) + end, language="python", budget=ALL, around=around, chooser=chooser, explicit=True
        )
        assert isinstance(made, FillRequest)
        requests.append(made)
    return requests


READER = """\
import os
import sys

class Reader:
    def open(self, path):
        return parse_header(path)

    │

    def close(self):
        pass
"""


@pytest.mark.parametrize("line", ["def read(self, stream):", "x = [1, (2, '''three", "import json", "class A: pass"])
def test_a_run_of_typed_characters_keeps_the_context_identical(line: str) -> None:
    around = Around(files=(file(FILLER + PARSER, "b.py"), file(PARSER, "a.py")))
    contexts = {made.context for made in typing(line, READER, around, Chooser())}
    assert len(contexts) == 1
    assert {item.kind for item in contexts.pop()} == {"import", "signature", "file"}


def test_a_changed_file_or_another_line_makes_another_choice() -> None:
    chooser = Chooser()
    marked = "def parse_body(stream):\n    header = parse_header(stream)\n    │\n"
    (before,) = typing("", marked, Around(files=(file(PARSER),)), chooser)
    (after,) = typing("", marked, Around(files=(file(PARSER.replace("4", "8")),)), chooser)
    assert "read(4)" in before.context[-1].text
    assert "read(8)" in after.context[-1].text
    (gone,) = typing("", marked, Around(), chooser)
    assert [item for item in gone.context if item.kind == "file"] == []


def test_every_document_is_cut_into_chunks_once_and_few_for_one_request() -> None:
    chooser = Chooser()
    marked = "def parse_body(stream):\n    header = parse_header(stream)\n    │\n"
    files = tuple(file(PARSER.replace("4", str(number)), f"{number}.py") for number in range(5))
    counts = []
    for line in range(4):
        (made,) = typing("", "\n" * line + marked, Around(files=files), chooser)
        counts.append(len([item for item in made.context if item.kind == "file"]))
    assert counts == [2, 4, 5, 5]


# --- which sources


def test_sources_of_a_setting() -> None:
    assert sources_of(["auto"], "another-model") == frozenset(SOURCES)
    assert sources_of(["auto"], "embedded") < frozenset(SOURCES)
    assert sources_of(["files"], "embedded") == {"files"}
    assert sources_of([], "embedded") == frozenset()
