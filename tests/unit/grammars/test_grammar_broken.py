"""Scopes, siblings and imports of broken code, and of code that was whole a moment ago."""

import dataclasses

import pytest
from grammar_cursor import at, check, split, typed, verified

from grammars.languages import language_for
from grammars.parser import ParsedDocument

BROKEN_PYTHON = """\
import os

class A(B):
    def f(self, n):
        return n

    def g(self):
        before = 1
        {}
        after = 2

    def h(self):
        return 3

def top():
    return 4
"""


@pytest.mark.parametrize("was_whole", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        *(
            "x = foo(│",
            "x = foo(│)",
            "x = [1, │",
            "x = {'a': │",
            "x = {│",
            "x.│",
            "x = 'abc│",
            "x = f'{a.│",
            "x = f'{│",
        ),
        *(
            "return (│",
            "if x│",
            "if x:│",
            "for y in │",
            "while (│",
            "with open(│",
            "lambda: │",
            "@│",
            "def i(│",
            "class │",
        ),
        *(
            "from y import │",
            "import │",
            "raise │",
            "assert x, (│",
            "x = y if │",
            "print(f'{x}│",
            "│)",
            "│]",
            "x = \\│",
        ),
        *("try:│", "else:│", "x = 1 +│", "x: │", "del │", "yield │", "await │", "🤦│", "x = “│”", "\ud800│", "\0│"),
    ],
)
def test_python_broken_line(line, was_whole) -> None:
    marked = BROKEN_PYTHON.replace("{}", line)
    answer = typed(BROKEN_PYTHON.replace("{}", "pass"), marked) if was_whole else at(marked)
    assert [span.text for span in answer.scopes] == ["class A(B):", "def g(self):"]
    assert [span.text for span in answer.siblings] == ["def h(self):", "def f(self, n):"]
    assert [span.text for span in answer.imports] == ["import os"]


@pytest.mark.parametrize(
    ("line", "position"),
    [
        ('x = """abc│', "string"),
        ('"""│', "string"),
        ("x = '''│", "string"),
        ("# note│", "comment"),
        ("x = 'a│", "string"),
    ],
)
def test_python_open_string(line, position) -> None:
    check(BROKEN_PYTHON.replace("{}", line), position=position, kind="line", scopes=["class A(B):", "def g(self):"])


def test_python_header_on_several_lines_in_broken_code() -> None:
    check(
        "class A:\n    def f(\n        self,\n        a=(1, 2),\n    ) -> int:\n        if a:\n            foo(│\n",
        scopes=["class A:", "def f(\n        self,\n        a=(1, 2),\n    ) -> int:"],
    )


WITHOUT_GRAMMAR = [
    ("class A:\n    def f(self):\n        │", "python", ["class A:", "def f(self):"]),
    (
        "class A:\n    def f(\n        self,\n    ) -> int:\n        │",
        "python",
        ["class A:", "def f(\n        self,\n    ) -> int:"],
    ),
    ("class A:\n    def f(self):\n        s = '''\n  class B:\n'''\n        │", "python", ["class A:", "def f(self):"]),
    ("class A:\n    # def g():\n    x = 1\n    │", "python", ["class A:"]),
    ("def f(): return 1\n│", "python", []),
    ("def f():\n    s = '''\n│", "python", ["def f():"]),
    ("export class A {\n  m(a) {\n    if (a) {\n    } else {\n      │", "javascript", ["export class A {", "m(a) {"]),
    ("const f = async (a) => {\n  │", "javascript", ["const f = async (a) => {"]),
    ("describe('x', () => {\n  function g() {\n    │", "javascript", ["function g() {"]),
    (
        "abstract class A<T> {\n  async m(a: T): Promise<T> {\n    │",
        "typescript",
        ["abstract class A<T> {", "async m(a: T): Promise<T> {"],
    ),
    ("if (x) {\n  foo(a, {\n    │", "typescript", []),
]


@pytest.mark.parametrize(("marked", "language", "scopes"), WITHOUT_GRAMMAR)
def test_indentation_and_headers_alone_find_the_scopes(marked, language, scopes) -> None:
    text, offset = split(marked)
    row = dataclasses.replace(language_for(language), grammar="")
    assert [span.text for span in verified(ParsedDocument(text, row), offset).scopes] == scopes


