"""Where nothing is offered while typing: each gate, its sentence, and that asking explicitly passes it."""

from __future__ import annotations

import pytest

from grammars.syntax import context
from lsp_server import gates
from lsp_server.context import Budget, Nothing, build_request, parse
from lsp_server.settings import Settings, read

CURSOR = "│"


@pytest.mark.parametrize(
    ("language", "path", "settings", "reason"),
    [
        ("python", "a.py", {}, ""),
        ("python", "a.py", {"enabled": False}, "setting enabled"),
        ("plaintext", "a.txt", {}, "in plaintext (setting disabledLanguages)"),
        ("", "a", {}, ""),
        ("markdown", "a.md", {}, "in markdown"),
        ("scminput", "", {}, "in scminput"),
        ("Markdown", "a.md", {}, "in markdown"),
        ("markdown", "a.md", {"disabledLanguages": []}, ""),
        ("python", "a.py", {"disabledLanguages": ["python"]}, "in python"),
        ("javascriptreact", "a.jsx", {"disabledLanguages": ["javascript"]}, ""),
        ("python", "src/a.py", {"disabledGlobs": ["*.py"]}, "files like *.py (setting disabledGlobs)"),
        ("python", "docs/b/a.py", {"disabledGlobs": ["*.lock", "docs/**"]}, "files like docs/**"),
        ("python", "docs\\b\\a.py", {"disabledGlobs": ["docs/**"]}, "files like docs/**"),
        ("python", "src/docs.py", {"disabledGlobs": ["docs/**"]}, ""),
        ("python", "/abs/gen/a.py", {"disabledGlobs": ["gen/"]}, "files like gen/"),
        ("python", "a.py", {"disabledGlobs": ["", "[", "!", "#x", "\\"]}, ""),
        ("python", "", {"disabledGlobs": ["*"]}, ""),
    ],
)
def test_documents(language: str, path: str, settings: dict[str, object], reason: str) -> None:
    chosen, problems = read(settings, Settings())
    assert not problems
    said = gates.document(chosen, language, path)
    assert reason in said and bool(said) == bool(reason)
    if chosen.enabled:
        assert gates.document(chosen, language, path, explicit=True) == ""


@pytest.mark.parametrize(
    ("marked", "switches", "reason"),
    [
        ("x = │\n", {}, ""),
        ("nu│mpy\n", {}, "inside a word"),
        ("pass│\n", {}, "behind a finished statement"),
        ("# a│\n", {}, ""),
        ("# a│\n", {"comments": False}, "in comments (setting comments)"),
        ("# a│\n", {"strings": False}, ""),
        ("x = 'a│'\n", {"strings": False}, "in strings (setting strings)"),
        ("x = 'a│'\n", {"comments": False}, ""),
        ("x = f'{a.│}'\n", {"strings": False}, ""),
        ("x = 1  # 'a│\n", {"strings": False, "comments": False}, "in comments"),
    ],
)
def test_places(marked: str, switches: dict[str, bool], reason: str) -> None:
    before, after = marked.split(CURSOR)
    document = parse(before + after, "python")
    said = gates.place(context(document, len(before)), **switches)
    assert reason in said and bool(said) == bool(reason)

    def request(explicit: bool) -> object:
        return build_request(
            document,
            len(before),
            language="python",
            budget=Budget(),
            gate=lambda around: gates.place(around, **switches),
            explicit=explicit,
        )

    made = request(explicit=False)
    assert isinstance(made, Nothing) == bool(reason)
    if isinstance(made, Nothing):
        assert reason in made.reason
    assert not isinstance(request(explicit=True), Nothing)
