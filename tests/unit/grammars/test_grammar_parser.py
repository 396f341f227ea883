"""Incremental parsing, the last good tree, errors, and the limits."""

import random

import pytest
from grammar_cursor import verified

from grammars import parser, queries
from grammars.languages import language_for
from grammars.parser import ParsedDocument, shadow

PYTHON = language_for("python")
WHOLE = "import os\n\n" + "".join(f"def f{i}(a):\n    return a + {i}\n\n\n" for i in range(50))


def test_the_shadow() -> None:
    assert shadow("a = 'é名🤦\ud800'\n") == b"a = 'xx\x01\x01'\n"
    assert shadow("a\0\u2028b\u00a0\ufeff“") == b"a\x01 b \x0c\x01"
    assert shadow("a\rb\r\nc\r") == b"a\nb\r\nc\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "x = 1\n"),
        ("x = 1\n", ""),
        ("x = 1\n", "x = 1\ny = 2\n"),
        ("aaaa\n", "aaa\n"),
        ("x = 'é'\n", "x = '🤦é'\n"),
        ("x\r\ny\n", "x\ry\n"),
        ("x\ry\n", "x\r\ny\n"),
        ("x\r\ny\n", "x\r\r\ny\n"),
        ("x\n\ny\n", "x\r\n\ny\n"),
        ("x\ny\n", "x\r"),
        ("if a:\n    b\n", "if a:\n    b\nelse:\n    c\n"),
    ],
)
def test_an_update_equals_a_fresh_parse(old, new) -> None:
    document = ParsedDocument(old, PYTHON)
    document.update(new)
    fresh = ParsedDocument(new, PYTHON)
    assert document.text == new
    assert document._shadow == fresh._shadow
    assert str(document.tree.root_node) == str(fresh.tree.root_node)


