"""Cuts and where they come from: kinds, seeded lists, benchmark files, corpora, repositories."""

from __future__ import annotations

import gzip
import json
import subprocess
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.commands import eval_data
from lsp_server.commands.eval_cuts import BLOCK_LINES, KINDS, Cut, Text, cut_list, usable
from lsp_server.usage import UsageError

SOURCE = "".join(f"def add{n}(a, b):\n    total = sum([a, b], {n})\n\n    return max(total, 0)\n\n\n" for n in range(9))
PROBLEM = {
    "task_id": "SingleLineInfilling/HumanEval/7/L1",
    "entry_point": "f",
    "prompt": "def f():\n",
    "canonical_solution": "    return 1\n",
    "suffix": "\n\nf()\n",
    "test": "def check(f):\n    assert f() == 1\n",
}


def texts(*sources: str) -> list[Text]:
    return [Text(language="python", path=f"{n}.py", text=text) for n, text in enumerate(sources)]


def cuts(count: int, *sources: str, seed: str = "s") -> list[Cut]:
    return list(islice(cut_list(texts(*sources), seed), count))


def test_every_kind_cuts_what_its_name_says() -> None:
    for cut in cuts(80, SOURCE):
        assert cut.prefix + cut.middle + cut.suffix == SOURCE
        before, after = cut.prefix.rpartition("\n")[2], cut.suffix.partition("\n")[0]
        assert cut.middle.strip()
        assert (cut.mode, cut.max_lines) == (("block", 12) if cut.kind == "block" else ("line", 1))
        match cut.kind:
            case "rest of line":
                assert after == "" and "\n" not in cut.middle and (before.strip() or not cut.middle[0].isspace())
            case "whole line":
                assert before == after == "" and "\n" not in cut.middle
            case "argument":
                assert before[-1] + after[0] in ("()", "[]") and cut.middle.count("(") == cut.middle.count(")")
            case "block":
                lines = cut.middle.split("\n")
                assert before == after == "" and BLOCK_LINES[0] <= len(lines) <= BLOCK_LINES[1]
                assert lines[0].strip() and lines[-1].strip()


def test_a_list_is_frozen_and_takes_the_kinds_in_turn() -> None:
    chosen = cuts(40, SOURCE, SOURCE[7:])
    assert chosen == cuts(60, SOURCE, SOURCE[7:])[:40]
    assert chosen != cuts(40, SOURCE, SOURCE[7:], seed="t")
    assert [cut.kind for cut in chosen] == list(KINDS) * 10
    assert len({(cut.kind, cut.path, cut.prefix, cut.middle) for cut in chosen}) == 40


def test_a_list_ends_where_no_place_is_left() -> None:
    few = cuts(1000, "x = 1\n")
    assert 0 < len(few) < 20 and {cut.kind for cut in few} == {"rest of line", "whole line"}
    assert cuts(10) == [] == cuts(10, "\n \n")


@given(st.text(alphabet="a([])\n ", min_size=1, max_size=60))
def test_any_text_can_be_cut(text: str) -> None:
    for cut in cuts(12, text):
        assert cut.prefix + cut.middle + cut.suffix == text and cut.middle.strip()


def test_code_that_nobody_wrote_is_left_alone() -> None:
    assert usable(SOURCE)
    assert not usable("x = 1\n")
    assert not usable(SOURCE + "x" * 500)
    assert not usable(SOURCE + "\0")
    assert not usable(SOURCE * 300)


def write(path: Path, *problems: dict[str, Any]) -> Path:
    path.write_bytes(gzip.compress("".join(json.dumps(problem) + "\n" for problem in problems).encode()))
    return path


def test_a_single_line_leaves_its_newline_in_the_suffix(tmp_path: Path) -> None:
    (problem,) = eval_data.human_eval_infilling(write(tmp_path / "a.gz", PROBLEM))
    cut = problem.cut
    assert (cut.kind, cut.mode, cut.max_lines, cut.group) == ("single-line", "line", 1, "HumanEval/7")
    assert (cut.prefix, cut.middle, cut.suffix) == ("def f():\n", "    return 1", "\n\n\nf()\n")
    program = problem.program(cut.prefix + cut.middle)
    assert program == "def f():\n    return 1\n\n\nf()\n\ndef check(f):\n    assert f() == 1\n\ncheck(f)\n"
    exec(compile(program, "program", "exec"), {})


