"""Examples for the filters that filter_tables.py has no room for; rows as there."""

from __future__ import annotations

from filter_tables import Row

BODY_NEWLINE: list[Row] = [
    ("python", "def f():│\n", "return 1", "def f():\n    return 1│\n"),
    ("python", "def f(\n    a,\n) -> int:│\n", "return 1", "def f(\n    a,\n) -> int:\n    return 1│\n"),
    ("python", "if a:│\n", "    b()\n    c()", "if a:\n    b()\n    c()│\n"),
    ("python", "class A:\n\tdef f(self):│\n", "a()\nb()", "class A:\n\tdef f(self):\n\t\ta()\n\t\tb()│\n"),
    ("python", "def f():│\n", " ...", "def f(): ...│\n"),
    ("python", "def f():│\n", "  # why", "def f():  # why│\n"),
    ("python", "x = {1:│\n", "2}", "x = {1:2}│\n"),
    ("python", "f = lambda:│\n", " 1", "f = lambda: 1│\n"),
    ("python", "x = a[1:│\n", "2]", "x = a[1:2]│\n"),
    ("python", "s = 'if a:│\n", "b'", "s = 'if a:b'│\n"),
    ("python", "# if a:│\n", " b", "# if a: b│\n"),
    ("yaml", "a:│\n", " 1", "a: 1│\n"),
    ("javascript", "function f() {│\n}\n", "return 1;", "function f() {\n  return 1;│\n}\n"),
    ("javascript", "  if (a) {│\n", "b();\n}", "  if (a) {\n    b();\n  }│\n"),
    ("javascript", "import {│\n", " a } from 'a';", "import { a } from 'a';│\n"),
    ("javascript", "s = `${│\n", "a", "s = `${a│\n"),
    ("csharp", "s = $\"{│\n", "a", "s = $\"{a│\n"),
    ("go", "func f() {│\n}\n", "for {\n    g()\n}", "func f() {\n\tfor {\n\t\tg()\n\t}│\n}\n"),
    ("lua", "if a then│\n", "b()", "if a then\n  b()│\n"),
    ("lua", "if a then│\n", " b() end", "if a then b() end│\n"),
    ("shellscript", "for x in y; do│\n", "ls", "for x in y; do\n    ls│\n"),
    ("json", "{│\n", "\"a\": 1,", "{\n  \"a\": 1,│\n"),
]  # fmt: skip
LEADING_BLANK: list[Row] = [
    ("python", "def f():\n    │\n", "\n\n    return 1", "def f():\n    return 1│\n"),
    ("python", "import os\n│\n", "\n\ndef f():\n    pass", "import os\n\n\ndef f():\n    pass│\n"),
    ("python", "x = 1\n    │\n", "\ny = 2", "x = 1\n\ny = 2│\n"),
]
RUNS_TOGETHER: list[Row] = [
    ("python", "x = │foo\n", "bar", None),
    ("python", "x = │foo\n", "bar + ", "x = bar + │foo\n"),
    ("python", "x = nu│py\n", "m", "x = num│py\n"),
    ("python", "x = '│foo'\n", "bar", "x = 'bar│foo'\n"),
    ("php", "│$a = 1;\n", "b", "b│$a = 1;\n"),
]
THOUGHTS: list[Row] = [
    ("python", "x = │\n", "<think>\nOne.\n</think>\n\n1", "x = 1│\n"),
    ("python", "def f():\n    │\n", "<think>a</think>\n    return 1", "def f():\n    return 1│\n"),
    ("python", "x = │\n", "It is one.\n</think>\n1", "x = 1│\n"),
    ("python", "x = │\n", "<thinking>it is", None),
    ("python", "x = │\n", "1<think>or is it", "x = 1│\n"),
    ("python", "x = │\n", "<|channel>thought\nOne.\n<channel|>1", "x = 1│\n"),
    ("python", "x = │\n", "<|channel>thought\n<channel|>1", "x = 1│\n"),
    ("python", "x = │\n", "<|channel|>analysis<|message|>One.<|end|><|start|>assistant<|channel|>final<|message|>1",
     "x = 1│\n"),
    ("python", "x = │\n", "<answer>1</answer>", "x = 1│\n"),
    ("html", "<p>│</p>\n", "<code>a</code>", "<p><code>a</code>│</p>\n"),
    ("python", "T = '<think>'\nx = │\n", "'<think>a</think>'", "T = '<think>'\nx = '<think>a</think>'│\n"),
]  # fmt: skip
TOO_LONG: list[Row] = [
    ("python", "x = │\n", "a" * 2500 + "b" * 2500, None),
    ("python", "│\n", "x = 1\ny = '" + "ab" * 2500 + "'", "x = 1│\n"),
]
UNMATCHED: list[Row] = [
    ("c", "x = 1;\n│\n", "y = 2;\n}", "x = 1;\ny = 2;│\n"),
    ("c", "│\n", "}\n}", None),
    ("c", "int main() {\n    return │;\n}\n", "0;\n}", "int main() {\n    return 0;│\n}\n"),
    ("c", "int main() {\n│\n", "}", "int main() {\n}│\n"),
    ("python", "x = f(1)│\n", ")", None),
    ("html", "<div>│</div>\n", "a</div>\n</body>", "<div>a</div>\n"),
    ("html", "<ul>\n  │\n</ul>\n", "<li>a</li>\n</ul>\n<p>", "<ul>\n  <li>a</li>│\n</ul>\n"),
    ("html", "<p>a<br>│</p>\n", "b</b>", "<p>a<br>b│</p>\n"),
    ("javascriptreact", "x = <A b={c}>│</A>;\n", "<B />d</A>;", "x = <A b={c}><B />d</A>;\n"),
    ("html", "<ul>\n  <li>a\n  │\n", "</ul>", "<ul>\n  <li>a\n</ul>│\n"),
]

TABLES = {name.lower(): rows for name, rows in globals().copy().items() if name.isupper() and isinstance(rows, list)}
