"""Enclosing scopes, siblings and imports of whole code."""

import pytest
from grammar_cursor import at, check

WORK = """\
import os
from x import (
    a,
)

class A(B):
    size: int = 3

    def f(self, n):
        return n

    @property
    async def g(self) -> int:
        │

    def h(
        self,
        k=":",
    ) -> dict[str, int]:
        return {}

def top(z):
    pass
"""


def test_python_class() -> None:
    check(
        WORK,
        kind="block",
        scopes=["class A(B):", "async def g(self) -> int:"],
        siblings=[
            'def h(\n        self,\n        k=":",\n    ) -> dict[str, int]:',
            "def f(self, n):",
            "size: int = 3",
        ],
        imports=["import os", "from x import (\n    a,\n)"],
    )


@pytest.mark.parametrize(
    ("marked", "scopes"),
    [
        ("x = │\n", []),
        ("def f(a):\n    │\n", ["def f(a):"]),
        ("def f(a):\n│\n", ["def f(a):"]),  # the only place where code may stand
        ("def f(a):\n    return 1\n│\n", []),
        ("def f(a):\n    return 1\n    │", ["def f(a):"]),
        ("def f(a):\n    b\n│\n    c\n", ["def f(a):"]),
        ("def f(a):\n    return 1\n\n\n    │\n\nx = 1\n", ["def f(a):"]),
        ("class A:\n    def f(self):\n        return 1\n\n    │\n", ["class A:"]),
        ("class A:\n    def f(self):\n        return 1\n\n        │\n", ["class A:", "def f(self):"]),
        ("class A:\n    def f(self):\n        return 1\n│\n", []),
        ("def f(a): return │a\n", ["def f(a):"]),
        ("def f(a, │b):\n    pass\n", []),
        ("class A(│):\n    pass\n", []),
        ("def f():\n    x = [\n  1, │\n]\n", ["def f():"]),
        ("def f():\n    s = '''\n│\n'''\n", ["def f():"]),
        ("def f():\n    if x:\n        for y in z:\n            │\n", ["def f():"]),
        ("if x:\n    def f():\n        def g():\n            │\n", ["def f():", "def g():"]),
        ("class A:\r\n\tdef f(self):\r\n\t\t│\r\n", ["class A:", "def f(self):"]),
        ("class A:\r    def f(self):\r        x = 1\r        │\r", ["class A:", "def f(self):"]),
        ("class Ä:\n    def ƒ(self, 🤦='𝐱'):\n        s = '🤦🏽'; t = │\n", ["class Ä:", "def ƒ(self, 🤦='𝐱'):"]),
    ],
)
def test_python_scopes(marked, scopes) -> None:
    check(marked, scopes=scopes)


def test_python_lines_in_strings_are_no_headers() -> None:
    check('def f():\n    s = """\n  class X:\n"""\n    x = foo(│\n', scopes=["def f():"])


@pytest.mark.parametrize("language", ["javascript", "javascriptreact", "typescript", "typescriptreact"])
@pytest.mark.parametrize(
    ("marked", "scopes"),
    [
        ("let x = │;\n", []),
        ("function g(x) {│}\n", ["function g(x) {"]),
        ("function g(x) {}│\n", []),
        ("function g(x) {\n│\n}\n", ["function g(x) {"]),
        ("function g(x) {\n}\n│\n", []),
        ("function g(│x) {}\n", []),
        ("export default async function g(x) {\n  if (x) {\n    │\n  }\n}\n", ["export default async function g(x) {"]),
        ("function* g() { │ }", ["function* g() {"]),
        ("const f = (a, b) => {\n  │\n};\n", ["const f = (a, b) => {"]),
        ("export const f = async function (a) {\n  │\n};\n", ["export const f = async function (a) {"]),
        ("class A extends B {\n  static async m(a) {\n    │\n  }\n}\n", ["class A extends B {", "static async m(a) {"]),
        ("class A {\n  get x() { return │ }\n}\n", ["class A {", "get x() {"]),
        ("class A {\n  h = (e) => {\n    │\n  };\n}\n", ["class A {", "h = (e) => {"]),
        ("module.exports = {\n  a: function (x) {\n    │\n  },\n};\n", ["a: function (x) {"]),
        ("A.prototype.b = function (x) {\n  │\n};\n", ["A.prototype.b = function (x) {"]),
        ("(function () {\nfunction g() {\nx = 1│\n}\n})();\n", ["function g() {"]),
        ("const f = function g() {\n  │\n};\n", ["const f = function g() {"]),
        ("on('x', function g() {\n  │\n});\n", ["function g() {"]),
        ("function g() {\n│", ["function g() {"]),
        ("class A { m() { if (x) { │ } } }", ["class A {", "m() {"]),
        # A brace is missing: the tree puts b into a.
        ("function a() {\n  if (x) {\n    y();\n}\n\nfunction b() {\n  │\n}\n", ["function b() {"]),
        ("function a() {\n  x();\n\n│", []),
        ("function a() {\n  x(│", ["function a() {"]),
        ("class A {\n  m() {\n    const o = {\n      a: [│\n", ["class A {", "m() {"]),
    ],
)
def test_braces_scopes(marked, scopes, language) -> None:
    check(marked, language, scopes=scopes)


