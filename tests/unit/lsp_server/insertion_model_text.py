"""Inputs of the same kinds as the reported faults: what is no code or there already, and what has to be kept.

Rows as in filter_tables.py.
"""

from __future__ import annotations

from filter_tables import Row

MODEL_TOKENS: list[Row] = [
    ("python", "def f():\n    │\n", fill, "def f():\n    return 1\n")
    for fill in (
        "<think>\nLet me see.\n</think>\nreturn 1",
        "<think>x</think>return 1",
        "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>return 1",
        "<|channel>thought\n<channel|>return 1",
        "<|channel>thought\nWell.\n<channel|>return 1",
        "return 1<|im_end|>\n<|im_start|>user\nhi",
        "return 1<end_of_turn>",
        "<bos>return 1<eos>",
        "<|fim_middle|>return 1<|fim_suffix|>",
        "return 1<|endoftext|>def g(): pass",
        "[MASK]return 1",
        "<unk>return 1",
        "<start_of_turn>model\nreturn 1<end_of_turn>",
        "<s>[INST] return 1 [/INST]",
        "return 1</s>",
        "<|begin_of_text|>return 1<|eot_id|>",
        "<|assistant|>\nreturn 1",
        "<thought>a\nb</thought>\nreturn 1",
        "<thinking>a</thinking>\n\nreturn 1",
        "<reasoning>a</reasoning>return 1",
        "<code>return 1</code>",
        "<answer>\nreturn 1\n</answer>",
        "<｜fim▁hole｜>return 1<｜end▁of▁sentence｜>",
        "<fim_middle>return 1<fim_suffix>",
        "return 1 <|file_sep|>",
        "<MID>return 1<EOT>",
        "<|cursor|>return 1",
        "return <pad><pad>1<pad>",
        "<tool_call>return 1</tool_call>",
    )
]
MODEL_TOKENS_REFUSED: list[Row] = [
    ("python", "def f():\n    │\n", fill, None) for fill in ("<think>\nI should return one",)
]
CHAT_ANSWERS: list[Row] = [
    ("python", "def f():\n    │\n", fill, "def f():\n    return 1\n")
    for fill in (
        "```python\nreturn 1\n```",
        "```\nreturn 1\n```",
        "```py\n    return 1\n```",
        "~~~python\nreturn 1\n~~~",
        "Here's the code:\n```python\nreturn 1\n```\nHope this helps!",
        "Sure, here is the completed function:\n\n```python\nreturn 1\n```",
        "```python\ndef f():\n    return 1\n```",
        "  ```python\n    return 1\n  ```",
        "````python\nreturn 1\n````",
        "```python\nreturn 1",
        "return 1\n```",
        "return 1\n```\n\nThis function returns 1.",
        "Certainly! \n```Python\nreturn 1\n```",
        "**Answer:**\n```python\nreturn 1\n```",
        "1. First:\n```python\nreturn 1\n```\n2. Then:\n```python\nx()\n```",
        "```python return 1```",
        "```python\nreturn 1```",
        "`return 1`",
        "Output:\n```\nreturn 1\n```",
        "The missing code is:\n```python\nreturn 1\n```",
        "return 1\n\nThis function returns 1.",
        "return 1\n\nExplanation:\nThe function returns one.",
    )
]
CHAT_ANSWERS_REFUSED: list[Row] = [
    ("python", "def f():\n    │\n", fill, None)
    for fill in (
        "Sure! I can help with that.",
        "Here is the completed code:",
        "I'm sorry, I cannot",
        "This code returns 1.",
        "The function should return 1.",
        "Here's a possible implementation:\n\nreturn 1",
        "Let me complete this for you:\nreturn 1",
        "To complete this function, you need to return 1.",
        "As an AI language model, I",
        "Note: the code above",
        "Explanation: returns one",
        "You can use return 1 here.",
        "It looks like you want to return 1.",
        "Okay, here's the code",
        "Based on the context, the completion is:",
        "Below is the code:",
    )
]
CHAT_ANSWERS_ELSEWHERE: list[Row] = [
    ("python", "# │\n", "Sure, this works", "# Sure, this works\n"),
    ("python", 'x = "│"\n', "Here is the text:", 'x = "Here is the text:"\n'),
    ("python", '"""│"""\n', "This function returns 1.", '"""This function returns 1."""\n'),
    ("javascript", "/**\n * │\n */\n", "This function returns 1.", "/**\n * This function returns 1.\n */\n"),
    ("javascript", "function f() {\n  │\n}\n", "```javascript\nreturn 1;\n```", "function f() {\n  return 1;\n}\n"),
    ("javascript", "function f() {\n  │\n}\n", "```js\nfunction f() {\n  return 1;\n}\n```",
     "function f() {\n  return 1;\n}\n"),
    ("html", "<p>│</p>\n", "Here is a text", "<p>Here is a text</p>\n"),
]  # fmt: skip
CHARACTERS: list[Row] = [
    ("python", "def f():\n    │\n", fill, "def f():\n    return 1\n")
    for fill in (
        "return\xa01",
        "\ufeffreturn 1",
        "return\u200b 1",
        "return\x00 1",
        "ret\x08urn 1",
        "return 1\x1b[0m",
        "return 1\u2028",
        "return\u2060 1",
        "return 1\x7f",
        "\x0creturn 1",
        "return 1\r",
        "return 1\r\n",
        "return 1\x85",
        "re\xadturn 1",
        "\u202areturn 1\u202c",
        "return 1\u200d",
        "return 1\ud800",
        "return 1\udc00",
    )
]
CHARACTERS_ELSEWHERE: list[Row] = [
    ("python", "x = │\n", '"a\xa0b"', 'x = "a\xa0b"\n'),
    ("python", "x = │\n", '"👨\u200d👩\u200d👧"', 'x = "👨\u200d👩\u200d👧"\n'),
    ("python", "x = │\n", '"é́"', 'x = "é́"\n'),
    ("python", "x = │\n", '"\\u0008"', 'x = "\\u0008"\n'),
    ("python", "x = │\n", '"�"', None),
    ("python", 's = "🤦🏽"; t = │\n', "s.upper()\x00", 's = "🤦🏽"; t = s.upper()\n'),
]  # fmt: skip
CIRCLES: list[Row] = [
    ("python", "│\n", "x = 1\nx = 1\nx = 1\nx = 1\nx = 1\nx = 1\nx = 1\nx = 1\nx = 1\nx = 1\n", "x = 1\n"),
    ("python", "x = │\n", "foo(foo(foo(foo(foo(foo(foo(foo(foo(foo(", None),
    ("python", "x = │\n", "the the the the the the the the the the the", None),
    ("python", "│\n", "def a():\n    pass\n\ndef a():\n    pass\n\ndef a():\n    pass\n", "def a():\n    pass\n"),
    ("python", "│\n", "if a:\n    b()\nelif a:\n    b()\nelif a:\n    b()\nelif a:\n    b()\n",
     "if a:\n    b()\nelif a:\n    b()\n"),
    ("python", "# │\n", "-----------------------------------------", "# -----------------------------------------\n"),
    ("html", "│\n", "<br><br><br><br><br><br><br><br><br><br><br><br>", None),
    ("javascript", "│\n", "a();\n\na();\n\na();\n\na();\n", "a();\n"),
    ("python", "x = │\n", "a.b.a.b.a.b.a.b.a.b.a.b.a.b.a.b.a.b.a.b.", None),
    ("python", "import os\n│\n", "import os\nimport os", None),
]  # fmt: skip
NOTHING: list[Row] = [
    ("python", "x = 1\n│\n", "", None),
    ("python", "x = 1\n│\n", "  ", None),
    ("python", "x = 1\n│\n", "\n", None),
    ("python", "x = 1\n│\n", "\t\n", None),
    ("python", "x = 1\n│\n", "\r\n", None),
    ("python", "x = 1\n│\n", " \xa0", None),
    ("python", "x = 1\n│\n", "\u200b", None),
    ("python", "x = 1\n│\n", "\n\n\n", None),
]  # fmt: skip
LINES_BELOW: list[Row] = [
    ("python", "a = 1\n│\nb = 2\nc = 3\n", "b = 2\nc = 3", None),
    ("python", "a = 1\n│\n\n\nb = 2\n", "b = 2", None),
    ("python", "def f(a):\n    │\n    return a\n", "a += 1\n    return a", "def f(a):\n    a += 1\n    return a\n"),
    ("python", "def f(a):\n    │\n    return a\n", "return a", None),
    ("python", "def f(a):│\n    return a\n", "\n    return a", None),
    ("javascript", "let a = 1;\n│\nlet b = 2;\n", "let b=2;", None),
    ("python", "│\nimport os\nimport sys\n", "import os\nimport sys", None),
    ("python", "import re\n│import os\n", "import os\n", None),
    ("go", "x := 1\n│\ny := 2\n", "y := 2\n", None),
    ("python", "a = 1\n│\n# next\nb = 2\n", "# next\nb = 2", None),
    ("python", "a = 1\n│\nb = 2\n", "x = 3\nb = 2\nc = 3", "a = 1\nx = 3\nb = 2\n"),
]  # fmt: skip
FINISHED: list[Row] = [
    ("python", "return x│\n", "return x", None),
    ("python", "x = 1│\n", "x = 1", None),
    ("javascript", "import a from 'a';│\n", "import a from 'a';", None),
    ("python", "foo(a)│\n", "foo(a)", None),
    ("c", "call(a);│\n", "call(a);\n", None),
    ("c", "call(a); │\n", "call(a);", None),
    ("python", "import os\n│\n", "import os", None),
    ("c", "    call(a);\n    │\n", "call(a);", None),
]  # fmt: skip
WORDS: list[Row] = [
    ("python", "import numpy\nx = num│.zeros(3)\n", "py.zeros(3)", "import numpy\nx = numpy.zeros(3)\n"),
    ("python", "ret│\n", "return x", "return x\n"),
    ("python", "foo.ba│\n", "bar(1)", "foo.bar(1)\n"),
    ("javascript", "con│\n", "const a = 1;", "const a = 1;\n"),
    ("python", "self.na│ = name\n", "me = name", "self.name = name\n"),
    ("python", "self.na│\n", "self.name", "self.name\n"),
    ("python", "    ret│\n", "    return x", "    return x\n"),
    ("php", "$us│\n", "$user->id;", "$user->id;\n"),
    ("css", "back│\n", "background: red;", "background: red;\n"),
    ("css", "font-│\n", "font-size: 1px;", "font-size: 1px;\n"),
]  # fmt: skip
KEPT: list[Row] = [
    ("python", "a = norm(x)\n│\n", "b = norm(y)", "a = norm(x)\nb = norm(y)\n"),
    ("python", "a1 = 1\n│\na3 = 3\n", "a2 = 2", "a1 = 1\na2 = 2\na3 = 3\n"),
    ("javascript", "case 1:\n  f(1);\n  break;\ncase 2:\n  │\n", "f(2);\n  break;",
     "case 1:\n  f(1);\n  break;\ncase 2:\n  f(2);\n  break;\n"),
    ("python", "x = [│]\n", "[1, 2], [3, 4]", "x = [[1, 2], [3, 4]]\n"),
    ("python", "x = [1, │]\n", "1, 1, 1", "x = [1, 1, 1, 1]\n"),
    ("javascript", "if (a) {\n  b();\n}│\n", " else {\n  c();\n}", "if (a) {\n  b();\n} else {\n  c();\n}\n"),
    ("json", '[\n  {"a": 1},\n  │\n]\n', '{"a": 2}', '[\n  {"a": 1},\n  {"a": 2}\n]\n'),
    ("python", "│\nb = norm(y)\n", "b = norm(x)", "b = norm(x)\nb = norm(y)\n"),
    ("java", "int a = b;\n│\nint c = d;\n", "int b = d;", "int a = b;\nint b = d;\nint c = d;\n"),
    ("python", "def f():\n    return 1\n\n\n│\n\n\ndef h():\n    return 1\n", "def g():\n    return 1",
     "def f():\n    return 1\n\n\ndef g():\n    return 1\n\n\ndef h():\n    return 1\n"),
    ("c", "f(a, b);\n│\nf(a, c);\n", "f(b, c);", "f(a, b);\nf(b, c);\nf(a, c);\n"),
]  # fmt: skip
