"""Ignored files: compared with git itself where it is installed, and by hand where it says nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lsp_server.ignored import Ignored

FOLDERS = ("", "a", "a/b", "build")
NAMES = ("x.py", "x.log", "build", "keep.log")
PATTERNS = (
    "*.log", "!keep.log", "!x.log", "build", "build/", "/build", "a/", "!a/", "a/*", "a/**", "**/b", "b/x.py", "/x.py",
    "x.*", "# x.py", "", "[ab]", "a/b/", "!/a/b/", "\\!x.log", "*", "!*/", "x.py ", "**/x.log", "a/**/x.log",
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))


def repository(root: Path, **files: str) -> Path:
    (root / ".git" / "info").mkdir(parents=True)
    write(root, **files)
    return root


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is the oracle")
@settings(max_examples=60)
@given(
    rules=st.dictionaries(st.sampled_from(FOLDERS), st.lists(st.sampled_from(PATTERNS), max_size=5), max_size=3),
    exclude=st.lists(st.sampled_from(PATTERNS), max_size=2),
)
def test_the_same_files_are_ignored_as_by_git(rules: dict[str, list[str]], exclude: list[str]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        subprocess.run(["git", "init", "-q", str(root)], check=True, env=environment)
        (root / ".git/info/exclude").write_text("\n".join(exclude))
        for place in FOLDERS:
            (root / place).mkdir(exist_ok=True)
        for place, patterns in rules.items():
            (root / place / ".gitignore").write_text("\n".join(patterns))
        files = [f"{place}/{name}".lstrip("/") for place in FOLDERS for name in NAMES if f"{place}/{name}" != "/build"]
        said = subprocess.run(
            ["git", "-C", str(root), "check-ignore", "--no-index", "--stdin"],
            input="\n".join(files), capture_output=True, text=True, check=False, env=environment,
        )  # fmt: skip
        ours = Ignored()
        assert {name for name in files if ours.reason(root / name)} == set(said.stdout.splitlines())


def test_no_repository_and_no_workspace_ignores_nothing(tmp_path: Path) -> None:
    write(tmp_path, **{".gitignore": "*"})
    assert Ignored().reason(tmp_path / "a.py") == ""


def test_a_workspace_folder_will_do_without_a_repository(tmp_path: Path) -> None:
    write(tmp_path, **{".gitignore": "*.log\n", "sub/.midfillignore": "secret/\n"})
    ignored = Ignored()
    assert ignored.reason(tmp_path / "sub/x.log", (tmp_path,)) == ".gitignore names it"
    assert ignored.reason(tmp_path / "sub/secret/x.py", (tmp_path,)) == ".midfillignore names it"
    assert ignored.reason(tmp_path / "secret/x.py", (tmp_path,)) == ""


def test_ours_adds_and_takes_nothing_away(tmp_path: Path) -> None:
    root = repository(tmp_path, **{".gitignore": "*.log\n", ".midfillignore": "!x.log\nprivate.*\n"})
    ignored = Ignored()
    assert ignored.reason(root / "x.log") == ".gitignore names it"
    assert ignored.reason(root / "private.py") == ".midfillignore names it"
    assert ignored.reason(root / "public.py") == ""


def test_changed_rules_count_at_once(tmp_path: Path) -> None:
    root, ignored = repository(tmp_path), Ignored()
    assert ignored.reason(root / "a.py") == ""
    write(root, **{".gitignore": "a.py\n"})
    assert ignored.reason(root / "a.py")
    (root / ".gitignore").unlink()
    assert ignored.reason(root / "a.py") == ""


def test_the_users_own_ignore_file_and_a_worktree(tmp_path: Path) -> None:
    write(tmp_path, **{"config/git/ignore": "*.mine\n"})
    main = repository(
        tmp_path / "main", **{".git/info/exclude": "*.local\n", ".git/worktrees/two/commondir": "../..\n"}
    )
    write(tmp_path / "two", **{".git": f"gitdir: {main / '.git/worktrees/two'}\n"})
    for root in (main, tmp_path / "two"):
        assert "exclude" in Ignored().reason(root / "a.local")
        assert "ignore" in Ignored().reason(root / "a.mine")
        assert Ignored().reason(root / "a.py") == ""


@pytest.mark.parametrize("text", ["!", "\0", "a[", "\\", "***", "/", "[z-a]", "\ufeffa.py", "a.py\r\n"])
def test_odd_lines_do_no_harm(tmp_path: Path, text: str) -> None:
    root = repository(tmp_path)
    (root / ".gitignore").write_text(f"{text}\n*.log\n", encoding="utf-8")
    assert Ignored().reason(root / "x.log") == ".gitignore names it"
    assert bool(Ignored().reason(root / "a.py")) == ("a.py" in text or text == "***")
