"""What of a document reaches the engine."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import FillRequest
from lsp_server.context import Budget, Nothing, build_request, parse, window

CURSOR = "│"
SMALL = Budget(prefix_chars=200, suffix_chars=100, context_chars=300, max_lines=5)


def request(marked: str, **options: Any) -> FillRequest:
    made = made_from(marked, **options)
    assert isinstance(made, FillRequest)
    return made


def made_from(marked: str, **options: Any) -> FillRequest | Nothing:
    prefix, suffix = marked.split(CURSOR)
    given: dict[str, Any] = {"language": "python", "budget": SMALL} | options
    return build_request(parse(prefix + suffix, given["language"]), len(prefix), **given)


def test_the_kind_of_place_decides_the_mode() -> None:
    line, block = request("x = │ + 1\n"), request("def f(a):\n    │\n")
    assert (line.mode, line.max_lines) == ("line", 1)
    assert (block.mode, block.max_lines) == ("block", 5)


def test_nothing_is_asked_where_nothing_makes_sense_but_an_explicit_request_is_made() -> None:
    assert made_from("│") == Nothing(reason="the document is empty")
    assert made_from("│", explicit=True) == Nothing(reason="the document is empty")
    assert made_from("nu│mpy") == Nothing(reason="inside a word")
    assert request("nu│mpy", explicit=True).prefix == "nu"


def test_the_path_is_cut_to_file_and_folder() -> None:
    assert request("x = │", path="a/b/c/d.py").path == "c/d.py"
    assert request("x = │", path="C:\\b\\d.py").path == "b/d.py"
    assert request("x = │").path == ""


FILE = """\
import os
import sys


class Reader:
    size = 3

    def open(self, path):
        pass

    def close(self):
        return │

    def seek(self, to):
        pass
"""


def sent(marked: str, **options: Any) -> list[tuple[str, str]]:
    return [(item.kind, item.text) for item in request(marked, **options).context]


def test_imports_then_enclosing_headers_then_siblings_whatever_the_window_shows() -> None:
    expected = [
        ("import", "import os"),
        ("import", "import sys"),
        ("signature", "class Reader:"),
        ("signature", "    def close(self):"),
        ("signature", "    size = 3"),
        ("signature", "    def open(self, path):"),
        ("signature", "    def seek(self, to):"),
    ]
    assert sent(FILE) == expected
    filler = "        # a line that only takes room\n" * 20
    assert sent(FILE.replace("        return", filler + "        return")) == expected


def test_what_does_not_fit_is_left_out_and_far_siblings_first() -> None:
    def texts(chars: int) -> list[str]:
        budget = Budget(prefix_chars=200, suffix_chars=100, context_chars=chars, max_lines=5)
        return [text.strip() for _, text in sent(FILE, budget=budget)]

    assert texts(0) == []
    assert texts(25) == ["import os", "import sys"]
    assert texts(80) == ["import os", "import sys", "class Reader:", "def close(self):", "def seek(self, to):"]


def test_nothing_is_sent_twice() -> None:
    marked = "import os\nimport os\n\ndef f(a):\n    pass\n\ndef f(a):\n    pass\n\ndef g():\n    return │\n"
    assert sent(marked) == [("import", "import os"), ("signature", "def g():"), ("signature", "def f(a):")]


def test_lone_surrogates_do_not_reach_the_engine() -> None:
    made = request("x = '\ud83d' + │ '\udd26'\n", language="\ud800", path="\ud800.py")
    (made.prefix + made.suffix + made.language + made.path).encode()
    assert len(made.prefix) == len("x = '\ud83d' + ")


@given(text=st.text(st.sampled_from("ab\n"), max_size=900), data=st.data())
def test_the_window_is_a_bounded_part_of_the_text(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    seen = window(text, offset, SMALL)
    assert text[:offset].endswith(seen.prefix)
    assert text[offset:].startswith(seen.suffix)
    assert len(seen.prefix) <= SMALL.prefix_chars
    assert len(seen.suffix) <= SMALL.suffix_chars
    if len(text[:offset]) <= SMALL.prefix_chars:
        assert seen.prefix == text[:offset]


def test_the_windows_start_moves_only_now_and_then() -> None:
    text = "a line\n" * 300
    starts = {offset - len(window(text, offset, SMALL).prefix) for offset in range(1000, 1200)}
    assert len(starts) <= 3
    assert all(text[start - 1] == "\n" for start in starts)


def test_what_an_editor_closes_seldom_moves_the_windows_end() -> None:
    budget, moved = Budget(suffix_chars=800), 0
    for rest in range(70):
        after = "y" * rest + "\n" + "a line\n" * 300
        plain, closed = (window(f"x = f({more}{after}", 6, budget).suffix for more in ("", ")"))
        assert 600 < len(plain) <= 800 >= len(closed)
        moved += closed != ")" + plain
    assert moved <= 1
