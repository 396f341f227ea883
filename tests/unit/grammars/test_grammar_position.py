"""String, comment or code; indentation units and line ends."""

import pytest
from grammar_cursor import at, check


@pytest.mark.parametrize(
    ("marked", "position"),
    [
        ("s = │'a'", "code"),
        ("s = '│a'", "string"),
        ("s = 'a│'", "string"),
        ("s = 'a'│", "code"),
        ("s = '│'", "string"),
        ("s = f'a│{b}'", "string"),
        ("s = f'a{│b}'", "code"),
        ("s = f'a{b│}'", "code"),
        ("s = f'a{b}│'", "string"),
        ("s = f'{{│}}'", "string"),
        ("s = f'{d[\"│\"]}'", "string"),
        ("s = 'a│\n", "string"),
        ("s = 'a\nx = │\n", "code"),
        ("s = \"it's│\n", "string"),
        ("s = 'a\\'│\n", "string"),
        ("s = f'{a│\n", "code"),
        ("s = f'{{a│\n", "string"),
        ("s = f'{a}│\n", "string"),
        ("s = rb'│\n", "string"),
        ('s = """a\n│\n"""\n', "string"),
        ('s = """a\n│\n', "string"),
        ('s = """a"""\nfoo(│\n', "code"),
        ("# c│\nx = 1\n", "comment"),
        ("x = 1 # c│", "comment"),
        ("│# c", "code"),
        ("# c\n│", "code"),
        ("foo( # it's│\n", "comment"),
        ("foo( # it's\n  │\n", "code"),
        ("foo('#', │\n", "code"),
        ("foo(f'{a\n} + x│\n", "code"),
        ('"""' + "it's\n" * 5000 + '"""\nfoo(│\n', "code"),
        ('x = 1\n"""' + "it's\n" * 2000 + "foo(│\n", "string"),
    ],
)
def test_python(marked, position) -> None:
    check(marked, position=position)


@pytest.mark.parametrize("language", ["javascript", "javascriptreact", "typescript", "typescriptreact"])
@pytest.mark.parametrize(
    ("marked", "position"),
    [
        ("s = '│a'", "string"),
        ("s = `a│`", "string"),
        ("s = `a\n│`", "string"),
        ("s = `a${│b}`", "code"),
        ("s = `a${b}│`", "string"),
        ("s = `a${ {b: '}'} }│`", "string"),
        ("s = `a${f({b: │", "code"),
        ("s = `a${f({b: '}'})}│", "string"),
        ("// c│\n", "comment"),
        ("/* c│ */", "comment"),
        ("/* c */│", "code"),
        ("/* c\n * │", "comment"),
        ("/** c */\nfoo(│", "code"),
        ("r = /a│b/", "string"),
        ('r = /a[/"]/; foo(│)', "code"),
        ("foo('//', │", "code"),
        ("s = `a${ {b: 1}.│", "code"),
        ("s = 'a\nfoo(│", "code"),
    ],
)
def test_braces(marked, position, language) -> None:
    check(marked, language, position=position)


def test_the_text_between_tags_is_code() -> None:
    check("x = <p>don't │ worry</p>;\n", "javascriptreact", position="code")


@pytest.mark.parametrize(
    ("text", "language", "unit"),
    [
        ("x", "python", "    "),
        ("x", "javascript", "  "),
        ("x", "", "    "),
        ("def f():\n  if x:\n    y\n", "python", "  "),
        ("def f():\n   if x:\n      y\n", "python", "   "),
        ("def f():\n        x\n", "python", " " * 8),
        ("def f():\n\tif x:\n\t\ty\n", "python", "\t"),
        ("function f() {\n    x;\n}\n", "javascript", "    "),
        ("function f() {\r\n\tx;\r\n}\r\n", "javascript", "\t"),
        ("/**\n * a\n * b\n */\nfunction f() {\n    x;\n}\n", "javascript", "    "),
        ("def f():\n    x = g(a,\n          b)\n    if y:\n        z\n", "python", "    "),
        ("def f():\n\n  x\n\n\n  y\n", "python", "  "),
        ("def f():\n  x\ndef g():\n    y\n", "python", "    "),  # a tie: the language's own
        ("def f():\n  x\ndef g():\n   y\n", "python", "  "),
    ],
)
def test_indent_unit(text, language, unit) -> None:
    assert at(text + "│", language).indent_unit == unit


@pytest.mark.parametrize(
    ("text", "line_ending"),
    [("", "\n"), ("a\n", "\n"), ("a\r\n", "\r\n"), ("a\r\nb\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\n")],
)
def test_line_ending(text, line_ending) -> None:
    assert at(text + "│").line_ending == line_ending


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x85", "\u2028", "\u2029"])
def test_only_lsp_line_ends_end_a_line(separator) -> None:
    answer = at(f"x = 1{separator}│ + y\n")
    assert not answer.blank
    assert answer.follows == "code"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_lsp_line_ends_end_a_line(newline) -> None:
    answer = at(f"x = 1{newline}│{newline}y")
    assert answer.blank
    assert answer.follows == "nothing"


def test_between_carriage_return_and_newline_is_the_line_they_end() -> None:
    answer = at("x = \r│\n")
    assert not answer.blank
    assert answer.kind == "line"
