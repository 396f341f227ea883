"""Which kind of completion: every rule of grammars/kinds.py, and the cases that look like another rule's."""

import pytest
from grammar_cursor import at, check

from grammars.kinds import RULES


@pytest.mark.parametrize(
    ("marked", "kind", "reason"),
    [
        ("│", "none", "empty document"),
        ("│\n", "block", "nothing in the file yet"),
        ("# a script\n\n│\n\n", "block", "nothing in the file yet"),
        ("│\nx = 1\n", "line", "on a blank line"),
        ("nu│mpy", "none", "inside a word"),
        ("x = nu│mpy.zeros(3)\n", "none", "inside a word"),
        ("名│前 = 1\n", "none", "inside a word"),
        ("# wo│rd\n", "none", "inside a word"),
        ("num│.zeros(3)\n", "line", "code follows on the line"),
        ("foo(│bar)\n", "line", "code follows on the line"),
        ("def f(│):\n", "line", "code follows on the line"),
        ("s = 'a│'\n", "line", "in a string or comment"),
        ("# load config│\n", "line", "in a string or comment"),
        ('def f():\n    """Doc.\n    │\n    """\n', "line", "in a string or comment"),
        ("call(a);│\n", "none", "behind a finished statement"),
        ("call(a);  │\n", "none", "behind a finished statement"),
        ("print(│)\n", "line", "only closers follow"),
        ('foo("│")\n', "line", "in a string or comment"),
        ("foo([│]);  \n", "line", "only closers follow"),
        ("x = {│}\n", "line", "only closers follow"),
        ("def f():\n    │\n", "block", "behind a block's header"),
        ("def f():\n│\n", "block", "behind a block's header"),
        ("def f():│\n", "block", "behind a block's header"),
        ("def f():  # why\n    │\n", "block", "behind a block's header"),
        ("def f():\n\n    │\n\ndef g():\n    pass\n", "block", "behind a block's header"),
        ("def f():\n    # add them\n    │\n", "block", "behind a block's header"),
        ('def f():\n    """Doc.\n\n    More.\n    """\n    │\n', "block", "behind a block's header"),
        ("def f(\n    a,  # ):\n    b,\n) -> int:\n    │\n", "block", "behind a block's header"),
        ("class A(B):\n    │\n", "block", "behind a block's header"),
        ("if x:\n    │\n", "block", "behind a block's header"),
        ("if x:\n    y\nelif z:\n    │\n", "block", "behind a block's header"),
        ("try:\n    x\nexcept (A, B) as e:\n    │\n", "block", "behind a block's header"),
        ("async def f():\n    async with a as b:\n        │\n", "block", "behind a block's header"),
        ("match x:\n    case [1, *_]:\n        │\n", "block", "behind a block's header"),
        ("d = {\n    │\n}\n", "line", "on a blank line"),
        ("d = {\n    'a':\n    │\n}\n", "line", "on a blank line"),
        ("x = a[if_:\n    │\n", "line", "on a blank line"),
        ("x = lambda:\n    │\n", "line", "on a blank line"),
        ("s = 'if x:'\n│\n", "line", "on a blank line"),
        ("s = '''\nif x:\n'''\n│\n", "line", "on a blank line"),
        ("# if x:\n│\ny = 1\n", "line", "on a blank line"),
        ("x = 1\n│\n", "line", "on a blank line"),
        ("if a:\n    x = 1\n    │\ny = 2\n", "line", "on a blank line"),
        ("'''Module.'''\n│\nx = 1\n", "line", "on a blank line"),
        ("x = │\n", "line", "at the end of a line"),
        ("x = foo(a│\n", "line", "at the end of a line"),
        ("x = f'{a.│", "line", "at the end of a line"),
    ],
)
def test_python(marked, kind, reason) -> None:
    answer = at(marked)
    assert (answer.kind, answer.reason) == (kind, reason)


