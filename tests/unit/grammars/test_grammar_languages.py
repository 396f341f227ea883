"""The table of languages, and what happens where a grammar is missing."""

import dataclasses
import importlib.resources
import logging
import subprocess
import sys

import pytest
import tree_sitter

from grammars import languages as table
from grammars.languages import PLAIN, Language, grammar, language_for, languages, load, query_source
from grammars.parser import ParsedDocument
from grammars.syntax import context


@pytest.mark.parametrize(
    ("language_id", "path", "expected"),
    [
        ("python", "", "python"),
        ("python", "a.js", "python"),
        ("Python", "", "python"),
        ("javascript", "", "javascript"),
        ("javascriptreact", "", "javascript"),
        ("typescript", "", "typescript"),
        ("typescriptreact", "", "typescriptreact"),
        ("", "src/a.py", "python"),
        ("", "src/a.pyi", "python"),
        ("", r"C:\src\a.tsx", "typescriptreact"),
        ("plaintext", "/x/a.mjs", "javascript"),
        ("", "a.mts", "typescript"),
        ("", "a.py.txt", "plaintext"),
        ("", ".py/readme", "plaintext"),
        ("rust", "a.rs", "rust"),
        ("", "a.rs", "rust"),
        ("bash", "", "shellscript"),
        ("c++", "", "cpp"),
        ("C#", "", "csharp"),
        ("", "Gemfile", "ruby"),
        ("", "a.yml", "yaml"),
        ("", "include/a.h", "c"),
        ("less", "", "scss"),
        ("cobol", "a.cob", "plaintext"),
        ("", "", "plaintext"),
    ],
)
def test_language_for(language_id, path, expected) -> None:
    assert language_for(language_id, path).id == expected


def test_no_two_rows_serve_the_same_id_or_file() -> None:
    ids = [name for language in languages() for name in language.language_ids]
    globs = [glob for language in languages() for glob in language.globs]
    assert len(set(ids)) == len(ids)
    assert len(set(globs)) == len(globs)


@pytest.mark.parametrize("language", languages(), ids=lambda language: language.id)
def test_a_row_has_a_grammar_and_a_query_that_fits_it(language) -> None:
    compiled = grammar(language)
    if language.id == "scss":
        assert not language.grammar and compiled is None
        return
    assert compiled is not None
    query = tree_sitter.Query(compiled, query_source(language))
    captures = {query.capture_name(i) for i in range(query.capture_count)}
    known = {"scope", "scope.open", "container", "member", "import", "import.call", "string", "comment", "code"}
    assert {"scope", "scope.open"} <= captures <= known | {"string.quoted"}
    if language.id != "markdown":
        assert {"string", "comment"} <= captures | {name.partition(".")[0] for name in captures}


def test_the_data_files_are_inside_the_package() -> None:
    root = importlib.resources.files("grammars")
    assert root.joinpath("languages.toml").is_file()
    for language in languages():
        for name in language.queries:
            assert root.joinpath("queries", name, "context.scm").is_file()


@pytest.mark.parametrize("broken", ["no_such_grammar_wheel:language", "json:language", "json:decoder", "json:loads"])
def test_a_grammar_that_does_not_load_means_plain_text(broken, caplog) -> None:
    language = dataclasses.replace(language_for("python"), id=f"python with {broken}", grammar=broken)
    with caplog.at_level(logging.WARNING):
        document = ParsedDocument("class A:\n    def f(self):\n        x = 'a", language)
    assert document.tree is None
    assert "plain text" in caplog.text
    answer = context(document, len(document.text))
    assert not answer.parsed
    # What the row says without a grammar still serves.
    assert answer.position == "string"
    assert [span.text for span in answer.scopes] == ["class A:", "def f(self):"]


def test_plain_text_has_neither_scopes_nor_strings() -> None:
    answer = context(ParsedDocument("def f():\n    'a", PLAIN), 14)
    assert (answer.language, answer.parsed, answer.scopes, answer.position) == ("plaintext", False, (), "code")


def test_grammars_are_imported_when_first_needed() -> None:
    script = (
        "import sys; from grammars.languages import language_for; from grammars.parser import ParsedDocument\n"
        "language_for('python'); ParsedDocument('x', language_for('cobol'))\n"
        "assert not [name for name in sys.modules if name.startswith('tree_sitter_')]\n"
        "ParsedDocument('x', language_for('python'))\n"
        "assert 'tree_sitter_python' in sys.modules\n"
        "assert 'tree_sitter_javascript' not in sys.modules\n"
    )
    root = importlib.resources.files("grammars").joinpath("..")
    subprocess.run([sys.executable, "-c", script], check=True, cwd=str(root), timeout=60)


def test_a_row_may_build_on_another() -> None:
    rows = load(
        '[[language]]\nid = "a"\nlanguage_ids = ["a"]\nline_comment = "#"\nblock_style = "indent"\n'
        '[[language]]\nid = "b"\nlike = "a"\nlanguage_ids = ["b"]\n'
    )
    assert rows[1] == dataclasses.replace(rows[0], id="b", language_ids=("b",))


@pytest.mark.parametrize(
    "row", ['id = "a"\nblock_style = "indented"', 'id = "a"\nunknown = 1', 'id = "a"\nlike = "b"', 'grammar = "a:b"']
)
def test_a_malformed_table_is_noticed(row) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        load(f"[[language]]\n{row}\n")


def test_a_new_language_needs_a_row_and_a_query_only(monkeypatch) -> None:
    """A made-up language on a grammar that is installed: everything it does comes from its row."""
    new = Language(
        id="new",
        language_ids=("new",),
        grammar="tree_sitter_javascript:language",
        queries=("ecma",),
        line_comment="//",
        import_calls=("use",),
    )
    monkeypatch.setattr(table, "languages", lambda: (new,))
    table._by_id.cache_clear()
    try:
        document = ParsedDocument("const a = use('b');\nfunction f() {\n", language_for("new"))
    finally:
        table._by_id.cache_clear()
    answer = context(document, len(document.text))
    assert [span.text for span in answer.imports] == ["const a = use('b');"]
    assert [span.text for span in answer.scopes] == ["function f() {"]
