"""`midfill engine`, `doctor` and `complete` with a real engine process around the commanded model."""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from engine_processes import FAKE, engines_in

from lsp_server.__main__ import main as midfill
from lsp_server.commands import doctor, engine, session
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import engine_paths
from lsp_server.engine_start import engine_command

PROFILE = ["--profile", "fake"]
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def fake_engine(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (engine, session, doctor):
        monkeypatch.setattr(module, "EngineClient", functools.partial(EngineClient, command=FAKE))


def test_start_status_stop(home: Path, capsys: Captured) -> None:
    assert midfill(["engine", "status", *PROFILE]) == 1
    assert "no engine is running" in capsys.readouterr().out
    assert midfill(["engine", "start", *PROFILE]) == 0
    first = capsys.readouterr().out
    assert "ready" in first and "fake on cpu" in first and ".log" in first
    assert midfill(["engine", "start", *PROFILE]) == 0
    capsys.readouterr()
    assert midfill(["engine", "status", "--json", *PROFILE]) == 0
    status = json.loads(capsys.readouterr().out)
    (process,) = engines_in(home)
    assert (status["state"], status["pid"]) == ("ready", process.pid)
    assert midfill(["engine", "stop", *PROFILE]) == 0
    assert f"stopped (process {process.pid})" in capsys.readouterr().out
    assert engines_in(home) == []
    assert midfill(["engine", "stop", *PROFILE]) == 0
    assert "no engine is running" in capsys.readouterr().out
    assert midfill(["engine", "status", "--json", *PROFILE]) == 1
    assert json.loads(capsys.readouterr().out)["state"] == "stopped"


def test_start_tries_again_after_a_failed_load(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    (home / "error").write_text("the weights are truncated")
    monkeypatch.setenv("FAKE_LOAD_ERROR", str(home / "error"))
    assert midfill(["engine", "start", *PROFILE]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "the weights are truncated" in said and "midfill engine start" in said
    assert midfill(["engine", "status", *PROFILE]) == 1
    assert "errored: the weights are truncated" in capsys.readouterr().out
    (home / "error").unlink()
    assert midfill(["engine", "start", *PROFILE]) == 0


def test_complete_starts_the_engine(home: Path, capsys: Captured) -> None:
    (home / "a.txt").write_text("drafts 2")
    assert midfill(["complete", f"{home / 'a.txt'}:1:9", "--steps", *PROFILE]) == 0
    out = capsys.readouterr().out
    assert "   2  draft 2\n" in out and "⟦drafts 2|⟧" in out and "fake · 1 forward" in out


def test_engine_that_cannot_be_started_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (home / "a.txt").write_text("x")
    broken = (sys.executable, "-I", "-c", "raise SystemExit('no such module')")
    monkeypatch.setattr(session, "EngineClient", functools.partial(EngineClient, command=broken))
    assert midfill(["complete", f"{home / 'a.txt'}:1:1", *PROFILE]) == 1
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("\n") == 1
    assert "no such module" in captured.err and ".log" in captured.err


def test_foreground_runs_in_this_process_until_interrupted(home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    socket = engine_paths("fake").socket
    command = [*FAKE, "--socket", str(socket), "--profile", "fake", "--foreground"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        line = next(line for line in process.stderr if "ready" in line or not line)
        assert "INFO ready" in line
        process.send_signal(signal.SIGINT)
        assert "stopped" in process.stderr.read()
    assert process.returncode == 0 and not socket.exists()


def test_foreground_becomes_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda path, words: executed.append([path, *words]))
    monkeypatch.setattr(os, "chdir", lambda folder: None)
    monkeypatch.setattr(engine, "_print_status", lambda *said: None)
    midfill(["engine", "start", "--foreground", "--idle", "7", *PROFILE])
    (words,) = executed
    assert words[0] == sys.executable and words[2:5] == ["-I", "-m", "diffusion.server"]
    assert words[-1] == "--foreground" and words[words.index("--idle") + 1] == "7.0"


def test_doctor_with_and_without_an_engine(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    facts = {
        "torch": {"version": "9", "threads": 1, "device": "cpu", "cuda": ""},
        "profile": {"name": "fake", "title": "t", "weights": "/w", "bytes": 5_000_000, "missing": []},
    }
    monkeypatch.setattr(doctor, "_facts", lambda profile: facts)
    assert midfill(["doctor", *PROFILE]) == 0
    out = capsys.readouterr().out
    assert "not running" in out and "all is well" in out and str(home / "run") in out and "5.0 MB" in out
    midfill(["engine", "start", *PROFILE])
    capsys.readouterr()
    assert midfill(["doctor", "--json", *PROFILE]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["engine"]["value"].startswith("ready, fake on cpu")
    assert "torch 2" in checks["packages"]["value"] and "pytest" not in checks["packages"]["value"]
    assert {"midfill", "python", "packages", "torch", "weights", "socket", "log", "state folder"} <= checks.keys()


def test_doctor_says_what_is_wrong(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    facts = {
        "torch": {"error": "OSError: libc10.so is missing", "hint": "install midfill again"},
        "profile": {"name": "fake", "title": "t", "weights": "/w", "bytes": 0, "missing": ["model.safetensors"]},
    }
    monkeypatch.setattr(doctor, "_facts", lambda profile: facts)
    (home / "run").mkdir(mode=0o755)
    assert midfill(["doctor", *PROFILE]) == 1
    out = capsys.readouterr().out
    assert "libc10.so" in out and "-> install midfill again" in out
    assert "missing in /w: model.safetensors" in out
    assert "not a private folder" in out and "MIDFILL_RUNTIME_DIR" in out


@pytest.mark.slow
def test_doctor_looks_at_the_real_torch_in_a_child() -> None:
    facts = doctor._facts("no-such-profile")
    assert facts["torch"]["version"] and facts["torch"]["threads"] >= 1
    assert "no-such-profile" in facts["profile"]["error"] and "embedded" in facts["profile"]["hint"]


def test_start_opens_a_port_for_other_tools(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    assert midfill(["engine", "start", "--listen", "127.0.0.1:0", *PROFILE]) == 0
    first = capsys.readouterr().out
    key = engine_paths("fake").key.read_text()
    assert "http://127.0.0.1:" in first and key in first and "shown this once" in first
    assert midfill(["engine", "start", "--listen", "127.0.0.1:0", *PROFILE]) == 0
    assert key not in capsys.readouterr().out
    monkeypatch.setenv("MY_KEY", "mine")
    assert midfill(["engine", "start", "--listen", "127.0.0.1:0", "--api-key-env", "MY_KEY", *PROFILE]) == 0
    assert "the one in MY_KEY" in capsys.readouterr().out
    midfill(["engine", "status", "--json", *PROFILE])
    status = json.loads(capsys.readouterr().out)
    assert status["listening"].startswith("127.0.0.1:") and status["socket"] == str(engine_paths("fake").socket)
    answer = httpx.get(f"http://{status['listening']}/v1/models", headers={"authorization": "Bearer mine"})
    assert answer.json()["data"][0]["id"] == "fake"


def test_start_refuses_what_cannot_be_listened_on(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    for words, said in (
        (["--listen", "0.0.0.0:80"], "127.0.0.1:PORT"),
        (["--listen", "127.0.0.1:0", "--api-key-env", "NO_SUCH_KEY"], "NO_SUCH_KEY is empty"),
        (["--api-key-env", "NO_SUCH_KEY"], "needs --listen"),
    ):
        assert midfill(["engine", "start", *words, *PROFILE]) > 0
        assert said in capsys.readouterr().err


def test_foreground_with_a_port(home: Path) -> None:
    (home / "run").mkdir(mode=0o700)
    socket = str(engine_paths("fake").socket)
    command = [*FAKE, "--socket", socket, "--profile", "fake", "--foreground", "--listen", "127.0.0.1:0"]
    environment = {**os.environ, "MIDFILL_API_KEY": "secret"}
    with subprocess.Popen(
        [*command, "--api-key-env", "MIDFILL_API_KEY"], stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr
        line = next(line for line in process.stderr if "listening" in line or not line)
        address = line.split()[line.split().index("on") + 1]
        assert httpx.get(f"http://{address}/v1/models", headers={"authorization": "Bearer secret"}).status_code == 200
        process.send_signal(signal.SIGINT)
        process.stderr.read()
    assert process.returncode == 0
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1 and "API key" in done.stderr and "Traceback" not in done.stderr


def test_status_shows_everything(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    os.mkfifo(home / "gate")
    monkeypatch.setenv("FAKE_LOAD_FIFO", str(home / "gate"))
    paths = engine_paths("fake")
    paths.socket.parent.mkdir(mode=0o700)
    command = engine_command(paths, "fake", 300, FAKE)
    with subprocess.Popen([*command, "--foreground"], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        next(line for line in process.stderr if "loading" in line or not line)
        assert midfill(["engine", "status", "--json", *PROFILE]) == 0
        status = json.loads(capsys.readouterr().out)
        assert status.keys() == {
            "state", "detail", "progress", "model", "device", "version", "protocol", "pid", "uptime", "memory",
            "clients", "requests", "idle", "log", "socket", "listening",
        }  # fmt: skip
        assert (status["state"], status["progress"], status["pid"]) == ("loading", {"done": 1, "total": 2}, process.pid)
        assert midfill(["engine", "status", *PROFILE]) == 0
        out = capsys.readouterr().out
        for said in (
            "loading, 1 of 2",
            f"{process.pid}, up ",
            "MB",
            "0, 0 requests",
            "after 300 s without clients",
            str(paths.log),
            str(paths.socket),
        ):
            assert said in out
        assert "protocol" in out and "none open" in out
        (home / "gate").write_text("")
        process.send_signal(signal.SIGTERM)
        process.stderr.read()


def test_an_engine_that_does_not_answer_is_one_line(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr(engine, "EngineClient", functools.partial(EngineClient, command=FAKE, patience=0.2))
    assert midfill(["engine", "start", *PROFILE]) == 0
    (process,) = engines_in(home)
    process.suspend()
    capsys.readouterr()
    for action in ("status", "stop"):
        assert midfill(["engine", action, *PROFILE]) == 1
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.count("\n") == 1 and f"kill -9 {process.pid}" in captured.err
