"""What is only looked at where something has changed gives the answers of a look at everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grammars.brackets import balance
from lsp_server import limits, secrets
from lsp_server.documents import Document
from lsp_server.files import Files

CODE = [
    *("a", " ", "\n", "\n", "(", ")", "[", "]", "{", "}", "=", "/", ";", ",", "return", "\\", "\r\n"),
    *('"', "'", "`", '"""', "'''", 'f"', 'r#"', '"#', '@"', "${", "#", "//", "/*", "*/", "--", "--[[", "]]"),
]
LANGUAGES = ["python", "typescript", "php", "lua", "rust", "csharp", "css", "lisp", "java", "sql"]

KEY = "-----BEGIN PRIVATE KEY-----\n" + "A" * 40
PIECES = [
    KEY[:11],
    KEY[11:27],
    KEY[27:40],
    KEY[40:],
    "A" * 21,
    "\n",
    "x = 1\n",
    "# @generated\n",
    "y" * 12_000,
    "\r",
    "",
]


@given(
    text=st.lists(st.sampled_from(CODE), max_size=40).map("".join),
    language=st.sampled_from(LANGUAGES),
    cut=st.integers(0, 80),
    quote=st.sampled_from(["", '"""', "`", "'"]),
    template=st.booleans(),
)
def test_lines_above_what_is_typed_need_no_second_scan(
    text: str, language: str, cut: int, quote: str, template: bool
) -> None:
    typed = text.rfind("\n", 0, cut) + 1
    whole = balance(text, language, quote=quote, template=template)
    assert balance(text, language, quote=quote, template=template, typed=typed) == whole


@given(
    text=st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
    edits=st.lists(
        st.tuples(
            st.integers(0, 6), st.integers(0, 60), st.integers(0, 3), st.integers(0, 60), st.sampled_from(PIECES)
        ),
        max_size=6,
    ),
)
def test_a_document_that_is_edited_is_left_alone_when_one_that_is_opened_would_be(
    text: str, edits: list[tuple[int, int, int, int, str]]
) -> None:
    files = Files(max_chars=lambda: 30_000)
    document = Document(uri="untitled:a", language="python").with_text(text, 0)
    files.open(document)
    for version, (line, column, more, end, inserted) in enumerate(edits, start=1):
        files.refusal(document)
        document = document.with_edit((line, column), (line + more, end), inserted, "utf-32", version)
        files.change(document)
        whole = secrets.by_content(document.text) or limits.by_content(document.lines, document.text, 30_000)
        assert files.refusal(document) == (f"left alone: {whole}" if whole else "")


@given(
    text=st.text(st.sampled_from("a\n\ré\U0001f926"), max_size=700),
    edits=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 4), st.text("b\n\r", max_size=3)), max_size=4),
)
def test_texts_and_offsets_of_edited_documents_are_those_of_their_lines(
    text: str, edits: list[tuple[int, int, str]]
) -> None:
    document = Document(uri="a").with_text(text, 0)
    for line, column, inserted in edits:
        assert document.text == "".join(document.lines)
        document = document.with_edit((line, column), (line + 1, column), inserted, "utf-16", 1)
    assert document.text == "".join(document.lines)
    fresh = Document(uri="a", lines=document.lines)
    for line in range(len(document.lines)):
        start = sum(map(len, document.lines[:line]))
        assert document.offset_at((line, 0), "utf-16") == start
        assert fresh.position_at(start, "utf-16") == (line, 0)