@pytest.mark.parametrize(
    ("marked", "scopes", "siblings"),
    [
        (
            "interface A {\n  x: number;\n  m(a: string): void;\n  │\n}\ntype T = string;\n",
            ["interface A {"],
            ["m(a: string): void", "x: number"],
        ),
        (
            "export abstract class A<T> implements B {\n  private x: number = 1;\n  abstract m(): void;\n"
            "  protected async n<U>(a: U): Promise<U> {\n    │\n  }\n}\n",
            ["export abstract class A<T> implements B {", "protected async n<U>(a: U): Promise<U> {"],
            ["abstract m(): void", "private x: number = 1"],
        ),
        ("namespace N {\n  export enum E {\n    A,\n    │\n  }\n}\n", ["namespace N {", "export enum E {"], []),
        (
            "export const f = async (a: number): Promise<void> => {\n  foo(│\n}\ntype X = string;\n",
            ["export const f = async (a: number): Promise<void> => {"],
            ["type X = string;"],
        ),
        (
            "function o(a: string): void;\nfunction o(a: any) {\n  │\n}\n",
            ["function o(a: any) {"],
            ["function o(a: string): void;"],
        ),
    ],
)
@pytest.mark.parametrize("language", ["typescript", "typescriptreact"])
def test_typescript(marked, scopes, siblings, language) -> None:
    check(marked, language, scopes=scopes, siblings=siblings)


def test_siblings_are_the_nearest_and_not_too_many() -> None:
    text = "".join(f"def f{i}():\n    pass\n\n" for i in range(100))
    marked = text.replace("def f50():\n    pass", "def f50():\n    │")
    names = [span.text for span in at(marked).siblings]
    assert len(names) == 16
    assert names[0] == "def f51():"
    assert set(names) == {f"def f{i}():" for i in range(43, 60) if i != 50}


def test_siblings_are_members_not_what_is_in_them() -> None:
    check(
        "def a():\n    def inner():\n        pass\n\nif x:\n    def b():\n        pass\n\n│\n",
        siblings=["def b():", "def a():"],
    )


def test_the_header_being_written_is_no_sibling() -> None:
    check("def a():\n    pass\n\ndef b(│):\n    pass\n", siblings=["def a():"])


@pytest.mark.parametrize(
    ("marked", "language", "imports"),
    [
        (
            "from __future__ import annotations\nimport a, b as c\n│\n",
            "python",
            ["from __future__ import annotations", "import a, b as c"],
        ),
        ("try:\n    import a\nexcept ImportError:\n    pass\n│", "python", ["import a"]),
        ("if TYPE_CHECKING:\n    from a import b\n│", "python", ["from a import b"]),
        (
            "const a = require('a');\nconst b = other('b');\nvar c = require('c')\n│",
            "javascript",
            ["const a = require('a');", "var c = require('c')"],
        ),
        (
            "import a, {b} from 'a';\nimport 'c';\nexport * from 'd';\nexport const x = 1;\n│",
            "javascript",
            ["import a, {b} from 'a';", "import 'c';", "export * from 'd';"],
        ),
        (
            "import type {A} from './a';\nimport fs = require('fs');\n│",
            "typescript",
            ["import type {A} from './a';", "import fs = require('fs');"],
        ),
        ("import os\nfoo(\n│", "python", ["import os"]),
        ("import os\n│", "ruby", []),
    ],
)
def test_imports(marked, language, imports) -> None:
    check(marked, language, imports=imports)


def test_long_headers_are_cut() -> None:
    answer = at("def f(" + "a, " * 500 + "):\n    │\n")
    assert len(answer.scopes[0].text) <= 400
