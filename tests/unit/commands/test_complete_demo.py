"""`midfill complete` and `midfill demo` with the scripted engine."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from diffusion.api import Candidate, Cell, Draft, EngineError, FillRequest, Result
from lsp_server.__main__ import main as midfill
from lsp_server.commands import complete, demo, render

Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Writes a script and a file to complete; gives the value of --engine."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_bytes(b"def total(items):\r\n    return sum()\r\n\r\n\r\ndef other(): ...\r\n")

    def write(*entries: dict[str, Any]) -> str:
        (tmp_path / "script.json").write_text(json.dumps(entries))
        return f"scripted:{tmp_path / 'script.json'}"

    return write


def test_json_has_the_promised_keys(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"fill": ["items", "x for x in items"], "confidence": 0.5, "delay_ms": 1})
    assert complete.main(["a.py:2:16", "--n", "2", "--json", "--engine", engine]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["text"] == "items"
    assert answer["candidates"] == [
        {"text": "items", "replace_before": 0, "confidence": 0.5},
        {"text": "x for x in items", "replace_before": 0, "confidence": 0.5},
    ]
    assert (answer["forwards"], answer["ms"], answer["model"]) == (1, 1, "scripted")
    assert (answer["finish"], answer["replace_before"]) == ("stop", 0)
    assert "steps" not in answer


def test_the_request_is_what_was_asked_for(script: Script, asked: list[FillRequest]) -> None:
    options = ["--seed", "7", "--deadline-ms", "300", "--max-lines", "1", "--n", "3", "--steps", "--json"]
    complete.main(["a.py:3:1", *options, "--engine", script({"fill": "x"})])
    (request,) = asked
    assert request.prefix == "def total(items):\r\n    return sum()\r\n"
    assert request.suffix == "\r\n\r\ndef other(): ...\r\n"
    assert (request.language, request.mode, request.max_lines, request.n) == ("python", "line", 1, 3)
    assert (request.seed, request.deadline_ms, request.drafts, request.cells) == (7, 300, True, True)
    assert request.path.endswith("/a.py") and request.client == ""


def test_without_colour_the_filled_span_stands_in_marks(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    complete.main(["a.py:2:16", "--steps", "--engine", script({"fill": "items", "drafts": ["it"]})])
    out = capsys.readouterr().out
    assert "    return sum(⟦items⟧)\n" in out
    assert "   1  it\n" in out
    assert "\x1b" not in out and "\r" not in out


def test_replaced_indentation_is_not_shown_twice(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"fill": "return 1", "replace_before": 4})
    (Path.cwd() / "b.py").write_text("def f():\n    ")
    complete.main(["b.py:2:5", "--engine", engine])
    assert "\n⟦return 1⟧\n" in capsys.readouterr().out


def test_escapes_never_reach_the_terminal(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"fill": "\x1b]0;title\x07\x9b[red]x[/red]"})
    complete.main(["a.py:2:16", "--engine", engine])
    out = capsys.readouterr().out
    assert "\x1b" not in out and "\x9b" not in out and "[red]x[/red]" in out


def test_standard_input(
    script: Script, asked: list[FillRequest], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"f()")))
    complete.main(["-:1:3", "--language", "lua", "--engine", script({"fill": "1"})])
    assert "f(⟦1⟧)" in capsys.readouterr().out
    assert (asked[0].language, asked[0].path) == ("lua", "")


def test_nothing_offered_is_said(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    assert complete.main(["a.py:2:16", "--engine", script()]) == 0
    assert "nothing to offer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["a.py:9:9"], 2, "a.py has no line 9"),
        (["a.py:2:16", "--n", "0"], 2, "1 to 10"),
        (["a.py:2:16", "--deadline-ms", "-3"], 2, "deadline-ms"),
        (["a.py:2:16", "--engine", "magic"], 2, "unknown engine"),
        (["a.py:2:16", "--engine", "scripted:none.json"], 1, "none.json"),
        (["a.py:2:16", "--profile", "../x"], 1, "not the name of a profile"),
        (["empty.py:1:1", "--engine", "scripted:none.json"], 2, "empty"),
        ([], 2, "--help"),
    ],
)
def test_errors_are_one_line(
    script: Script, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    (Path.cwd() / "empty.py").write_text("")
    assert midfill(["complete", *arguments]) == code
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1 and said in captured.err


def test_a_failure_of_the_engine_is_one_line(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    engine = script({"error": {"code": "model", "message": "out of memory", "hint": "a smaller profile"}})
    assert midfill(["complete", "a.py:2:16", "--engine", engine]) == 1
    assert capsys.readouterr().err == "midfill: out of memory (a smaller profile)\n"
    with pytest.raises(EngineError):
        complete.main(["a.py:2:16", "--engine", script({"error": "no"})])


def test_demo_fills_every_place_and_sums_up(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    spans = [span for file in demo.FILES for span in demo.spans_in(file)]
    entries = [{"fill": span.written, "drafts": [span.written[:1], span.written]} for span in spans]
    assert demo.main(["--engine", script(*entries)]) == 0
    out = capsys.readouterr().out
    assert all(f"⟦{span.written}⟧" in out for span in spans)
    assert out.count("-> as the author wrote it\n") == len(spans)
    assert f"{len(spans)} places in 3 files, {2 * len(spans)} forwards" in out
    assert f"{len(spans)} exactly as the author wrote" in out
    assert "midfill complete FILE:LINE:COLUMN" in out


def test_demo_says_what_the_author_wrote_instead(script: Script, capsys: pytest.CaptureFixture[str]) -> None:
    spans = [span for file in demo.FILES for span in demo.spans_in(file)]
    demo.main(["--engine", script({"fill": "something else"})])
    out = capsys.readouterr().out
    assert (
        f"-> the author wrote: {spans[0].written}" in out
        and f"nothing offered; the author wrote: {spans[1].written}" in out
    )
    assert "0 exactly as the author wrote" in out


@pytest.mark.parametrize("file", demo.FILES)
def test_demo_files_are_whole_without_their_marks(file: str) -> None:
    spans = list(demo.spans_in(file))
    assert len(spans) >= 5
    whole = {span.prefix + span.written + span.suffix for span in spans}
    assert len(whole) == 1 and not {"⟦", "⟧"} & set(whole.pop())
    if file.endswith(".py"):
        compile(spans[0].prefix + spans[0].written + spans[0].suffix, file, "exec")


def test_as_written_counts_rewritten_indentation() -> None:
    span = demo.Span(file="a.py", line=2, prefix="if x:\n    ", written="pass", suffix="\n")
    same = Result(candidates=(Candidate(text="    pass", replace_before=4),))
    assert demo.as_written(span, same)
    assert not demo.as_written(span, Result(candidates=(Candidate(text="pass", replace_before=4),)))


def test_a_canvas_shows_the_state_of_every_cell() -> None:
    cells = (
        Cell(text="a", state="accepted"),
        Cell(text="guess", state="masked"),
        Cell(text="\n  ", state="accepted"),
        Cell(text="", state="end"),
    )
    assert render.canvas(Draft(step=1, text="a", cells=cells)).plain == "a░⏎  ·"
