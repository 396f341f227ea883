"""Models that cannot be loaded: what is said, and that the next request works once the cause is gone."""

from __future__ import annotations

import asyncio
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from engine_processes import NewClient, ask, events_of, text_of

from diffusion import model_files, profiles
from diffusion.api import EngineError, Failure, Result
from tests.at_rest import at_rest

ROOT = Path(__file__).parents[3]
REAL = (sys.executable, "-I", "-m", "diffusion.server")


async def test_a_model_that_cannot_be_loaded(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "error").write_text("the weights are truncated")
    monkeypatch.setenv("FAKE_LOAD_ERROR", str(home / "error"))
    client = new_client()
    for _ in range(2):
        (end,) = await events_of(client, ask("x"))
        assert end == Failure(code="model", message="the weights are truncated", hint="run midfill doctor")
    with pytest.raises(EngineError, match="truncated"):
        await client.wait_ready()
    status = await client.status()
    assert status.state == "errored" and "truncated" in status.detail and "midfill doctor" in status.detail


async def test_it_is_loaded_anew_when_its_files_have_changed(
    new_client: NewClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = home / "config" / "midfill" / "profiles" / "fake.toml"
    profile.parent.mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    (home / "error").write_text("the weights are truncated")
    monkeypatch.setenv("FAKE_LOAD_ERROR", str(home / "error"))
    client = new_client()
    for content in ("", "# not better", "# still not"):
        profile.write_text(content)
        (end,) = await events_of(client, ask("x"))
        assert isinstance(end, Failure) and "truncated" in end.message
    pid = (await client.status()).pid
    (home / "error").unlink()
    profile.write_text("# mended")
    lease = client.events()
    assert (await asyncio.wait_for(anext(lease), 60)).state == "errored"
    assert text_of(await events_of(client, ask("next"))) == "next|"
    while (await asyncio.wait_for(anext(lease), 60)).state not in ("ready", "busy"):
        pass
    await lease.aclose()
    status = await at_rest(client)
    assert (status.state, status.pid, status.requests) == ("ready", pid, 4)
    assert client.paths.log.read_text().count("files have changed") == 3


# --- the real engine


def mend(file: Path) -> None:
    file.unlink(missing_ok=True)
    shutil.copy(ROOT / "diffusion" / "weights" / file.name, file)


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100_000])


def not_safetensors(file: Path) -> None:
    file.write_bytes(b"PK" + bytes(range(256)) * 100)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def huge(file: Path) -> None:
    """As large as no machine's memory: a header and nothing behind it, which takes no space on a disk."""
    header = b'{"x": {"dtype": "F16", "shape": [4000000000000], "data_offsets": [0, 8000000000000]}}'
    with file.open("wb") as opened:
        opened.write(struct.pack("<Q", len(header)) + header)
        opened.truncate(8 + len(header) + 8_000_000_000_000)


@pytest.fixture
def weights(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the embedded model, with a profile "mine" of the user's that names it."""
    folder = home / "config" / "midfill" / "profiles"
    shutil.copytree(ROOT / "diffusion" / "weights", folder / "mine")
    text = (ROOT / "diffusion" / "profiles" / "embedded.toml").read_text()
    text = text.replace('name = "embedded"', 'name = "mine"').replace('"package:weights"', '"mine"')
    (folder / "mine.toml").write_text(text)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    return folder / "mine" / "model.safetensors"


SPOILERS: tuple[tuple[Callable[[Path], object], str, str], ...] = (
    (Path.unlink, "missing", "reinstall"),
    (cut_off, "damaged", "reinstall"),
    (not_safetensors, "damaged", "reinstall"),
    (empty, "damaged", "reinstall"),
    (huge, "not enough memory for the model mine, which needs 16000.0 GB", "embedded (31 MB)"),
)


@pytest.mark.slow
async def test_weights_that_cannot_be_used_and_then_can(new_client: NewClient, weights: Path) -> None:
    """One engine process sees all of it, since it loads anew whenever the files have changed."""
    client = new_client("mine", command=REAL)
    for spoil, said, hint in SPOILERS:
        spoil(weights)
        (end,) = await events_of(client, ask("x = "))
        assert isinstance(end, Failure) and end.code == "model", end
        assert said in end.message and "Traceback" not in end.message and hint in end.hint
        status = await client.status()
        assert status.state == "errored" and end.message in status.detail and end.hint in status.detail
        mend(weights)
    end = (await events_of(client, ask("x = ")))[-1]
    assert isinstance(end, Result), (end, client.paths.log.read_text())
    assert (await client.status()).requests == len(SPOILERS) + 1


# --- lack of memory


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
        RuntimeError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        OSError(12, "Cannot allocate memory"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        EngineError("the weights x are damaged: Cannot allocate memory (os error 12)"),
    ],
)
def test_lack_of_memory_is_told_with_what_would_help(error: Exception) -> None:
    with pytest.raises(EngineError) as raised, model_files.lack_of_memory_told("embedded"):
        raise error
    assert raised.value.message == "there is not enough memory for the model embedded, which needs 31 MB"
    assert "midfill engine start" in raised.value.hint and "no other profile here needs less" in raised.value.hint


def test_other_errors_are_left_alone() -> None:
    for error in (RuntimeError("shape mismatch"), EngineError("the weights are missing"), ImportError("no torch")):
        with pytest.raises(type(error), match=str(error)), model_files.lack_of_memory_told("embedded"):
            raise error


@pytest.mark.parametrize("content", [b"", b"1234567", b"\xff" * 50, struct.pack("<Q", 2) + b"[]"])
def test_files_that_say_nothing_of_memory(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    text = (ROOT / "diffusion" / "profiles" / "embedded.toml").read_text()
    (tmp_path / "p.toml").write_text(text.replace('"package:weights"', '"."'))
    assert model_files.needed(profiles.parse_profile(tmp_path / "p.toml")) == 0
