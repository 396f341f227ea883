"""The filters, in text: a document with a cursor, what the model wrote, and what stands there once it is accepted.

The examples stand in filter_tables*.py, by filter, and in insertion_*.py, by the kind of fault.
"""

from __future__ import annotations

import re
from importlib import resources

import filter_tables
import filter_tables_more
import insertion_brackets
import insertion_kept
import insertion_layout
import insertion_model_text
import insertion_nested
import pytest
from filter_tables import Row
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import Candidate, FillRequest
from lsp_server import filters

CURSOR = "│"
TABLES = filter_tables.TABLES | filter_tables_more.TABLES
KINDS = {
    name.lower(): rows
    for module in (insertion_brackets, insertion_kept, insertion_layout, insertion_model_text, insertion_nested)
    for name, rows in vars(module).items()
    if name.isupper()
}


def check(language: str, before: str, fill: str, expect: str | None, *, replace_before: int = 0) -> None:
    prefix, suffix = before.split(CURSOR)
    request = FillRequest(id="", language=language, prefix=prefix, suffix=suffix)
    made = filters.insertion(Candidate(text=fill, replace_before=replace_before), request)
    if isinstance(made, filters.Rejected):
        assert expect is None, made.reason
        return
    after = prefix[: len(prefix) - made.before] + made.text + CURSOR + suffix[made.after :]
    assert after.replace(CURSOR, "") == made.applied(prefix, suffix)
    assert (after if expect and CURSOR in expect else after.replace(CURSOR, "")) == expect


def test_every_filter_has_a_table() -> None:
    assert {filter_.__name__ for filter_ in filters.FILTERS} == TABLES.keys() - {"taken_over"}


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{name}-{n}") for name in TABLES for n, row in enumerate(TABLES[name])]
)
def test_what_a_filter_does(row: Row) -> None:
    check(*row)


@pytest.mark.parametrize(
    "row", [pytest.param(row, id=f"{name}-{n}") for name in KINDS for n, row in enumerate(KINDS[name])]
)
def test_inputs_of_the_same_kinds_as_the_reported_faults(row: Row) -> None:
    check(*row)


def test_the_engine_may_rewrite_white_space_before_the_cursor() -> None:
    check("python", "if a:\n    x\n    │\n", "else:", "if a:\n    x\nelse:│\n", replace_before=4)
    check("python", "def f():\n    if a:\n        x\n        │\n", "    return 1",
          "def f():\n    if a:\n        x\n    return 1│\n", replace_before=8)  # fmt: skip
    check("python", "x =  │\n", " 1", "x = 1│\n", replace_before=2)
    check("python", "x = │\n", "1", "x =1│\n", replace_before=99)


@pytest.mark.parametrize(
    ("file", "language"), [("inventory.py", "python"), ("cart.js", "javascript"), ("router.ts", "typescript")]
)
def test_what_the_author_wrote_survives(file: str, language: str) -> None:
    """Taken out of a real file and offered again, from the start or the middle of each line to the end of a line."""
    source = resources.files("lsp_server.commands") / "demo_files" / f"{file}.txt"
    text = source.read_text(encoding="utf-8").translate({ord("⟦"): None, ord("⟧"): None})
    lines = list(re.finditer(r"\S.*", text))
    for number, line in enumerate(lines):
        for start in {line.start(), (line.start() + line.end()) // 2} - {at.start() for at in re.finditer(r"\s", text)}:
            for last in lines[number : number + 4]:
                prefix, fill, suffix = text[:start], text[start : last.end()], text[last.end() :]
                check(language, prefix + CURSOR + suffix, fill, text)


code = st.text(st.sampled_from("ab(){}[]\"'#/ \t\n\r,;=<>|`\x0c\u2028🤦é:"), max_size=30)


@given(prefix=code, suffix=code, fill=code, replace_before=st.integers(0, 4), language=st.sampled_from(["python", "c"]))
def test_everything_outside_of_the_range_stays(
    prefix: str, suffix: str, fill: str, replace_before: int, language: str
) -> None:
    request = FillRequest(id="", language=language, prefix=prefix, suffix=suffix)
    made = filters.insertion(Candidate(text=fill, replace_before=replace_before), request)
    if isinstance(made, filters.Rejected):
        assert made.reason
        return
    removed, taken = prefix[len(prefix) - made.before :], suffix[: made.after]
    assert set(removed) <= {" ", "\t"}
    assert not set(taken) & {"\r", "\n"}
    assert made.applied(prefix, suffix) != prefix + suffix
    assert made.text.strip() or removed
    # What is taken over of the rest of the line is written again.
    assert all(char in made.text for char in taken if not char.isspace())
