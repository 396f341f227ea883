"""`midfill eval` with the scripted engine: what is asked for, the figures, the tables, the errors."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from diffusion.api import FillRequest, parse_request
from lsp_server import scripted
from lsp_server.__main__ import main as midfill
from lsp_server.commands import eval as evaluation
from lsp_server.usage import UsageError

Script = Callable[..., str]
Eval = Callable[..., dict[str, Any]]

TEST = "def check(f):\n    assert f() == 1\n"
SOURCE = "".join(f"def add{n}(a, b):\n    total = sum([a, b], {n})\n\n    return max(total, 0)\n\n\n" for n in range(9))


def problem(task: str, middle: str = "    return 1\n", prompt: str = "def f():\n", suffix: str = "") -> dict[str, str]:
    return {
        "task_id": task,
        "entry_point": "f",
        "prompt": prompt,
        "canonical_solution": middle,
        "suffix": suffix,
        "test": TEST,
    }


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a script; gives the value of --engine."""

    def write(*entries: dict[str, Any]) -> str:
        (tmp_path / "script.json").write_text(json.dumps(entries))
        return f"scripted:{tmp_path / 'script.json'}"

    return write


@pytest.fixture
def data(tmp_path: Path) -> Callable[..., str]:
    def write(*problems: dict[str, str]) -> str:
        lines = "".join(json.dumps(body) + "\n" for body in problems)
        (tmp_path / "data.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        return str(tmp_path / "data.jsonl.gz")

    return write


@pytest.fixture
def figures(capsys: pytest.CaptureFixture[str]) -> Eval:
    """Runs the command with --json and gives what it prints."""

    def run(*arguments: str) -> dict[str, Any]:
        assert evaluation.main([*arguments, "--json"]) == 0
        return dict(json.loads(capsys.readouterr().out))

    return run


def test_a_program_may_pass_without_an_exact_match(script: Script, data: Callable[..., str], figures: Eval) -> None:
    lines = [problem(f"SingleLineInfilling/HumanEval/{n}/L0") for n in range(4)]
    engine = script(
        {"fill": "    return 1", "drafts": ["a", "b", "c"], "delay_ms": 3},
        {"fill": "    return 2 - 1", "delay_ms": 1},
        {"fill": "    return ("},
        {"none": True},
    )
    result = figures("human-eval-infilling", "--data", data(*lines), "--engine", engine)
    assert (result["n"], result["pass@1"], result["exact_match"]) == (4, 50.0, 25.0)
    assert result["pass@1_95"] == [0.0, 100.0] and result["exact_match_95"] == [0.0, 75.0]
    # The empty middle leaves "def f():" before a blank line: no syntax.
    assert (result["parse_rate"], result["answered"], result["forwards"], result["ms"]) == (50.0, 75.0, 1.5, 1.0)
    assert result["length_error"] == (0 + 4 + 0 + 8) / 4
    assert 50 < result["edit_similarity"] < 75
    assert (result["profile"], result["oracle_length"], result["steps"]) == ("embedded", False, None)


def test_the_benchmark_sets_the_task(
    script: Script, data: Callable[..., str], figures: Eval, asked: list[FillRequest]
) -> None:
    path = data(
        problem("SingleLineInfilling/HumanEval/0/L0"),
        problem("RandomSpanInfillingLight/HumanEval/0/1", "1", "def f():\n    return ", "\n"),
    )
    options = ("--data", path, "--engine", script({"fill": "    return 1"}, {"fill": "1"}))
    result = figures("human-eval-infilling", *options, "--oracle-length", "--steps", "2")
    assert (result["pass@1"], result["exact_match"], result["steps"], result["oracle_length"]) == (100, 100, 2, True)
    single, span = asked
    assert (single.mode, single.max_lines, single.prefix, single.suffix) == ("line", 1, "def f():\n", "\n")
    assert (span.mode, span.max_lines, span.prefix, span.suffix) == ("block", 24, "def f():\n    return ", "\n")
    assert [one.length_of for one in asked] == ["    return 1", "1"]
    for one in asked:
        assert (one.n, one.deadline_ms, one.steps, one.language, one.drafts) == (1, None, 2, "python", False)
    figures("human-eval-infilling", *options, "--limit", "1")
    assert len(asked) == 3 and asked[2].length_of is None and asked[2].steps is None


def test_programs_that_do_not_end_are_counted(script: Script, data: Callable[..., str], figures: Eval) -> None:
    lines = [problem(f"SingleLineInfilling/HumanEval/0/L{n}") for n in range(2)]
    engine = script({"fill": "    while True: pass"}, {"fill": "    while True: pass"})
    result = figures("human-eval-infilling", "--data", data(*lines), "--engine", engine, "--seconds", "1")
    assert (result["n"], result["pass@1"], result["out_of_time"]) == (2, 0.0, 2)


def test_held_out_figures_come_by_kind_and_language(
    script: Script, figures: Eval, tmp_path: Path, asked: list[FillRequest], capsys: pytest.CaptureFixture[str]
) -> None:
    for language in ("python", "javascript", "typescript"):
        record = {"package": "p", "path": "a", "text": f"# {language}\n{SOURCE}"}
        (tmp_path / f"{language}.heldout.jsonl").write_text(json.dumps(record) + "\n")
    options = ("heldout", "--corpus", str(tmp_path), "--limit", "24")
    figures(*options, "--engine", script(), "--oracle-length")
    truths = [str(one.length_of) for one in asked]
    # The first twelve holes, one of each kind and language, are filled with what stood there.
    entries = [{"fill": truth, "confidence": 0.8} for truth in truths[:12]]
    engine = script(*entries, *[{"fill": "wrong", "confidence": 0.4}] * 6, *[{"fill": "wrong", "confidence": 0.1}] * 6)
    result = figures(*options, "--engine", engine)
    assert (result["n"], result["exact_match"], result["gate"]) == (24, 50.0, 0.35)
    assert (result["shown"], result["exact_of_shown"]) == (75.0, 66.667)
    assert [(row["kind"], row["language"], row["n"], row["exact_match"]) for row in result["rows"][:4]] == [
        ("rest of line", "python", 2, 50.0),
        ("rest of line", "javascript", 2, 50.0),
        ("rest of line", "typescript", 2, 50.0),
        ("rest of line", "javascript+typescript", 4, 50.0),
    ]
    assert len(result["rows"]) == 16 and len(result["rows"][0]["exact_match_95"]) == 2
    assert [(b["from"], b["n"], b["exact"]) for b in result["reliability"]] == [
        (10, 6, 0.0),
        (40, 6, 0.0),
        (80, 12, 100.0),
    ]

    evaluation.main([*options, "--engine", engine])
    shown = capsys.readouterr().out
    assert "javascript+typescript" in shown and "exact of shown" in shown and "reliability" in shown
    assert "\x1b" not in shown

    assert asked[0].trace and "choices" in result and not result["choices"]  # a script has no choice


def test_holes_are_written_as_requests_instead(
    figures: Eval, tmp_path: Path, asked: list[FillRequest], script: Script
) -> None:
    (tmp_path / "python.heldout.jsonl").write_text(json.dumps({"package": "p", "path": "a", "text": SOURCE}) + "\n")
    file = tmp_path / "requests"
    options = ("heldout", "--corpus", str(tmp_path), "--limit", "6", "--kind", "rest of line", "--kind", "argument")
    assert figures(*options, "--list", "other", "--requests", str(file)) == {"requests": 6}
    assert not asked
    bodies = [json.loads(line) for line in file.read_text().splitlines()]
    requests = [parse_request(body["request"]) for body in bodies]
    for body, request in zip(bodies, requests, strict=True):
        assert request.prefix + body["middle"] + request.suffix == SOURCE and request.mode == "line"
        assert len(request.likely) == len(request.starts)
    assert any(request.starts for request in requests)
    figures(*options, "--engine", script())
    assert {one.prefix for one in asked} != {one.prefix for one in requests}  # another list of holes
    asked.clear()
    figures(*options, "--list", "other", "--engine", script())
    assert [replace(one, trace=False) for one in asked] == [replace(one, trace=False) for one in requests]
    with pytest.raises(UsageError, match="cannot write"):
        figures(*options, "--requests", str(tmp_path))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "a.py").write_text(SOURCE)
    for command in (["init", "--quiet"], ["add", "a.py"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True, timeout=60, capture_output=True)
    return folder


def test_two_profiles_fill_the_same_holes(
    script: Script,
    figures: Eval,
    repository: Path,
    asked: list[FillRequest],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        scripted, "load", lambda path: scripted.ScriptedEngine((scripted.Entry(after=" ", fills=("total",)),))
    )
    options = ("repo", str(repository), "--limit", "8", "--engine", script(), "--profile", "one", "--profile", "two")
    result = figures(*options)
    assert result["n"] == 8 and [one["profile"] for one in result["profiles"]] == ["one", "two"]
    assert asked[:8] == asked[8:] and len({one.prefix for one in asked}) == 8
    assert result["profiles"][0]["kinds"].keys() == {"rest of line", "whole line", "argument", "block"}
    assert result["exact_match_differences"] == [
        {"profile": "two", "against": "one", "points": 0.0, "points_95": [0.0, 0.0]}
    ]
    evaluation.main(options)
    shown = capsys.readouterr().out
    assert shown.count("exact match %") == 2 and "exact match of two against one: +0.0 points" in shown


def test_without_a_profile_the_embedded_one_is_measured(script: Script, figures: Eval, repository: Path) -> None:
    result = figures("repo", str(repository), "--limit", "4", "--engine", script({"fill": "x"}))
    assert [one["profile"] for one in result["profiles"]] == ["embedded"]
    assert result["exact_match_differences"] == []


def test_sources_of_context_are_compared_on_the_same_holes(
    script: Script, figures: Eval, repository: Path, asked: list[FillRequest], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in (("b.py", SOURCE), ("c.py", SOURCE.replace("total", "amount")), (".env", SOURCE)):
        (repository / name).write_text(text)
    subprocess.run(["git", "-C", str(repository), "add", "--force", "."], check=True, timeout=60, capture_output=True)
    options = ("repo", str(repository), "--limit", "4", "--engine", script(), "--context", "files", "lines")
    result = figures(*options)
    assert [row["context"] for row in result["context"]] == ["none", "files", "lines", "together"]
    assert all(row["exact_gain"] == 0 and row["similarity_gain_95"] == [0, 0] for row in result["context"])
    none, files, lines, together = (asked[start : start + 4] for start in range(0, 16, 4))
    assert all(not one.context and not one.starts for one in none)
    assert {item.kind for one in files for item in one.context} == {"file"}
    assert any(one.starts for one in lines) and not any(one.context for one in lines)
    assert [one.context for one in together] == [one.context for one in files]
    assert not any(".env" in (one.path, *(item.path for item in one.context)) for one in asked)
    evaluation.main(options)
    assert "exact gain" in capsys.readouterr().out


def test_errors_are_one_line(
    script: Script, data: Callable[..., str], repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = script({"error": {"code": "model", "message": "out of memory", "hint": "close something"}})
    path = data(problem("SingleLineInfilling/HumanEval/0/L0"))
    for arguments, code, said in (
        (["human-eval-infilling", "--data", path, "--engine", engine], 1, "out of memory (close something)"),
        (["human-eval-infilling", "--data", "none.gz"], 2, "cannot read none.gz: No such file"),
        (["human-eval-infilling"], 2, "--data"),
        (["heldout", "--corpus", str(repository)], 2, "no held-out files"),
        (["repo", str(repository), "--profile", "a", "--profile", "a"], 2, "none of them twice"),
        (["repo", str(repository), "--limit", "0"], 2, "whole number"),
        (["repo", str(repository), "--context", "cells"], 2, "cells"),
        (["repo", str(repository), "--context", "--profile", "a", "--profile", "b"], 2, "one --profile"),
        ([], 2, "required"),
    ):
        assert midfill(["eval", *arguments]) == code
        error = capsys.readouterr().err
        assert said in error and error.startswith("midfill: ") and error.count("\n") == 1, error


def test_an_interrupt_leaves_no_process(script: Script, data: Callable[..., str]) -> None:
    path = data(problem("SingleLineInfilling/HumanEval/0/L0"))
    options = ["--data", path, "--seconds", "600", "--engine", script({"fill": "    while True: pass"})]
    command = [sys.executable, "-I", "-m", "lsp_server", "eval", "human-eval-infilling", *options]

    def listen_to_interrupts() -> None:
        # Whoever runs the tests in the background has made them deaf to it.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, preexec_fn=listen_to_interrupts
    ) as ours:
        process, programs = psutil.Process(ours.pid), []
        while not programs and ours.poll() is None:
            programs = process.children()
        ours.send_signal(signal.SIGINT)
        assert ours.communicate(timeout=60) == (b"", b"")
    assert ours.returncode == 130
    assert programs and not any(program.is_running() for program in programs)


@pytest.mark.parametrize("kind", ["", "human-eval-infilling", "heldout", "repo"])
def test_help_shows_how_to_begin(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        evaluation.main([*([kind] if kind else []), "--help"])
    shown = capsys.readouterr().out
    assert (f"midfill eval {kind}" in shown) and ("example" in shown or not kind)
    with pytest.raises(UsageError):
        evaluation.main([kind, "--nonsense"])
