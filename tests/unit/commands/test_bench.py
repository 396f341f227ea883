"""midfill bench: that it measures the real processes and says so in both forms."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lsp_server.commands import bench, bench_keystrokes


@pytest.mark.slow
def test_bench_measures_engine_and_server(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", "set by bench, restored by the test")
    assert bench.main(["--requests", "2", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["requests"] == 2 and figures["fill_forwards"] >= 1
    assert all(figures[name] > 0 for name in ("cold_start_s", "initialize_ms", "engine_mib", "recovery_s"))
    assert len(figures["windows_mib"]) == bench.WINDOWS and min(figures["windows_mib"]) > 0
    assert all(spent > 0 for spent in figures["border_ms"])
    # A completion through the server holds a fill.
    assert figures["round_trip_ms"][1] > 0 and figures["fill_ms"][1] > 0


def test_percentiles() -> None:
    assert bench._percentiles([float(n) for n in range(100, -1, -1)]) == (50.0, 95.0)
    assert bench._percentiles([7.0]) == (7.0, 7.0)
    assert bench._percentiles([float(n) for n in range(101)], 0.99) == (50.0, 99.0)


def test_keystrokes_are_answered_by_the_whole_pipeline_and_counted(tmp_path: Path) -> None:
    text = bench._document(400)
    line = bench_keystrokes.body_line(text)
    assert text.split("\n")[line - 1].startswith("    return ")
    typed = "    x = f(a)\n    y"
    measured = bench_keystrokes.measure(text, line, ["a = 1\n"], typed, tmp_path / "script.json")
    assert len(measured.wall) == len(measured.cpu) == len(typed) - bench_keystrokes.WARM_UP
    assert all(spent > 0 for spent in measured.wall)
