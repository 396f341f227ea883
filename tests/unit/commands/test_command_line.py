"""The command as a process, started in circumstances in which commands are started too: one line, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

MIDFILL = (sys.executable, "-I", "-m", "lsp_server")


@pytest.fixture
def complete(tmp_path: Path) -> list[str]:
    """The arguments of a completion that a script answers."""
    (tmp_path / "a.py").write_text("x = ")
    (tmp_path / "script.json").write_text(json.dumps([{"fill": "1"}]))
    return ["complete", f"{tmp_path / 'a.py'}:1:5", "--engine", f"scripted:{tmp_path / 'script.json'}"]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    given = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    return subprocess.run([*MIDFILL, *arguments], timeout=60, check=False, **given)  # type: ignore[call-overload,no-any-return]


@pytest.mark.parametrize("arguments", [["--help"], ["complete"], ["complete", "--json"], ["lsp"]], ids=" ".join)
@pytest.mark.parametrize("closed", [(0,), (1,), (0, 1)])
def test_standard_streams_may_be_closed(complete: list[str], arguments: list[str], closed: tuple[int, ...]) -> None:
    full = {"complete": [*complete, *arguments[1:]], "lsp": ["lsp", *complete[2:]]}.get(arguments[0], arguments)
    done = run(*full, preexec_fn=lambda: [os.close(fd) for fd in closed])
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_closed_standard_error_sends_nothing_to_standard_output() -> None:
    done = run("complete", "none.py:1:1", preexec_fn=lambda: os.close(2))
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_file_is_asked_for_on_a_closed_standard_input() -> None:
    done = run("complete", "-:1:1", preexec_fn=lambda: os.close(0))
    assert done.returncode == 2
    assert b"the document is empty" in done.stderr


@pytest.mark.parametrize("json_too", [[], ["--json"]])
def test_a_full_disk_is_one_line(complete: list[str], json_too: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run(*complete, *json_too, stdout=full)
    assert done.returncode == 1
    assert done.stderr.startswith(b"midfill: ") and done.stderr.count(b"\n") == 1


def test_the_working_directory_may_have_been_deleted(complete: list[str], tmp_path: Path) -> None:
    def in_deleted_folder() -> None:
        gone = tmp_path / "gone"
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    assert run(*complete, preexec_fn=in_deleted_folder).returncode == 0
    for arguments, said in ((["complete", "a.py:1:1"], b"working directory has been deleted"), (["nope"], b"unknown")):
        done = run(*arguments, preexec_fn=in_deleted_folder)
        assert done.returncode == 2
        assert said in done.stderr and done.stderr.count(b"\n") == 1
    done = run("engine", "status", preexec_fn=in_deleted_folder, env=os.environ | {"MIDFILL_RUNTIME_DIR": "relative"})
    assert done.returncode == 1
    assert b"MIDFILL_RUNTIME_DIR" in done.stderr and done.stderr.count(b"\n") == 1


def test_an_error_stays_one_line_whatever_a_name_holds() -> None:
    done = run("complete", "none\n\x1b[31m.py:1:1")
    assert done.stderr.startswith("midfill: there is no file none␊␛[31m.py".encode())
    assert done.stderr.count(b"\n") == 1


def test_spaces_belong_to_a_files_name(complete: list[str], tmp_path: Path) -> None:
    (tmp_path / " a.py").write_text("y = ")
    done = run("complete", " a.py:1:5", *complete[2:], cwd=tmp_path)
    assert "y = ⟦1⟧".encode() in done.stdout


def test_modules_of_the_working_directory_are_not_ours(complete: list[str], tmp_path: Path) -> None:
    """Started with -m and without -I, as nobody should, in a folder with modules of the names that we import."""
    for name in ("json", "pathlib", "argparse", "asyncio", "logging", "typing", "rich", "psutil", "tree_sitter"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'poisoned')!r}, 'w').close()\n")
    command = [sys.executable, "-m", "lsp_server", *complete]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "poisoned").exists()
