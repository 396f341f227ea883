"""midfill bench replay: how files are typed, what is accepted, and exact figures from the real server with a script."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.commands import bench, bench_replay, replay_chart
from lsp_server.commands.eval_cuts import Text
from lsp_server.commands.replay_run import Counts, Way
from lsp_server.commands.replay_typing import KEY_MS, Stretch, acceptance, keys_of, pauses, stretch
from lsp_server.usage import UsageError

FILE = '''\
"""A module with a text above its code that is long enough for a source file, which the command asks for in a file of
its own; what is typed of it are the lines below, and every one of them is short."""


def mean(values):
    total = sum(values)
    return total / len(values)
'''
CODE = FILE[FILE.index("def") :]


def place(target: str, before: str = "", after: str = "") -> Stretch:
    return Stretch(name="a.py", language="python", before=before, target=target, after=after)


def item(text: str, start: int, end: int, line: int = 0) -> dict[str, Any]:
    edges = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
    return {"insertText": text, "range": edges}


@given(text=st.text(st.sampled_from("ab \n\t"), max_size=200), chars=st.integers(0, 80), seed=st.integers(0, 9))
def test_a_stretch_is_whole_lines_of_its_file_and_every_key_brings_it_further(text: str, chars: int, seed: int) -> None:
    found = stretch(Text(language="python", path="a.py", text=text), chars, seed)
    assert found.text(len(found.target)) == text
    assert found.before == "" or found.before.endswith("\n")
    assert found.after == "" or found.after.startswith("\n")
    assert stretch(Text(language="python", path="a.py", text=text), chars, seed) == found
    if not chars:
        assert found.target == text
    done = keys_of(found.target)
    assert done == sorted(set(done)) and done[-1] == len(found.target)


@pytest.mark.parametrize(
    ("target", "keys"),
    [
        ("ab", ["a", "b"]),
        ("  a\n  b", [" ", " ", "a", "\n  ", "b"]),
        ("  a\n    b", [" ", " ", "a", "\n  ", " ", " ", "b"]),
        ("  a\nb", [" ", " ", "a", "\n", "b"]),
        ("  a\n  \n  b", [" ", " ", "a", "\n", " ", " ", "\n  ", "b"]),
        ("\ta\n\n\tb", ["\t", "a", "\n", "\n", "\t", "b"]),
    ],
)
def test_an_editor_indents_the_next_line_as_far_as_the_file_does(target: str, keys: list[str]) -> None:
    done = keys_of(target)
    assert [target[start:end] for start, end in pairwise(done)] == keys


def test_keys_come_at_human_speed_and_the_seed_says_when() -> None:
    slow, fast = list(islice(pauses(3, 1), 4000)), list(islice(pauses(3, 10), 4000))
    assert sum(slow) / len(slow) * 1000 == pytest.approx(KEY_MS, rel=0.05)
    assert fast == pytest.approx([pause / 10 for pause in slow])
    assert slow != list(islice(pauses(4, 1), 4000))


@pytest.mark.parametrize(
    ("target", "done", "text", "taken", "keys", "reached"),
    [
        ("total = 1", 1, "otal = 1", "whole", 1, 9),
        ("total = 1", 1, "otal", "whole", 1, 5),  # All of it fits, and the rest is typed.
        ("total = 1", 1, "otal = 2", "word", 2, 7),
        ("a = 1\nb = 2", 0, "a = 1\nc = 3", "line", 1, 5),
        ("total = 1", 1, "his", None, 0, 0),
        ("ab", 0, "a c", None, 0, 0),  # A word of one letter saves no key.
        ("", 0, "x", None, 0, 0),
    ],
)
def test_what_fits_of_an_item_is_accepted(
    target: str, done: int, text: str, taken: str | None, keys: int, reached: int
) -> None:
    found = acceptance(place(target, before="x\n", after="\ny"), done, item(text, done, done, line=1))
    if taken is None:
        assert found is None
    else:
        assert found is not None
        assert (found.taken, found.keys, found.done) == (taken, keys, reached)


def test_an_item_may_replace_blanks_before_the_cursor_and_closers_behind_it() -> None:
    dedent = acceptance(place("a:\n    b\nc"), 13, item("c", 0, 4, line=2))
    assert dedent is None  # That is more than there is to type.
    dedent = acceptance(place("  a\nb", before="if x:\n"), 4, item("b", 0, 0, line=2))
    assert dedent is not None and dedent.done == 5
    closers = acceptance(place("f(a", after=")\n"), 2, item("a)", 2, 3))
    assert closers is not None and (closers.done, closers.span) == (3, (2, 3))
    assert acceptance(place("f(a", after=")\n"), 2, item("b)", 2, 3)) is None


# --- the real server


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Replays FILE, or other files, against a script and returns the ways' figures by name."""
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", "set by the command, restored by the test")

    def replay(script: list[dict[str, Any]], *arguments: str) -> dict[str, dict[str, Any]]:
        (tmp_path / "script.json").write_text(json.dumps(script), encoding="utf-8")
        (tmp_path / "typed.py").write_text(FILE, encoding="utf-8")
        engine = f"scripted:{tmp_path / 'script.json'}"
        given = ["replay", "--engine", engine, "--cadence", "wait", "--json", *arguments, str(tmp_path / "typed.py")]
        assert bench.main(given) == 0
        body = json.loads(capsys.readouterr().out)
        return {way["way"]: way for way in body["ways"]}

    return replay


