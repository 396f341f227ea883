"""What holds for every document, cursor and fill, in several languages."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import Candidate, FillRequest
from lsp_server import filters
from lsp_server.insertion import Insertion

LANGUAGES = (
    "python", "javascript", "typescriptreact", "go", "c", "rust", "java", "csharp", "ruby", "lua", "shellscript", "php",
    "html", "css", "json", "yaml", "sql", "markdown", "unknown", "",
)  # fmt: skip
PIECES = (
    *("x", "foo", " = ", "1", ", ", ";", ":", ".", "=>", "->", " ", "  ", "    ", "\t", "\n", "\n    ", "\n\t", "\r\n"),
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        "<",
        ">",
        "</p>",
        "<p>",
        "<br/>",
        "${",
        '"',
        "'",
        "`",
        '"""',
        "'''",
        "\\",
        "/*",
        "*/",
    ),
    *("# c", "// c", "-- c", "<!-- ", "-->", "if a:", "else:", "elif b:", "return 1", "def f():", "class A:", "pass"),
    *(
        "if (a) {",
        "} else {",
        "}\n",
        "end",
        "fi",
        "done",
        "esac",
        "then",
        "do",
        "endif;",
        "case 1:",
        "@d",
        "function f() {",
    ),
    *(
        "<think>",
        "</think>",
        "<|im_end|>",
        "<mask>",
        "```",
        "```python\n",
        "Sure! Here is the code:",
        "This is the answer.\n",
    ),
    *(
        "\0",
        "\x1b[0m",
        "\u200b",
        "\u00a0",
        "\ufeff",
        "\u2028",
        "\x0c",
        "🤦🏽",
        "名",
        "é",
        "aaaa",
        "x1\n",
        "x2\n",
        "x3\n",
    ),
)
pieces = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
any_text = pieces | st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
any_fill = pieces | st.text(st.characters(), max_size=30)
languages = st.sampled_from(LANGUAGES)

PAIRS = {")": "(", "]": "[", "}": "{"}
words = st.sampled_from(["x", " ", "\n", "\n  ", "foo", ";", ", ", "\t", "y = 1\n", "if ", ": "])
balanced = st.recursive(
    words,
    lambda inner: (
        st.tuples(st.sampled_from(["()", "[]", "{}"]), st.lists(inner, max_size=4)).map(
            lambda made: made[0][0] + "".join(made[1]) + made[0][1]
        )
        | st.lists(inner, max_size=4).map("".join)
    ),
    max_leaves=16,
)
bracket_fill = st.lists(st.sampled_from([*"()[]{}", "x", " ", "\n", "\n  ", ";", ",", "foo"]), max_size=12).map("".join)


def placed(prefix: str, suffix: str, fill: str, language: str, replace_before: int = 0) -> Insertion | None:
    request = FillRequest(id="", language=language, prefix=prefix, suffix=suffix)
    made = filters.insertion(Candidate(text=fill, replace_before=replace_before), request)
    if isinstance(made, filters.Rejected):
        assert made.reason
        return None
    return made


def in_order(part: str, whole: str) -> bool:
    letters = iter(whole)
    return all(char in letters for char in part)


@given(prefix=any_text, suffix=any_text, fill=any_fill, replace_before=st.integers(0, 5), language=languages)
def test_an_insertion_touches_white_space_and_what_it_writes_again_and_nothing_else(
    prefix: str, suffix: str, fill: str, replace_before: int, language: str
) -> None:
    made = placed(prefix, suffix, fill, language, replace_before)
    if made is None:
        return
    removed, taken = prefix[len(prefix) - made.before :], suffix[: made.after]
    assert set(removed) <= {" ", "\t"}
    assert not set(taken) & {"\r", "\n"}
    assert in_order("".join(taken.split()), made.text)
    after = made.applied(prefix, suffix)
    assert after.startswith(prefix[: len(prefix) - made.before]) and after.endswith(suffix[made.after :])
    # The range is minimal, and accepting changes something.
    assert after != prefix + suffix
    assert not removed or removed[:1] != made.text[:1]
    assert not any(0xD800 <= ord(char) <= 0xDFFF for char in made.text)


@given(prefix=any_text, suffix=any_text, fill=any_fill, language=languages)
def test_filtering_once_more_changes_nothing(prefix: str, suffix: str, fill: str, language: str) -> None:
    made = placed(prefix, suffix, fill, language)
    if made is None:
        return
    again = placed(prefix, suffix, made.text, language, made.before)
    assert again is not None
    assert again.applied(prefix, suffix) == made.applied(prefix, suffix)


@given(document=balanced, data=st.data(), fill=bracket_fill, language=languages)
def test_a_balanced_document_never_gets_a_closer_that_nothing_opens(
    document: str, data: st.DataObject, fill: str, language: str
) -> None:
    at = data.draw(st.integers(0, len(document)))
    made = placed(document[:at], document[at:], fill, language)
    if made is None:
        return
    opened: list[str] = []
    for char in made.applied(document[:at], document[at:]):
        if char in "([{":
            opened.append(char)
        elif char in PAIRS:
            assert opened, made
            opened.pop()
