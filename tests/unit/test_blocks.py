"""What the lines around a cursor (│) say of its own line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion import blocks


def cut(marked: str) -> tuple[str, str]:
    prefix, suffix = marked.split("│")
    return prefix, suffix


@pytest.mark.parametrize(
    ("marked", "language", "wanted"),
    [
        ("for a in b:\n│\n", "python", {"    "}),
        ("for a in b:\n│\n    print(a)\n", "python", {"    "}),
        ("for a in b:\n│\n  print(a)\n", "python", {"  "}),
        ("for a in b:\n│\n        print(a)\n", "python", {"    "}),  # something opens the block between them
        ("def f():\n    a = 1\n│\n    return a\n", "python", {"    ", ""}),  # another function may begin
        ("def f():\n    a = 1\n│\n        return a\n", "python", {"    "}),
        ("def f():\n    if a:\n        b()\n│\n        c()\n", "python", {"        ", "    "}),
        ("def f():\n    if a:\n        b()\n│\n\nx = 1\n", "python", {"        ", "    ", ""}),
        ("def f():\n    if a:\n        b()\n    │\n", "python", {"        ", "    ", ""}),
        ("def f():\n    if a:\n        b()\n  │\n", "python", {"        ", "    ", "  ", ""}),
        ("function f() {\n  a();\n│\n}\n", "javascript", {"  ", ""}),
        ("function f() {\n│\n}\n", "javascript", {"    "}),
        ("class A {\n\tb() {\n\t\tc();\n\t}\n\td() {\n│\n\t}\n}\n", "typescript", {"\t\t"}),
    ],
)
def test_a_line_may_stand_as_deep_as_its_neighbours_allow(marked: str, language: str, wanted: set[str]) -> None:
    assert blocks.indentations(*cut(marked), language) == wanted


@pytest.mark.parametrize(
    ("marked", "language"),
    [
        ("│\nx = 1\n", "python"),
        ("f(\n│\n)\n", "python"),
        ("f(a,\n│\n", "python"),
        ("a = b +\n│\n", "javascript"),
        ("/**\n * What it does.\n│\n */\n", "typescript"),
        ("if a:\n\tb()\n│\n        c()\n", "python"),
        ('def f():\n    """What\n│\n    """\n', "python"),
        ("if a:\n│ # why\n", "python"),
    ],
)
def test_where_the_lines_do_not_tell_nothing_is_forbidden(marked: str, language: str) -> None:
    assert blocks.indentations(*cut(marked), language) is None


@pytest.mark.parametrize(
    ("line", "above", "below", "possible"),
    [
        ("for a in b:", "", "    c()", True),
        ("for a in b:", "", "c()", False),
        ("x = 1", "", "    c()", False),
        ("x = 1", "", "c()", True),
        ("x = f(", "", "    1)", True),
        ("x = f(", "", ")", True),
        ("x = f(", "", "c()", False),
        ("x = [1,", "x = (", "c()", True),
        ("x = 1  # so:", "", "c()", True),
        ('x = ":"', "", "c()", True),
        ('x = """', "", "    c()", True),
        ("x = 1 + \\", "", "    2", True),
        ("    return x", "def f():", "", True),
        ("", "", "    c()", True),
    ],
)
def test_a_line_of_python_opens_a_block_if_one_follows(line: str, above: str, below: str, possible: bool) -> None:
    assert blocks.whole(line, f"{above}\n" if above else "", f"\n{below}\n", "python") is possible


def test_in_other_languages_only_brackets_tell() -> None:
    assert blocks.whole("foo", "", "\n  .bar();\n", "javascript")
    assert blocks.whole("if (a) {", "", "\n  b();\n", "javascript")
    assert not blocks.whole("if (a) {", "", "\nb();\n", "javascript")


text = st.text(alphabet="ab :{}()[],\\\n\t\"'*#/", max_size=60)


@given(text, text, text, st.sampled_from(["python", "javascript", "plaintext"]))
def test_any_text_is_looked_at(prefix: str, line: str, suffix: str, language: str) -> None:
    found = blocks.indentations(prefix, suffix, language)
    assert found is None or (found and all(not blanks.strip() for blanks in found))
    own = prefix[prefix.rfind("\n") + 1 :]
    if found is not None and own and not own.strip():
        assert own in found
    assert blocks.whole(line, prefix, suffix, language) in (True, False)