@pytest.mark.parametrize("language", ["javascript", "javascriptreact", "typescript", "typescriptreact"])
@pytest.mark.parametrize(
    ("marked", "kind", "reason"),
    [
        ("", "none", "empty document"),
        ("function fib(n) {│}\n", "block", "in a fresh body"),
        ("function fib(n) { │ }\n", "block", "in a fresh body"),
        ("function fib(n) {\n  │}\n", "block", "in a fresh body"),
        ("const f = (a) => {│};\n", "block", "in a fresh body"),
        ("if (a) {│}\n", "block", "in a fresh body"),
        ("try {│}\n", "block", "in a fresh body"),
        ("class A {│}\n", "block", "in a fresh body"),
        ("foo(() => {│});\n", "block", "in a fresh body"),
        ("foo({│})\n", "line", "only closers follow"),
        ("const a = {│};\n", "line", "only closers follow"),
        ("const {│}\n", "line", "only closers follow"),
        ("import {│}\n", "line", "only closers follow"),
        ("return {│};\n", "line", "only closers follow"),
        ("foo({ a: {│} });\n", "line", "only closers follow"),
        ("const s = `${│}`\n", "line", "only closers follow"),
        ("function f() {\n  │\n}\n", "block", "behind a block's header"),
        ("function f() {│\n", "block", "behind a block's header"),
        ("function f() {\n  // add\n  │\n}\n", "block", "behind a block's header"),
        ("function f() {\n  /* add\n   * up */\n  │\n}\n", "block", "behind a block's header"),
        ("function f() {\n  'use strict';\n  │\n}\n", "block", "behind a block's header"),
        ("} else {\n  │\n}\n", "block", "behind a block's header"),
        ("switch (x) {\n  case 'a':\n    │\n}\n", "block", "behind a block's header"),
        ("call(a);│\n", "none", "behind a finished statement"),
        ("call(a); │\n", "none", "behind a finished statement"),
        ("// call(a);│\n", "line", "in a string or comment"),
        ("for (let i = 0;│\n", "line", "at the end of a line"),
        ("call(a)│\n", "line", "at the end of a line"),
        ("draw(a,│ b);\n", "line", "code follows on the line"),
        ("const s = `a ${b.│\n", "line", "at the end of a line"),
        ("const $x = $│y\n", "none", "inside a word"),
        ("const s = '{'\n│\n", "line", "on a blank line"),
        ("call(a);\n│\n", "line", "on a blank line"),
        ("const r = /\\{/\n│\n", "line", "on a blank line"),
    ],
)
def test_braces(marked, kind, reason, language) -> None:
    answer = at(marked or "│", language)
    assert (answer.kind, answer.reason) == (kind, reason)


@pytest.mark.parametrize(
    ("marked", "language", "kind"),
    [
        ("<li>│</li>\n", "javascriptreact", "line"),
        ("<p>don't │</p>\n", "typescriptreact", "line"),
        ("const a = <div className={│}>x</div>;\n", "typescriptreact", "line"),
        ("async function f(): Promise<void> {│}\n", "typescript", "block"),
        ("interface A {│}\n", "typescript", "block"),
        ("interface A {\n  │\n}\n", "typescript", "block"),
        # Other languages, and none.
        ("void go() {\n    │\n}\n", "java", "block"),
        ("func main() {\n\tx := 1\n\t│\n}\n", "go", "line"),
        ('puts(":)"│)\n', "ruby", "line"),
        ("call(a);│\n", "c", "none"),
        ("void f() {│}\n", "c", "block"),
        ("as follows:\n│\nx", "plaintext", "line"),
        ("wo│rd", "", "none"),
        ("│", "", "none"),
    ],
)
def test_other(marked, language, kind) -> None:
    check(marked, language, kind=kind)


def test_every_rule_can_decide() -> None:
    """Each reason occurs in a test above, and the last rule always holds."""
    reasons = {
        *(case[2] for case in test_python.pytestmark[0].args[1]),
        *(case[2] for case in test_braces.pytestmark[0].args[1]),
    }
    assert reasons == {reason for reason, _, _ in RULES}


@pytest.mark.parametrize(
    ("marked", "follows"),
    [
        ("x = │\n", "nothing"),
        ("x = │  \t\f\u2028\n", "nothing"),
        ("foo(│)\n", "closers"),
        ("foo([{'│'}]);\r\n", "closers"),
        ("foo(│), \n", "closers"),
        ("foo(│) + 1\n", "code"),
        ("foo(│):\n", "code"),
        ("foo(│)  # note\n", "code"),
        ("x = │", "nothing"),
        ("x = │\ry", "nothing"),
    ],
)
def test_what_follows_on_the_line(marked, follows) -> None:
    check(marked, follows=follows)
