"""Helix, Emacs and Vim with ALE: the real programs with the configurations of editors/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from .other_editors import Editor, Emacs, Helix, LspMode, VimAle, ended, opened

pytestmark = pytest.mark.slow

EDITORS: tuple[type[Editor], ...] = (Helix, Emacs, LspMode, VimAle)


@pytest.fixture(params=EDITORS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Editor]:
    editor: type[Editor] = request.param
    if missing := editor.missing():
        pytest.skip(missing)
    return editor


# Nothing is typed behind a trigger character: while Helix waits for the answer to that, it asks for nothing else.
@pytest.mark.parametrize(
    ("text", "typed", "fill", "label", "expected"),
    [
        ("é🤦 = │\nb\n", "fo", "rmat + 1", "format + 1", "é🤦 = format + 1\nb\n"),
        ("print(x│)\n", "ab", "c, d)", "xabc, d", "print(xabc, d)\n"),
        ("é🤦 = │ + ü\n", "ab", "c", "abc", "é🤦 = abc + ü\n"),
    ],
    ids=["behind-wide-characters", "before-a-bracket", "between-wide-characters"],
)
def test_a_completion_is_offered_and_taken(
    kind: type[Editor], tmp_path: Path, text: str, typed: str, fill: str, label: str, expected: str
) -> None:
    if kind.no_completion:
        pytest.skip(kind.no_completion)
    before = text.partition("│")[0] + typed
    with opened(kind, tmp_path, text, {"after": before, "fill": fill}) as editor:
        editor.complete(typed, label)
        editor.wait_saved(expected)


def test_several_lines(kind: type[Editor], tmp_path: Path) -> None:
    if reason := kind.no_completion or kind.no_lines:
        pytest.skip(reason)
    with opened(kind, tmp_path, "if a:\n    │\nc\n", {"after": "\n    b1", "fill": "2 = 1\n    c = 2"}) as editor:
        editor.complete("b1", "b12 = 1")
        editor.wait_saved("if a:\n    b12 = 1\n    c = 2\nc\n")


@pytest.mark.parametrize("title", ["midfill: fill the selection anew", "midfill: edit the selection: sort ü"])
def test_code_actions(kind: type[Editor], tmp_path: Path, title: str) -> None:
    # Emacs 28 does not see a change that comes in one go with the answer to the command, as none of a real model does.
    answer = {"fill": "é = [1, 2]\n", "delay_ms": 500}
    with opened(kind, tmp_path, "# sort ü\n│é = [2, 1]\nb\n", answer) as editor:
        editor.act(title)
        editor.wait_saved("# sort ü\né = [1, 2]\nb\n")


def test_ghost_text_in_emacs_30(tmp_path: Path) -> None:
    if missing := Emacs.missing() or ("Emacs is older than 30" if Emacs.version() < 30 else ""):
        pytest.skip(missing)
    with opened(Emacs, tmp_path, "é🤦 = │\n", {"after": "é🤦 = fo", "fill": "rmat + 1"}) as editor:
        editor.terminal.send("fo")
        editor.terminal.wait_for("= format + 1")
        editor.terminal.send("\t")
        editor.wait_saved("é🤦 = format + 1\n")


def test_nothing_is_left_behind(kind: type[Editor], tmp_path: Path) -> None:
    with opened(kind, tmp_path, "a│\n") as editor:
        servers = [child for child in editor.terminal.process.children(recursive=True) if "lsp" in child.cmdline()]
        assert servers
        editor.quit()
        editor.terminal.wait_end()
        assert ended(servers)


def test_nothing_is_left_behind_when_the_editor_is_killed(kind: type[Editor], tmp_path: Path) -> None:
    with opened(kind, tmp_path, "a│\n") as editor:
        servers = [child for child in editor.terminal.process.children(recursive=True) if "lsp" in child.cmdline()]
        editor.terminal.process.kill()
        assert servers and ended(servers)