def test_the_good_tree_knows_headers_that_no_line_shows() -> None:
    whole = "class A {\n  p: number;\n  m(\n    a: string,\n  ): void {\n    go();\n  }\n  q(): void {\n  }\n}\n"
    check(
        whole.replace("go();", "const x = [{ a: foo(`│"),
        "typescript",
        before=whole,
        scopes=["class A {", "m(\n    a: string,\n  ): void {"],
        siblings=["q(): void {", "p: number"],
    )


@pytest.mark.parametrize("line", ["x => {│", "const y = [│", "x = `│", "if (x) {│"])
def test_the_good_tree_knows_siblings_that_no_line_shows(line) -> None:
    whole = BROKEN_BRACES.replace("{}", "x();", 1).replace("  h() {", "  h(\n    a,\n  ) {")
    for language in ("javascript", "typescript"):
        check(whole.replace("x();", line), language, before=whole, siblings=["h(\n    a,\n  ) {", "f(n) {"])


def test_the_good_tree_knows_imports_that_are_swallowed() -> None:
    whole = BROKEN_BRACES.replace("{}", "x();", 1)
    check("foo(│\n" + whole, "javascript", before=whole, imports=["import {a} from 'b';"])


def test_a_header_that_an_error_has_swallowed_is_not_believed() -> None:
    broken = BROKEN_BRACES.replace("{}", "x();", 1).replace("f(n) {", "f{) {│")
    check(broken, "javascript", scopes=["export class A extends B {"])


def test_an_old_member_that_has_been_typed_over_is_gone() -> None:
    whole = BROKEN_BRACES.replace("{}", "x();", 1)
    marked = whole.replace("return n;", "return n;│").replace("h() {", "{").replace("function", "xion")
    check(marked, "javascript", before=whole, scopes=["export class A extends B {", "f(n) {"], siblings=["g(x) {"])


def test_an_old_header_without_its_colon_is_gone() -> None:
    whole = "class A:\n    def f(self):\n        x = ()\n"
    check("class A:\n    defer(self)\n        x = (│\n", before=whole, scopes=["class A:"])


def test_an_old_header_that_has_been_retyped_is_gone() -> None:
    check(
        "class B:\n    def q(self):\n        x = (│\n",
        before="class A:\n    def f(self):\n        x = ()\n",
        scopes=["class B:", "def q(self):"],
    )


BROKEN_BRACES = """\
import {a} from 'b';

export class A extends B {
  f(n) {
    return n;
  }

  g(x) {
    before();
    {}
    after();
  }

  h() {
    return 3;
  }
}

function top() {
}
"""


@pytest.mark.parametrize("was_whole", [False, True])
@pytest.mark.parametrize("language", ["javascript", "javascriptreact", "typescript", "typescriptreact"])
@pytest.mark.parametrize(
    "line",
    [
        *(
            "foo(│",
            "foo(│)",
            "x.│",
            "const y = │",
            "const y = [│",
            "const y = {│",
            "if (│",
            "if (x) {│",
            "for (│",
            "x = 'abc│",
        ),
        *(
            "x = `a ${b.│",
            "return (│",
            "while (x│",
            "new │",
            "await │",
            "x ? │",
            "x => {│",
            "x = function (│",
            "│}",
            "│)",
        ),
        *(
            "throw │",
            "try {│",
            "switch (x) {│",
            "case │",
            "x = y +│",
            "import │",
            "class │",
            "@│",
            "🤦│",
            "\ud800│",
            "x = /a│",
        ),
    ],
)
def test_braces_broken_line(line, language, was_whole) -> None:
    marked = BROKEN_BRACES.replace("{}", line, 1)
    answer = typed(BROKEN_BRACES.replace("{}", "x();", 1), marked, language) if was_whole else at(marked, language)
    assert [span.text for span in answer.scopes] == ["export class A extends B {", "g(x) {"]
    assert [span.text for span in answer.siblings] == ["h() {", "f(n) {"]
    assert [span.text for span in answer.imports] == ["import {a} from 'b';"]