def test_many_updates_equal_a_fresh_parse() -> None:
    rng = random.Random(7)
    document = ParsedDocument(WHOLE, PYTHON)
    text = WHOLE
    for _ in range(200):
        at = text.index("\n\n\n", rng.randrange(len(text) // 2)) + 3
        text = text[:at] + rng.choice(["x = 1\n", "def g():\n    '''名🤦'''\n", "# é\r\n", "y(a,\n  b)\n"]) + text[at:]
        document.update(text)
        assert not document.errors
    assert str(document.tree.root_node) == str(ParsedDocument(text, PYTHON).tree.root_node)


def test_an_update_hands_the_old_tree_on() -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    real, old_trees = document._parser, []

    class Spy:
        def parse(self, source, *old, **kwargs):
            old_trees.extend(old)
            return real.parse(source, *old, **kwargs)

    document._parser = Spy()
    first = document.tree
    document.update(WHOLE[:100] + "0" + WHOLE[100:])
    document.update(WHOLE[:100] + "0" + WHOLE[100:])  # nothing to do
    assert old_trees == [first]
    assert sum(changed.end_byte - changed.start_byte for changed in first.changed_ranges(document.tree)) < 100


def test_the_last_good_tree_outlives_a_break() -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    good = document.good
    assert good is document.tree
    at = WHOLE.index("    return a + 25")
    document.update(WHOLE[:at] + "    x = foo(\n" + WHOLE[at:])
    assert document.errors
    assert document.good is good
    assert good is not document.tree
    document.update(document.text.replace("return a + 10\n", "return a + 10 + 10\n"))
    assert document.good is good
    # It has moved along: what it says about f40 is true in the new text.
    node = good.root_node.descendant_for_byte_range(document.text.index("f40"), document.text.index("f40") + 3)
    assert document.text[node.start_byte : node.end_byte] == "f40"
    document.update(WHOLE)
    assert document.good is document.tree


def test_the_good_tree_goes_when_the_text_is_another() -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    document.update("(" * 2000)
    assert document.good is None


def test_the_good_tree_of_a_small_text_goes_when_the_text_is_another() -> None:
    document = ParsedDocument("class A:\n    def f(self):\n        pass\n", PYTHON)
    document.update("x = (\n")
    assert document.good is None


def test_the_good_tree_goes_when_much_has_changed_since() -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    text = WHOLE + "x = foo((\n"
    for i in range(200):
        text = text + f"def g{i}((\n"
        document.update(text)
    assert document.good is None or document.good is document.tree


def test_a_standing_error_does_not_freeze_the_good_tree() -> None:
    document = ParsedDocument("x = = 1\n" + WHOLE, PYTHON)
    assert document.errors
    first = document.good
    assert first is document.tree
    document.update(document.text + "def new():\n    pass\n")
    assert document.good is document.tree is not first


def test_a_query_of_nothing_finds_nothing() -> None:
    document = ParsedDocument("'a' # b\ndef f(): pass\n", PYTHON)
    assert queries.regions(document, document.tree, 0, 0) == []
    assert queries.structure(document, document.tree, 0, 0) == []
    assert len(queries.regions(document, document.tree, 0, 1)) == 1


@pytest.mark.parametrize(
    "text",
    ["x = 1\n" * 250_000, "x = [" + "1, " * 100_000 + "]\n", "a" * 300_000, "(" * 20_000, " " * 20_000, "\0" * 20_000],
    ids=["1.5 MB", "300 kB line", "300 kB word", "brackets", "spaces", "NULs"],
)
def test_beyond_the_limits_there_is_an_answer_and_no_tree(text) -> None:
    document = ParsedDocument(text, PYTHON)
    assert document.tree is None
    for offset in (0, 1, len(text) // 2, len(text) - 1, len(text)):
        assert not verified(document, offset).parsed
    document.update(text[:10] + "x" + text[10:])
    assert document.text == text[:10] + "x" + text[10:]
    document.update("x = 1\n")
    assert document.tree is not None


def test_a_document_may_grow_beyond_the_limits_and_shrink_again() -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    document.update(WHOLE + "x" * (parser.MAX_LINE + 1))
    assert document.tree is None
    assert document.good is None
    document.update(WHOLE)
    assert str(document.tree.root_node) == str(ParsedDocument(WHOLE, PYTHON).tree.root_node)


def test_scopes_near_the_cursor_are_found_without_a_tree() -> None:
    text = WHOLE + "#" * (parser.MAX_LINE + 1) + "\nclass A:\n    def f(self):\n        x = "
    answer = verified(ParsedDocument(text, PYTHON), len(text))
    assert not answer.parsed
    assert [span.text for span in answer.scopes] == ["class A:", "def f(self):"]


def test_what_does_not_parse_in_time_has_no_tree_and_is_not_tried_at_every_key(monkeypatch) -> None:
    text = WHOLE * 3
    monkeypatch.setattr(parser, "MAX_PARSE_SECONDS", -1.0)
    document = ParsedDocument(text, PYTHON)
    assert document.tree is None
    assert not verified(document, len(text)).parsed
    monkeypatch.undo()
    document.update(text + "x")
    assert document.tree is None
    document.update(WHOLE)
    assert document.tree is None  # still much the same text
    document.update("y = 2\n")
    assert document.tree is not None


def test_an_update_that_takes_too_much_work_leaves_the_good_tree_and_is_made_up_for_later(monkeypatch) -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    document.update(WHOLE + "\n")
    good = document.good
    monkeypatch.setattr(parser, "MORE_CALLS", -1_000)
    broken = WHOLE + "\n"
    for char in "\nx = (":
        broken += char
        document.update(broken)
        assert document.tree is None
        assert document.good is good
        assert document.errors
    answer = verified(document, len(broken))
    assert not answer.parsed
    assert answer.imports == verified(ParsedDocument(WHOLE, PYTHON), 0).imports
    monkeypatch.undo()
    document.update(broken + "1)")
    assert str(document.tree.root_node) == str(ParsedDocument(broken + "1)", PYTHON).tree.root_node)


def test_the_patience_without_a_tree_is_bounded(monkeypatch) -> None:
    document = ParsedDocument(WHOLE, PYTHON)
    document.update(WHOLE + "\n")
    monkeypatch.setattr(parser, "MORE_CALLS", -1_000)
    for end in range(1, parser.PATIENCE + 1):
        document.update(WHOLE + "y" * end)
        assert document.tree is None
    document.update(WHOLE + "z")
    assert document.tree is not None


def test_an_open_bracket_in_a_long_file_does_not_cost_a_parse_of_all_that_follows() -> None:
    text = "def f(a, b):\n    return [a, b]\n\n\n" * 3_000
    document = ParsedDocument(text, PYTHON)
    line = text.index("\n", len(text) // 2) + 1
    document.update(text[:line] + "\n" + text[line:])
    limit = document._calls + parser.MORE_CALLS + 2
    for typed in ("x = f('(", "y = g"):
        for end in range(1, len(typed) + 1):
            document.update(text[:line] + typed[:end] + "\n" + text[line:])
            assert document._calls <= limit
    assert document.tree is not None
    assert not document.errors
