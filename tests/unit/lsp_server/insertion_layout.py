"""Inputs of the same kinds as the reported faults: white space, line ends and levels.

Rows as in filter_tables.py.
"""

from __future__ import annotations

from filter_tables import Row

SPACES: list[Row] = [
    ("python", "return │\n", " x", "return x\n"),
    ("python", "foo(a, │)\n", " b)", "foo(a, b)\n"),
    ("javascript", "if (a && │) {\n", " b) {", "if (a && b) {\n"),
    ("python", "x =\t│\n", " 1", "x =\t1\n"),
    ("python", "x = │ # c\n", " 1 ", "x = 1 # c\n"),
    ("python", "a = b│ + c\n", "[0] ", "a = b[0] + c\n"),
]  # fmt: skip
NEWLINES: list[Row] = [
    ("javascript", "// load│\n", "\nlet a = 1;", "// load\nlet a = 1;\n"),
    ("python", "def f():│\n", "\n    return 1", "def f():\n    return 1\n"),
    ("python", "class A:│\n", "\n    x = 1\n", "class A:\n    x = 1\n"),
    ("javascript", "function f() {│\n", "\n  return 1;\n}", "function f() {\n  return 1;\n}\n"),
    ("python", "x = 1│\n", "\ny = 2", "x = 1\ny = 2\n"),
    ("python", "def f():│\n", "return 1", "def f():\n    return 1\n"),
    ("python", "def f():│\n", "    return 1", "def f():\n    return 1\n"),
    ("python", "class A:\n    def f(self):│\n", "return 1", "class A:\n    def f(self):\n        return 1\n"),
    ("python", "if a:│\n", "    b()\n    c()", "if a:\n    b()\n    c()\n"),
    ("javascript", "function f() {│\n}\n", "return 1;", "function f() {\n  return 1;\n}\n"),
    ("javascript", "function f() {│\n}\n", "  return 1;\n", "function f() {\n  return 1;\n}\n"),
    ("go", "func f() {│\n}\n", "return", "func f() {\n\treturn\n}\n"),
    ("c", "if (a) {│\n", "    b();\n}", "if (a) {\n    b();\n}\n"),
    ("python", "def f():│  # note\n", "\n    pass", None),
    ("python", "def f():  # note│\n", "\n    pass", "def f():  # note\n    pass\n"),
]  # fmt: skip
TRAILING: list[Row] = [
    ("python", "def a():\n    │\n", "return 1\n\n\n", "def a():\n    return 1\n"),
    ("python", "def a():\n    │", "return 1\n", "def a():\n    return 1"),
    ("python", "x = │\n", "1   \n  \n", "x = 1\n"),
    ("python", "def a():\n    │\n\ndef b(): pass\n", "return 1  \n", "def a():\n    return 1\n\ndef b(): pass\n"),
]  # fmt: skip
FIRST_LINE: list[Row] = [
    ("python", "class A:\n  def f(self):\n    return 1\n\n  │\n", " def g(self):\n    return 2",
     "class A:\n  def f(self):\n    return 1\n\n  def g(self):\n    return 2\n"),
    ("python", "class A:\n\tdef f(self):\n\t\treturn 1\n\n\t│\n", " def g(self):\n        return 2",
     "class A:\n\tdef f(self):\n\t\treturn 1\n\n\tdef g(self):\n\t\treturn 2\n"),
    ("python", "class A:\n    def f(self):\n        return 1\n\n    │\n", "  def g(self):\n        return 2",
     "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2\n"),
    ("python", "def f():\n    x = 1\n    │\n", "        return x", "def f():\n    x = 1\n    return x\n"),
    ("python", "def f():\n    x = 1\n    │\n", " return x", "def f():\n    x = 1\n    return x\n"),
    ("javascript", "function f() {\n  let a = 1;\n  │\n}\n", "   return a;",
     "function f() {\n  let a = 1;\n  return a;\n}\n"),
    ("python", "def f():\n    x = 1\n      │\n", "return x", "def f():\n    x = 1\n    return x\n"),
    ("python", "def f():\n    x = 1\n     │\n", "return x", "def f():\n    x = 1\n    return x\n"),
]  # fmt: skip
UNITS: list[Row] = [
    ("javascript", "function f() {\n\tlet a;\n\t│\n}\n", "if (a) {\n    b();\n}",
     "function f() {\n\tlet a;\n\tif (a) {\n\t\tb();\n\t}\n}\n"),
    ("python", "def f():\n  a = 1\n  │\n", "if a:\n    return 1\nreturn 2",
     "def f():\n  a = 1\n  if a:\n    return 1\n  return 2\n"),
    ("python", "def f():\n   a = 1\n   │\n", "if a:\n        return 1",
     "def f():\n   a = 1\n   if a:\n      return 1\n"),
    ("go", "func main() {\n\tx := 1\n\t│\n}\n",
     "for i := range x {\n            if i > 0 {\n                    run(i)\n            }\n    }",
     "func main() {\n\tx := 1\n\tfor i := range x {\n\t\tif i > 0 {\n\t\t\trun(i)\n\t\t}\n\t}\n}\n"),
    ("c", "int f() {\n    int a;\n    │\n}\n", "if (a) {\n\t\tb();\n\t}",
     "int f() {\n    int a;\n    if (a) {\n        b();\n    }\n}\n"),
    ("python", "class A:\n    def f():\n        x\n        │\n", "if x:\n    return 1\nelse:\n    return 2",
     "class A:\n    def f():\n        x\n        if x:\n            return 1\n        else:\n            return 2\n"),
    ("javascript", "class A {\n    f() {\n        let a;\n        │\n    }\n}\n", "if (a) {\n  b();\n}\nc();",
     "class A {\n    f() {\n        let a;\n        if (a) {\n            b();\n        }\n        c();\n    }\n}\n"),
]  # fmt: skip
OUTER_LEVELS: list[Row] = [
    ("python", "try:\n    x = 1\n    │\ny = 2\n", "except E:\n        x = 2",
     "try:\n    x = 1\nexcept E:\n    x = 2\ny = 2\n"),
    ("python", "for a in b:\n    x = 1\n    │\ny = 2\n", "else:\n    x = 2",
     "for a in b:\n    x = 1\nelse:\n    x = 2\ny = 2\n"),
    ("python", "try:\n    x = 1\n    │\n", "finally:\n        x = 2", "try:\n    x = 1\nfinally:\n    x = 2\n"),
    ("python", "match a:\n    case 1:\n        x = 1\n        │\n", "case 2:\n            x = 2",
     "match a:\n    case 1:\n        x = 1\n    case 2:\n        x = 2\n"),
    ("javascript", "if (a) {\n  b();\n  │\n", "} else {\n    c();\n  }", "if (a) {\n  b();\n} else {\n  c();\n}\n"),
    ("javascript", "try {\n  b();\n  │\n", "} catch (e) {\n  c();\n}", "try {\n  b();\n} catch (e) {\n  c();\n}\n"),
    ("ruby", "if a\n  b\n  │\n", "else\n  c\nend", "if a\n  b\nelse\n  c\nend\n"),
    ("ruby", "if a\n  b\n  │\n", "elsif d\n    c\n  end", "if a\n  b\nelsif d\n  c\nend\n"),
    ("ruby", "begin\n  b\n  │\n", "rescue E => e\n  c\nend", "begin\n  b\nrescue E => e\n  c\nend\n"),
    ("lua", "if a then\n  b()\n  │\n", "else\n  c()\nend", "if a then\n  b()\nelse\n  c()\nend\n"),
    ("shellscript", "if a; then\n  b\n  │\n", "else\n  c\nfi", "if a; then\n  b\nelse\n  c\nfi\n"),
    ("shellscript", "for x in y; do\n  b\n  │\n", "done", "for x in y; do\n  b\ndone\n"),
    ("shellscript", "case $x in\n  a)\n    b\n    ;;\n    │\n", "esac", "case $x in\n  a)\n    b\n    ;;\nesac\n"),
    ("html", "<div>\n  <p>a</p>\n  │\n", "</div>", "<div>\n  <p>a</p>\n</div>\n"),
    ("javascriptreact", "x = <div>\n  <p>a</p>\n  │\n", "</div>;", "x = <div>\n  <p>a</p>\n</div>;\n"),
    ("php", "<?php\nif ($a):\n    b();\n    │\n", "endif;", "<?php\nif ($a):\n    b();\nendif;\n"),
    ("php", "<?php\nif ($a):\n    b();\n    │\n", "else:\n    c();\nendif;",
     "<?php\nif ($a):\n    b();\nelse:\n    c();\nendif;\n"),
    ("sql", "BEGIN\n  SELECT 1;\n  │\n", "END;", "BEGIN\n  SELECT 1;\nEND;\n"),
    ("python", "class A:\n    def f(self):\n        return 1\n        │\n",
     "@property\n    def g(self):\n        return 2",
     "class A:\n    def f(self):\n        return 1\n    @property\n    def g(self):\n        return 2\n"),
    ("cpp", "class A {\n  int a;\n  │\n};\n", "public:\n  int b;", "class A {\n  int a;\npublic:\n  int b;\n};\n"),
    ("java", "switch (a) {\n    case 1:\n        b();\n        break;\n        │\n}\n", "default:\n            c();",
     "switch (a) {\n    case 1:\n        b();\n        break;\n    default:\n        c();\n}\n"),
    ("python", "def f():\n    if a:\n        return 1\n        │\n", "return 2",
     "def f():\n    if a:\n        return 1\n    return 2\n"),
    ("python", "x = [\n    1,\n    │\n", "]", "x = [\n    1,\n]\n"),
    ("python", "foo(\n    a,\n    │\n", ")\nbar()", "foo(\n    a,\n)\nbar()\n"),
]  # fmt: skip
CARRIAGE_RETURNS: list[Row] = [
    ("python", "def f():\r\n    │\r\n", "if a:\n        return 1\n    return 2\n",
     "def f():\r\n    if a:\r\n        return 1\r\n    return 2\r\n"),
    ("python", "def f():\r\n    │\r\n", "if a:\r\n        return 1\r\n    return 2\r\n",
     "def f():\r\n    if a:\r\n        return 1\r\n    return 2\r\n"),
    ("java", "void go() {\r\n    │\r\n}\r\n", "run();\n}", "void go() {\r\n    run();\r\n}\r\n"),
    ("python", "a = 1\r\n│\r\nb = 2\r\n", "b = 2\r\n", None),
    ("python", "def f():│\r\n", "return 1", "def f():\r\n    return 1\r\n"),
    ("javascript", "f(│)\r\n", "{\n  a: 1,\n})", "f({\r\n  a: 1,\r\n})\r\n"),
    ("python", "# c│\r\n", "\ncfg = 1", "# c\r\ncfg = 1\r\n"),
]  # fmt: skip