@pytest.mark.parametrize("middle", ["retu", "    return 1\n\n"])
def test_the_task_of_a_random_span_does_not_follow_from_its_solution(tmp_path: Path, middle: str) -> None:
    body = PROBLEM | {"task_id": "RandomSpanInfillingLight/HumanEval/0/1", "canonical_solution": middle}
    (problem,) = eval_data.human_eval_infilling(write(tmp_path / "a.gz", body))
    cut = problem.cut
    assert (cut.kind, cut.mode, cut.max_lines) == ("random-span", "block", eval_data.SPAN_LINES)
    assert (cut.middle, cut.suffix, cut.group) == (middle, PROBLEM["suffix"], "HumanEval/0")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\n", b"{}\n", b"[]", b"1", b"no json", b"\xff", b"\x1f\x8b", gzip.compress(b"{}", mtime=0)[:-6],
        json.dumps(PROBLEM | {"test": 1}).encode(), json.dumps(PROBLEM | {"prompt": ""}).encode(),
    ],
)  # fmt: skip
def test_a_file_that_is_no_benchmark_is_one_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    for path in (tmp_path / "a", tmp_path / "none", tmp_path):
        with pytest.raises(UsageError):
            eval_data.human_eval_infilling(path)


def corpus(folder: Path, **languages: str) -> Path:
    for language, text in languages.items():
        record = {"package": "p", "path": "a", "text": text}
        (folder / f"{language}.heldout.jsonl").write_text(json.dumps(record) + "\n")
    return folder


def test_held_out_languages_come_in_turn(tmp_path: Path) -> None:
    folder = corpus(tmp_path, python=SOURCE, javascript=SOURCE[1:], typescript=SOURCE[2:])
    chosen = eval_data.heldout(folder, 24)
    assert [cut.language for cut in chosen] == list(eval_data.HELD_OUT) * 8
    assert [cut.kind for cut in chosen[::3]] == list(KINDS) * 2
    assert chosen == eval_data.heldout(folder, 36)[:24]
    (folder / "javascript.heldout.jsonl").unlink()
    assert {cut.language for cut in eval_data.heldout(folder, 24)} == {"python", "typescript"}


@pytest.mark.parametrize(
    "content", [None, "", "no json\n", "{}\n", "[1]\n", json.dumps({"package": "", "path": "", "text": ""})]
)
def test_a_folder_that_is_no_corpus_is_one_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "python.heldout.jsonl").write_text(content)
    with pytest.raises(UsageError):
        eval_data.heldout(tmp_path, 10)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    files = {
        "kept.py": SOURCE.encode(),
        "windows.ts": SOURCE.replace("\n", "\r\n").encode(),
        "untracked.py": SOURCE.encode(),
        "readme.md": SOURCE.encode(),
        "binary.py": b"\0" + SOURCE.encode(),
        "latin.py": b"\xe4" + SOURCE.encode(),
        "minified.js": SOURCE.replace("\n", ";").encode(),
        "gone.py": SOURCE.encode(),
        "sub/ünd er.py": SOURCE.encode(),
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "link.py").symlink_to("kept.py")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", *(name for name in files if name != "untracked.py"), "link.py")
    (tmp_path / "gone.py").unlink()
    return tmp_path


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True, timeout=60, capture_output=True)


def test_a_repository_gives_the_source_files_that_git_tracks(repository: Path) -> None:
    chosen = eval_data.repository(repository, 60)
    assert {cut.path for cut in chosen} == {"kept.py", "windows.ts", "sub/ünd er.py"}
    assert {cut.language for cut in chosen} == {"python", "typescript"}
    assert not any("\r" in cut.prefix + cut.middle + cut.suffix for cut in chosen)
    assert chosen == eval_data.repository(repository, 60)
    assert {cut.path for cut in eval_data.repository(repository / "sub", 8)} == {"ünd er.py"}


def test_no_program_that_a_repository_names_is_started(repository: Path) -> None:
    monitor = repository / "monitor"
    monitor.write_text("#!/bin/sh\ntouch started\n")
    monitor.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(monitor))
    eval_data.repository(repository, 4)
    assert not (repository / "started").exists() and not Path("started").exists()


def test_without_a_repository_there_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("LC_ALL", "C")
    with pytest.raises(UsageError, match="no folder"):
        eval_data.repository(tmp_path / "none", 4)
    with pytest.raises(UsageError, match="not a git repository"):
        eval_data.repository(tmp_path, 4)
    git(tmp_path, "init", "--quiet")
    with pytest.raises(UsageError, match="no source files"):
        eval_data.repository(tmp_path, 4)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(UsageError, match="git was not found"):
        eval_data.repository(tmp_path, 4)
