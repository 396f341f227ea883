"""Examples for every filter: language, document with a cursor, what the model wrote, what stands there once accepted.

Each table belongs to one filter; a mark in the expectation says where the cursor ends. None: nothing is offered.
"""

from __future__ import annotations

Row = tuple[str, str, str, str | None]

CONTROL_CHARACTERS: list[Row] = [
    ("python", "x = │\n", "1\x00\x1b[0m2\ufeff\u202e", "x = 12│\n"),
    ("python", "x = │\n", "1\r", "x = 1│\n"),
    ("python", "x = │\n", "f(\r\n  1)", "x = f(\n  1)│\n"),
    ("python", "x = │\n", "'a\tb'", "x = 'a\tb'│\n"),
    ("python", "x = │\n", "'\ufffd'", None),
]
SPECIAL_TOKENS: list[Row] = [
    *[
        ("python", "x = │\n", f"1{marker}", "x = 1│\n")
        for marker in (
            "<|endoftext|>",
            "<|im_end|>",
            "<turn|>",
            "</s>",
            "<eos>",
            "<|fim_middle|>",
            "<pad>",
            "<eom>",
            "[/INST]",
            "<extra_id_0>",
        )
    ],
    ("python", "x = │\n", "<|im_start|>assistant\n1<|im_end|>", "x = 1│\n"),
    ("python", "x = │\n", "1<|endoftext|>def g():\n  pass", "x = 1│\n"),
    ("html", "a <s>│</s>\n", "b <mask>", "a <s>b <mask>│</s>\n"),
    ("python", "TOKENS = ['<pad>', │]\n", "'<eos>'", "TOKENS = ['<pad>', '<eos>'│]\n"),
    ("python", "x = │\n", "a < b | c > d", "x = a < b | c > d│\n"),
]
CHAT: list[Row] = [
    ("python", "def f():\n    │\n", "```python\n    return 1\n```\n", "def f():\n    return 1│\n"),
    ("python", "def f():\n    │\n", "```\nreturn 1\n```\nThis returns 1.", "def f():\n    return 1│\n"),
    ("python", "def f():\n    │\n", "Sure!\n```py\nreturn 1", "def f():\n    return 1│\n"),
    ("python", "def f():\n    │\n", "return 1\n```", "def f():\n    return 1│\n"),
    ("python", "def f():\n    │\n", "return 1\n```\n\nExplanation: it returns 1.", "def f():\n    return 1│\n"),
    ("python", "def f():\n    │\n", "Here is the code:\n\nreturn 1", None),
    ("python", "def f():\n    │\n", "I'm sorry, but I can't help with that.", None),
    ("markdown", "Code:\n│\n", "```python\nx\n```", "Code:\n```python\nx\n```│\n"),
    ("python", "# │\n", "Here is the code: run it", "# Here is the code: run it│\n"),
]
RUNAWAY: list[Row] = [
    ("python", "│\n", "a\nb\na\nb\na\nb\na\nb\n", "a\nb│\n"),
    ("python", "│\n", "x = 1\ny = 2\ny = 2\ny = 2\ny = 2\n", "x = 1\ny = 2│\n"),
    ("python", "import os\n│\n", "import os\nimport os\nimport os\n", None),
    ("python", "x = │\n", "1 + 1 + 1 + 1 + 1 + 1 + 1 + 1", "x = 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1│\n"),
    ("python", "x = [│]\n", "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0", "x = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0│]\n"),
    ("python", "x = │\n", "self.self.self.self.self.self.self.self.self", None),
    ("c", "│\n", "}\n}\n}", "}\n}\n}│\n"),
    ("python", "│\n", "import os\nimport os\nimport o", "import os│\n"),
    ("python", "│\n", "pass\npass\n", "pass\npass│\n"),
    ("lua", "if a then\n  if b then\n    if c then\n      d()\n    │\n", "end\n  end\nend",
     "if a then\n  if b then\n    if c then\n      d()\n    end\n  end\nend│\n"),
    ("python", "if a:\n    │\n", "f()\nf()\nf()", "if a:\n    f()│\n"),
    ("python", "│\n", "if a:\n    f()\nif a:\n    f()\nif a:\n    f()\n", "if a:\n    f()│\n"),
]  # fmt: skip
RETYPES_LINE: list[Row] = [
    ("c", "call(a);│\n", " call(a);", None),
    ("c", "call(a);│\n", "call(a);\ncall(b);", "call(a);\ncall(b);│\n"),
    ("python", "def fo│\n", "def foo(a):", "def foo(a):│\n"),
    ("python", "return│\n", "return x", "return x│\n"),
    ("python", "import numpy as np│\n", "import numpy as np", None),
    ("python", "foo(│\n", "foo(1))", "foo(foo(1))│\n"),
    ("python", "x = foo.ba│\n", "bar()", "x = foo.bar()│\n"),
    ("python", "num│.zeros(3)\n", "numpy", "numpy│.zeros(3)\n"),
    ("python", "x = 10│\n", "100", "x = 10100│\n"),
    ("python", "def f(a):\n    │\n", "def f(a):\n    return a", "def f(a):\n    return a│\n"),
    ("java", "void go() {\n    │\n}\n", "void go() {\n    run();\n}", "void go() {\n    run();│\n}\n"),
    ("python", "def f(a):\n    │\n", "def f(a):", None),
    ("python", "x.append(1)\n│\n", "x.append(1)\nx.append(2)", "x.append(1)\nx.append(1)\nx.append(2)│\n"),
    ("json", "[\n  │\n]\n", "[\n    1\n  ]", "[\n  [\n    1\n  ]│\n]\n"),
]  # fmt: skip
DOUBLE_SPACE: list[Row] = [
    ("python", "x =│\n", " 1", "x = 1│\n"),
    ("python", "x = │\n", "  1", "x = 1│\n"),
    ("python", "x = │ + y\n", " 1 ", "x = 1│ + y\n"),
    ("python", "x = 1  │\n", " # c", "x = 1  # c│\n"),
]
FIRST_INDENT: list[Row] = [
    ("python", "class A:\n    def f(self):\n        return 1\n\n    │\n", "  def g(self):\n      return 2",
     "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2│\n"),
    ("python", "class A:\n    def f(self):\n        return 1\n\n    │\n", "    def g(self):\n        return 2",
     "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 2│\n"),
    ("python", "def f(a):\n    x = 1\n    │\n", "    return 1", "def f(a):\n    x = 1\n    return 1│\n"),
    ("python", "def f(a):\n    │\n", "    x = 1\n    return x", "def f(a):\n    x = 1\n    return x│\n"),
    ("python", "def f(a):\n│\n", "    return 1", "def f(a):\n    return 1│\n"),
    ("javascript", "foo(function() {\n  │\n});\n", "bar();", "foo(function() {\n  bar();│\n});\n"),
    ("javascript", "p = q\n│\n", "  .then(f)", "p = q\n  .then(f)│\n"),
    ("html", "<p>\n  │\n</p>\n", "text", "<p>\n  text│\n</p>\n"),
    ("python", "    │\n", "pass", "    pass│\n"),
]  # fmt: skip
DEDENT: list[Row] = [
    ("python", "try:\n    x = 1\n    │\n", "except E:\n    pass", "try:\n    x = 1\nexcept E:\n    pass│\n"),
    ("python", "def f():\n    if a:\n        x = 1\n        │\n", "elif b:\n        x = 2",
     "def f():\n    if a:\n        x = 1\n    elif b:\n        x = 2│\n"),
    ("python", "def f():\n    if a:\n        x = 1\n    │\n", "else:\n        x = 2",
     "def f():\n    if a:\n        x = 1\n    else:\n        x = 2│\n"),
    ("python", "class A:\n    def f(self):\n        return 1\n        │\n", "def g(self):\n        return 2",
     "class A:\n    def f(self):\n        return 1\n    def g(self):\n        return 2│\n"),
    ("python", "def f():\n    x = 1\n    │\n", "def g():\n        return x\n    return g",
     "def f():\n    x = 1\n    def g():\n        return x\n    return g│\n"),
    ("javascript", "if (a) {\n  b();\n  │\n", "}", "if (a) {\n  b();\n}│\n"),
    ("javascript", "if (a) {\n  b();\n  │\n", "} else {\n  c();\n}", "if (a) {\n  b();\n} else {\n  c();\n}│\n"),
    ("ruby", "if a\n  b\n  │\n", "end", "if a\n  b\nend│\n"),
    ("c", "switch (a) {\n  case 1:\n    b();\n    │\n}\n", "case 2:\n    c();",
     "switch (a) {\n  case 1:\n    b();\n  case 2:\n    c();│\n}\n"),
    ("python", "class A:\n    def f(self):\n        if x:\n            return 1\n            │\n",
     "def g(self):\n        return 2",
     "class A:\n    def f(self):\n        if x:\n            return 1\n    def g(self):\n        return 2│\n"),
    ("python", "try:\n    if x:\n        y()\n        │\n", "except ValueError:\n    pass",
     "try:\n    if x:\n        y()\nexcept ValueError:\n    pass│\n"),
    ("python", "if a:\n    with b:\n        c()\n        │\n", "else:\n    d()",
     "if a:\n    with b:\n        c()\nelse:\n    d()│\n"),
    ("c", "switch (a) {\n  case 1:\n    if (b) {\n      c();\n      │\n", "case 2:",
     "switch (a) {\n  case 1:\n    if (b) {\n      c();\n      case 2:│\n"),
]  # fmt: skip
INDENT_UNIT: list[Row] = [
    ("python", "def f(a):\n    │\n", "if a:\n    return 1", "def f(a):\n    if a:\n        return 1│\n"),
    ("python", "def f(a):\n\tx = 1\n\t│\n", "if a:\n        return 1", "def f(a):\n\tx = 1\n\tif a:\n\t\treturn 1│\n"),
    ("python", "def f(a):\n    x = 1\n    │\n", "if a:\n\t\treturn 1",
     "def f(a):\n    x = 1\n    if a:\n        return 1│\n"),
    ("javascript", "function f() {\n  let x = 1;\n  │\n}\n", "if (x) {\n        run();\n    }",
     "function f() {\n  let x = 1;\n  if (x) {\n    run();\n  }│\n}\n"),
    ("javascript", "function f() {\n  let x = 1;\n  │\n}\n", "if (x) {\n      run();\n  }",
     "function f() {\n  let x = 1;\n  if (x) {\n    run();\n  }│\n}\n"),
    ("makefile", "all:\n\tgcc a.c\n│\n", "    gcc b.c", "all:\n\tgcc a.c\n\tgcc b.c│\n"),
    ("go", "f() {\n\tx := 1\n\t│\n", " y := 2", "f() {\n\tx := 1\n\ty := 2│\n"),
    ("javascript", "│\n", "if (x) {\n   run();\n}", "if (x) {\n   run();\n}│\n"),
    ("lua", "function f()\n   local x = 1\n   │\nend\n", "if x then\n    return x\nend",
     "function f()\n   local x = 1\n   if x then\n      return x\n   end│\nend\n"),
    ("ruby", "def f\n  │\nend\n", "if a\n  b\nelse\n  c\nend", "def f\n  if a\n    b\n  else\n    c\n  end│\nend\n"),
    ("ruby", "class A\n  def f\n    │\n  end\nend\n", "xs.each do |x|\n  p x\nend",
     "class A\n  def f\n    xs.each do |x|\n      p x\n    end│\n  end\nend\n"),
    ("go", "func main() {\n\t│\n}\n", "if x {\n    run()\n}", "func main() {\n\tif x {\n\t\trun()\n\t}│\n}\n"),
    # GNU style: two columns for a level, and a tab for eight of them. There is no telling: it stays as it is.
    ("c", "int f()\n{\n  if (a)\n    {\n      b();\n      if (c)\n\td();\n      │\n}\n", "e();\n      g(\"\\",
     "int f()\n{\n  if (a)\n    {\n      b();\n      if (c)\n\td();\n      e();\n      g(\"\\│\n}\n"),
    ("shellscript", "f() {\n\tcat <<-E\n\t\ta\n\t\tb\n\t\t │\n", "c\n\tE",
     "f() {\n\tcat <<-E\n\t\ta\n\t\tb\n\t\t c\n\tE│\n"),
    ("c", "f() {\n    g();\n}\n\nstatic int f(int a,\n             │\n", "int b) {\n    return a;",
     "f() {\n    g();\n}\n\nstatic int f(int a,\n             int b) {\n    return a;│\n"),
    ("python", "if a:\n    x = \"\"\"│\n", "as follows:\n  this", "if a:\n    x = \"\"\"as follows:\n  this│\n"),
    ("python", "def f(a│\n        return 1\n    return 2\n", "):\n    if a:",
     "def f(a):\n    if a:│\n        return 1\n    return 2\n"),
    ("html", "<p>\n    │\n</p>\n", "<!-- a -->\n    <b></b>", "<p>\n    <!-- a -->\n    <b></b>│\n</p>\n"),
    ("c", "f() {\n\tg();\n\t│\n}\n", "// as follows:\n\th();", "f() {\n\tg();\n\t// as follows:\n\th();│\n}\n"),
]  # fmt: skip
ONE_LINE: list[Row] = [
    ("python", "for │ in xs:\n", "x in xs:\n    print(x)", "for x│ in xs:\n"),
    ("python", "if │ == 3:\n", "x\nprint()", "if x│ == 3:\n"),
    ("html", "<div>│</div>\n", "\n  <p/>\n</div>", "<div>\n  <p/>\n│</div>\n"),
]
COMMENT_BEFORE_REST: list[Row] = [
    ("python", "print(│)\n", "a  # (see b)", "print(a│)\n"),
    ("python", "print(│)\n", "'#a'", "print('#a'│)\n"),
    ("javascript", "f(│);\n", "a // b", "f(a│);\n"),
    ("python", "x = │\n", "1  # one", "x = 1  # one│\n"),
    ("javascript", "s = `${│}`\n", "f(`https://x/${y}`)}`,", "s = `${f(`https://x/${y}`)}`,│\n"),
]
REPEATS_SUFFIX: list[Row] = [
    ("javascript", "draw(a,│ b);\n", " c, b);", "draw(a, c,│ b);\n"),
    ("javascript", "draw(a,│ b);\n", " c,", "draw(a, c,│ b);\n"),
    ("javascript", "draw(a,│ b);\n", " c, b", "draw(a, c,│ b);\n"),
    ("python", "x = foo(│a, b)\n", "z, a,b)", "x = foo(z, │a, b)\n"),
    ("python", "if │ == 3:\n", "x == 3:", "if x│ == 3:\n"),
    ("html", "<p>│</p>\n", "text</p>", "<p>text│</p>\n"),
    ("html", "<p>\n  │\n</p>\n", "text\n</p>", "<p>\n  text│\n</p>\n"),
    ("python", "a = 1\n│\nb = 2\nc = 3\n", "x = 0\nb = 2\nc = 3", "a = 1\nx = 0│\nb = 2\nc = 3\n"),
    ("python", "a = 1\n│\n\nb = 2\n", "b  =  2", None),
    ("python", "def f():\n    if a:\n        │\n    return None\n", "return None",
     "def f():\n    if a:\n        return None│\n    return None\n"),
    ("javascript", "if (a) {\n  │\n}\nreturn b;\n", "return b;", "if (a) {\n  return b;│\n}\nreturn b;\n"),
    ("python", "def f():│\n    pass\n", "\n    return 1\n    pass", "def f():\n    return 1│\n    pass\n"),
    ("python", "num│.zeros(3)\n", "py.zeros(3)", "numpy│.zeros(3)\n"),
    ("typescript", "const a: │ = 3;\n", "number = 3;", "const a: number│ = 3;\n"),
    ("ruby", "if a\n  │\nend\n", "if b\n    c\n  end", "if a\n  if b\n    c\n  end│\nend\n"),
    ("ruby", "if a\n  │\nend\n", "b\nend", "if a\n  b│\nend\n"),
    ("sql", "SELECT │ FROM t;\n", "a, b FROM t;", "SELECT a, b│ FROM t;\n"),
    ("rust", "let v: Vec<│> = vec![];\n", "i32>", "let v: Vec<i32│> = vec![];\n"),
    ("html", "<p│></p>\n", " class='a'>", "<p class='a'│></p>\n"),
    ("cpp", "x = a │> b;\n", "- c", "x = a - c│> b;\n"),
    ("python", "foo(│)\nbar()\n", "a)\nbar()", "foo(a)│\nbar()\n"),
    ("python", "foo(│)\nbar()\n", "a,\nbar()", "foo(a,\nbar()│)\nbar()\n"),
    ("python", "def f():\n    \"\"\"│\"\"\"\n    return 1\n", "Return one.\"\"\"\n    return 1",
     "def f():\n    \"\"\"Return one.\"\"\"│\n    return 1\n"),
    ("javascript", "/**\n * │\n */\nf();\n", "Does it.\n * @returns {void}\n */",
     "/**\n * Does it.\n * @returns {void}│\n */\nf();\n"),
    ("go", "f() {\n\t│\n\t\treturn err\n\t}\n\tresult := 1\n",
     "if err != nil {\n\t\treturn err\n\t}\n\tif err := g(); err != nil {",
     "f() {\n\tif err != nil {\n\t\treturn err\n\t}\n\tif err := g(); err != nil {│\n"
     "\t\treturn err\n\t}\n\tresult := 1\n"),
]  # fmt: skip
CLOSES_AGAIN: list[Row] = [
    ("javascript", "foo(function() {\n  │\n});\n", "bar();\n});", "foo(function() {\n  bar();│\n});\n"),
    ("java", "void go() {\n    if (x) {\n        │\n}\n", "run();\n    }",
     "void go() {\n    if (x) {\n        run();\n    }│\n}\n"),
    ("java", "void go() {\n    if (x) {\n        │\n    }\n}\n", "run();\n    }\n}",
     "void go() {\n    if (x) {\n        run();│\n    }\n}\n"),
    ("java", "void go() {\n    if (x) {\n        │\n    }\n}\n", "run();\n    } else {\n        stop();\n    }",
     "void go() {\n    if (x) {\n        run();│\n    }\n}\n"),
    ("python", "foo(\n    │\n)\n", "a,\n    b,\n)", "foo(\n    a,\n    b,│\n)\n"),
    ("go", "func main() {\n\tfor {\n\t\t│\n\t}\n}\n", "run()\n\t}\n}", "func main() {\n\tfor {\n\t\trun()│\n\t}\n}\n"),
    ("css", "a {\n  │\n}\n", "color: red;\n}\nb {\n  color: blue;", "a {\n  color: red;\n}\nb {\n  color: blue;│\n}\n"),
    ("c", "f() {\n    if (a) {\n        b();\n    │\n    }\n}\n", "} else {\n        c();",
     "f() {\n    if (a) {\n        b();\n    } else {\n        c();│\n    }\n}\n"),
    ("python", "X = 1\n\"\"\"One│\nY = 2\n\"\"\"Two.\"\"\"\n", ".\"\"\"",
     "X = 1\n\"\"\"One.\"\"\"│\nY = 2\n\"\"\"Two.\"\"\"\n"),
    ("python", "X = 1\n\"\"\"One│\n\"\"\"Two.\"\"\"\n", ".\"\"\"\n\nY = 2",
     "X = 1\n\"\"\"One.\"\"\"\n\nY = 2│\n\"\"\"Two.\"\"\"\n"),
    ("python", "\"\"\"One│\n\"\"\"\n", " two.\n\"\"\"", "\"\"\"One two.│\n\"\"\"\n"),
    ("python", "x = [{\n    'a': 'b│\n    'c': 1,\n}]\n", "c',", "x = [{\n    'a': 'bc',│\n    'c': 1,\n}]\n"),
]  # fmt: skip
TAKEN_OVER: list[Row] = [
    ("python", "foo(bar(│))\n", "a))", "foo(bar(a))│\n"),
    ("python", "foo(bar(│))\n", "a)", "foo(bar(a)│)\n"),
    ("python", "foo(bar(│)\n", "a))", "foo(bar(a))│\n"),
    ("python", "foo(bar(│)\n", "a)", "foo(bar(a)│)\n"),
    ("javascript", "foo(│);\n", "a);", "foo(a);│\n"),
    ("javascript", "foo(│)\n", "a);", "foo(a);│\n"),
    ("javascript", "foo(│);\n", "a)", "foo(a)│;\n"),
    ("python", 'print("│")\n', 'hi")', 'print("hi")│\n'),
    ("python", "print(│)\n", "foo(a)", "print(foo(a)│)\n"),
    ("python", "print(│)\n", 'f":)"', 'print(f":)"│)\n'),
    ("python", 'print(f"{│}")\n', 'x}")', 'print(f"{x}")│\n'),
    ("python", '"""Doc│"""\n', 'string."""', '"""Docstring."""│\n'),
    ("javascript", "function f() {│}\n", "\n  return 1;\n}\n", "function f() {\n  return 1;\n}│\n"),
    ("javascript", "function f() {│}\n", "\n  return 1;\n", "function f() {\n  return 1;\n│}\n"),
    ("javascript", "const f = () => {│};\n", "\n  g();\n};\n", "const f = () => {\n  g();\n};│\n"),
    ("html", '<div class="│">\n', 'a">', '<div class="a">│\n'),
    ("c", "x = │;\n", "1;", "x = 1;│\n"),
    ("javascript", "a = {b: │,\n", "1,", "a = {b: 1,│\n"),
    ("javascript", "r = │;\n", "/[)}]/g;", "r = /[)}]/g;│\n"),
    ("javascript", "s = [`a ${│}`\n", "x}`,", "s = [`a ${x}`,│\n"),
    ("javascript", "s = `a ${│}`;\n", "f(`b ${c}`)}`;", "s = `a ${f(`b ${c}`)}`;│\n"),
    ("javascript", "s = `a ${f(│)}`;\n", "x)} b`;", "s = `a ${f(x)} b`;│\n"),
    ("javascript", "s = `a │`;\n", "${x}/b`;", "s = `a ${x}/b`;│\n"),
    ("javascript", "f(`a ${x} │`);\n", "${y}`);", "f(`a ${x} ${y}`);│\n"),
    ("c", "#if A\nf() {\n#else\ng() {\n#endif\n  free(│)\n}\n", "a);",
     "#if A\nf() {\n#else\ng() {\n#endif\n  free(a);│\n}\n"),
    # The window of a large file may begin within a long string.
    *[
        ("python", f"{above}print(│)\n", "\"hi\")", f"{above}print(\"hi\")│\n")
        for above in (
            'ends here.\n    """\n',
            'ends here."""\n',
            'a\n""".strip()\n',
            '"""One line."""\n',
            '"""\nText.\n"""\n',
            '    """Text\n    more.\n    """\n',
            'x = """\nText.\n"""\n',
            'return f"""Text\n{x}"""\n',
            "g('''\n(''')\n",
        )
    ],
    ("typescript", "const x: A<│>;\n", "B>;", "const x: A<B>;│\n"),
    ("javascript", "f(│);\n", "(x) => x", "f((x) => x│);\n"),
]  # fmt: skip
TRAILING_BLANK: list[Row] = [
    ("python", "import os│\n", "\n\n\ndef f():\n    pass\n\n\n", "import os\n\n\ndef f():\n    pass│\n"),
    ("python", "x = 1\n│", "y = 2\n", "x = 1\ny = 2│"),
    ("python", "x =│ 1\n", " y +", "x = y +│ 1\n"),
]
NOTHING_LEFT: list[Row] = [
    ("python", "\n\n│\n\n", "\n", None),
    ("python", "x = │\n", "", None),
    ("python", "if a:\n    │\n", "    ", None),
]
LINE_ENDS: list[Row] = [
    ("python", "a\r\nx = │\r\n", "f(\n  1)", "a\r\nx = f(\r\n  1)│\r\n"),
    ("python", "a\rx = │\r", "f(\n  1)", "a\rx = f(\r  1)│\r"),
    ("python", "x = │", "f(\n  1)", "x = f(\n  1)│"),
]

TABLES = {name.lower(): rows for name, rows in globals().copy().items() if name.isupper() and isinstance(rows, list)}