def test_the_figures_of_a_tiny_file_are_exact(run: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "asked"
    script = [
        {"log": str(log)},
        {"after": "    t", "fill": "otal = sum(values)"},  # right
        {"after": "    r", "fill": "eturn total * 2"},  # its first two words are right
        {"after": "def ", "fill": "median(values):"},  # goes on to be wrong until something else is typed
    ]
    found = run(script, "--chars", "0", "--ways", "warm start,no cache", "--chart", str(tmp_path / "chart.svg"))
    keys_by_hand = len(keys_of(FILE)) - 1
    for way in found.values():
        assert way["files"] == 1 and way["characters"] == len(FILE)
        # One key instead of 18, and two instead of 11.
        assert way["keys"] == keys_by_hand - 17 - 9
        assert way["saved"] == pytest.approx(100 * 26 / keys_by_hand)
        assert way["accepted"] == pytest.approx(100 * 29 / len(FILE))
        assert (way["whole"], way["parts"], way["late"]) == (1, 1, 0)
    warm, cold = found["warm start"], found["no cache"]
    requests = warm["keys"] - 1  # Two words cost two keys and are one change.
    # With a cache "median(values):" stays while "me" is typed, and " * 2" behind "total", until its blank is typed.
    assert warm["wrong"] == pytest.approx(100 * 5 / requests)
    assert cold["wrong"] == pytest.approx(100 * 1 / requests)
    assert warm["shown"] == pytest.approx(100 * 7 / requests)
    assert cold["shown"] == pytest.approx(100 * 3 / requests)
    assert warm["wrong_of_shown"] == pytest.approx(100 * 5 / 7)
    assert (warm["without_model"], cold["without_model"]) == (pytest.approx(100 * 4 / requests), 0)
    asked = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert asked
    assert all(request.get("decoding", "diffusion") == "diffusion" for request in asked)
    assert cold["decoder_calls"] > warm["decoder_calls"] > 0
    assert cold["decoder_calls"] * requests + warm["decoder_calls"] * requests == pytest.approx(len(asked))
    chart = ElementTree.fromstring((tmp_path / "chart.svg").read_text(encoding="utf-8"))
    assert "no cache" in "".join(chart.itertext())


def test_the_ways_differ_in_what_the_engine_is_asked(run: Callable[..., Any], tmp_path: Path) -> None:
    log = tmp_path / "asked"
    script = [{"log": str(log)}, {"after": "    t", "fill": "ime = now()"}]

    def asked(way: str) -> list[dict[str, Any]]:
        log.unlink(missing_ok=True)
        run(script, "--chars", "0", "--ways", way)
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    assert any(request["starts"] for request in asked("warm start"))
    for way in ("cache", "no cache", "left to right"):
        requests = asked(way)
        assert requests and not any(request["starts"] for request in requests)
        wanted = "left-to-right" if way == "left to right" else "diffusion"
        assert {request["decoding"] for request in requests} == {wanted}


def test_a_key_that_comes_before_the_answer_is_counted_as_late(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = [{"after": "", "fill": "never_seen", "delay_ms": 600_000}]
    found = run(script, "--chars", "20", "--ways", "no cache", "--cadence", "100")["no cache"]
    assert found["late"] > 0 and found["shown"] == 0 and found["saved"] == 0
    assert found["p50_ms"] is None or found["late"] < 100


def test_files_come_from_folders_that_git_tracks(run: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "repo"
    folder.mkdir()
    for name in ("a.py", "b.py", "notes.md"):
        (folder / name).write_text(FILE, encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
    found = run([], "--chars", "10", "--ways", "no cache", str(folder))["no cache"]
    assert found["files"] == 3  # with the one that the fixture names
    assert found["characters"] == found["keys"] and found["decoder_calls"] > 0
    assert run([], "--files", "2", "--chars", "10", "--ways", "no cache", str(folder))["no cache"]["files"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--cadence", "0"], "0.1 to 100"),
        (["--cadence", "fast"], "0.1 to 100"),
        (["--min-confidence", "0.2,2"], "-1 to 1"),
        (["--ways", "backwards"], "no way 'backwards'"),
        (["--files", "0"], "1 to 10000"),
    ],
)
def test_wrong_arguments_are_named(tmp_path: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bench_replay.main([str(tmp_path / "a.py"), *arguments])


def test_a_file_that_is_no_source_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("short", encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.py cannot be replayed"):
        bench_replay.main([str(tmp_path / "a.py")])


def test_an_interruption_gives_the_figures_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", "set by the command, restored by the test")
    (tmp_path / "script.json").write_text("[]", encoding="utf-8")
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(FILE, encoding="utf-8")
    started: list[str] = []

    def interrupt_at_the_second(line: str) -> None:
        started.append(line)
        if line.startswith("2/2"):
            raise KeyboardInterrupt

    monkeypatch.setattr(bench_replay, "_progress", interrupt_at_the_second)
    files = [str(tmp_path / "a.py"), str(tmp_path / "b.py")]
    options = ["--engine", f"scripted:{tmp_path / 'script.json'}", "--cadence", "wait", "--chars", "10", "--json"]
    assert bench_replay.main([*files, *options, "--ways", "cache"]) == 130
    (way,) = json.loads(capsys.readouterr().out)["ways"]
    assert way["files"] == 1 and way["keys"] > 0
    assert len(started) == 2


def test_a_chart_is_the_same_for_the_same_figures_and_shows_every_way() -> None:
    ways = [Way(name=name, measured="", min_confidence=sure) for name in ("a < b", "c") for sure in (0.2, 0.5)]
    counted = [Counts(way=way, by_hand=100, keys=100 - 10 * n, requests=50, wrong=n) for n, way in enumerate(ways)]
    body = [vars(bench_replay.figures(one)) for one in counted]
    chart = replay_chart.chart(body, "at human speed")
    assert chart == replay_chart.chart(body, "at human speed")
    texts = [element.text for element in ElementTree.fromstring(chart).iter() if element.tag.endswith("text")]
    assert {"at human speed", "a < b, 0.2", "c, 0.5", "30.0"} <= set(texts)
    assert ElementTree.fromstring(replay_chart.chart([], "nothing")) is not None
