"""`midfill model` from first pull to removal, against a hub on this machine that breaks off, lies and refuses."""

from __future__ import annotations

import importlib
import json
import math
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from diffusion import checkpoint, devices, loader, model, model_command, model_store, snapshot
from diffusion.api import BadRequest, EngineError
from diffusion.profiles import load_profile

from . import hub_server, small_moe
from .hub_server import COMMIT, REPOSITORY, Hub

NAME = "small"


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shards, tokenizer, and files that nobody wants."""
    folder = small_moe.save(small_moe.library_model(small_moe.config()), tmp_path_factory.mktemp("repo"), 400_000)
    shutil.copy(load_profile("embedded").weights / "tokenizer.json", folder)
    (folder / "modeling_evil.py").write_text("raise SystemExit")
    (folder / "README.md").write_text("hello")
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folders with a profile of their own, whose weights can be pulled."""
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "HF_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable.lower()))
    shipped = (Path(model_command.__file__).parent / "profiles/diffusiongemma-26b-a4b-it.toml").read_text()
    own = shipped.replace('"diffusiongemma-26b-a4b-it"', f'"{NAME}"').replace(
        "models:diffusiongemma-26b-a4b-it", f"models:{NAME}"
    )
    own = own.replace("google/diffusiongemma-26B-A4B-it", REPOSITORY).replace(
        'aliases = ["diffusiongemma"]', 'aliases = ["s"]'
    )
    profiles = tmp_path / "xdg_config_home/midfill/profiles"
    profiles.mkdir(parents=True)
    (profiles / f"{NAME}.toml").write_text(own)
    return tmp_path


@pytest.fixture
def server(repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with hub_server.serving(repository) as served:
        constants = importlib.import_module("huggingface_hub.constants")
        monkeypatch.setattr(constants, "ENDPOINT", served.url)  # what HF_ENDPOINT sets when it is imported
        files = served.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        for name in ("utils._http", "file_download"):  # it waits between its attempts
            module = importlib.import_module(f"huggingface_hub.{name}")
            patient = SimpleNamespace(**vars(time) | {"sleep": lambda _: None})
            monkeypatch.setattr(module, "time", patient, raising=False)
        yield served


def midfill_model(*arguments: str) -> int:
    return model_command.main(arguments)


def folder_of_model() -> Path:
    return load_profile(NAME).weights


def test_from_pull_to_removal(server: Hub, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert midfill_model("pull", "s") == 0
    folder = folder_of_model()
    assert folder == home / "xdg_data_home/midfill/models/small"
    names = {path.name for path in folder.iterdir() if path.is_file()}
    assert {"config.json", "tokenizer.json", checkpoint.INDEX} < names
    assert "modeling_evil.py" not in names and "README.md" not in names
    assert midfill_model("use", "s") == 0
    assert model_store.chosen() == NAME
    said = capsys.readouterr().out
    assert "next: midfill model use s" in said and "small is used from now on" in said
    assert midfill_model("quantize", NAME, "--discard") == 0
    assert not list(folder.glob("model*.safetensors"))
    assert midfill_model("info", NAME) == 0
    said = capsys.readouterr().out
    assert "all checksums right" in said and f"someone/small at commit {COMMIT}" in said and "experts" in said
    assert midfill_model("list") == 0
    assert "* small" in capsys.readouterr().out
    resident = model.load(load_profile(NAME))
    assert resident.encode([2, 5, 6], resident.new_cache()) == 3
    with pytest.raises(EngineError, match="small is in use"):
        midfill_model("remove", NAME)
    assert midfill_model("use", "embedded") == 0
    assert midfill_model("remove", NAME) == 0
    assert not folder.exists()


def test_an_interrupted_pull_goes_on(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line is cut in the middle of a shard; the next pull asks for what is missing and no more."""
    monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "DOWNLOAD_CHUNK_SIZE", 4096)
    wanted = [path for path in server.folder.iterdir() if model_store.WANTED.fullmatch(path.name)]
    total = sum(path.stat().st_size for path in wanted)
    server.quota = total * 0.6
    with pytest.raises(EngineError, match="cannot be fetched") as caught:
        midfill_model("pull", NAME)
    assert "goes on from there" in caught.value.hint
    assert model_store.pulled(folder_of_model()) is None
    (partial,) = folder_of_model().glob("*.partial")
    server.quota = math.inf
    server.asked.clear()
    before, kept = server.sent, partial.stat().st_size
    assert kept > 0
    assert midfill_model("pull", NAME) == 0
    assert (partial.name.partition(f".{COMMIT[:4]}")[0], kept) in server.asked
    assert server.sent - before < 0.5 * total
    checkpoint.read(folder_of_model())
    server.asked.clear()
    assert midfill_model("pull", NAME) == 0
    assert not server.asked, "what is there is not fetched again"


@pytest.mark.slow
def test_the_command_finds_the_hub_that_the_environment_names(repository: Path, home: Path) -> None:
    """A whole process, as a user starts it, cut off and started again."""
    with hub_server.serving(repository) as served:
        environment = os.environ | {"HF_ENDPOINT": served.url, "HF_HUB_DISABLE_XET": "1"}
        command = [sys.executable, "-I", "-m", "lsp_server", "model", "pull", "s"]
        served.quota = 600_000
        cut = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert cut.returncode == 1 and "midfill: " in cut.stderr and "Traceback" not in cut.stderr
        served.quota = math.inf
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "next: midfill model use s" in done.stdout and "checking model-0" in done.stderr
    checkpoint.read(folder_of_model())


def test_a_pull_that_was_killed_goes_on(server: Hub) -> None:
    assert midfill_model("pull", NAME) == 0
    folder = folder_of_model()
    (folder / model_store.RECORD).unlink()
    shards = sorted(folder.glob("model-*.safetensors"))
    shards[0].unlink()
    server.asked.clear()
    assert midfill_model("pull", NAME) == 0
    assert server.asked == [(shards[0].name, 0)]


def test_a_wrong_checksum_removes_the_file(server: Hub) -> None:
    name = sorted(path.name for path in server.folder.glob("model-*.safetensors"))[0]
    body = bytearray((server.folder / name).read_bytes())
    body[-1] ^= 1
    server.lies[name] = bytes(body)
    with pytest.raises(EngineError, match=rf"{name} has a wrong checksum and was removed"):
        midfill_model("pull", NAME)
    server.lies.clear()
    assert midfill_model("pull", NAME) == 0


@pytest.mark.parametrize(
    ("status", "error", "said", "hint"),
    [
        (404, "RepoNotFound", "there is no someone/small on the hub", "HF_TOKEN"),
        (403, "GatedRepo", "access to someone/small is restricted", "accept its licence"),
        (404, "RevisionNotFound", "no such revision", "--revision"),
        (500, "", "someone/small cannot be fetched: .*500", "repeat"),
    ],
)
def test_refusals_of_the_hub(server: Hub, status: int, error: str, said: str, hint: str) -> None:
    server.status, server.error = status, error
    with pytest.raises(EngineError, match=said) as caught:
        midfill_model("pull", NAME)
    assert hint in caught.value.hint


def test_a_hub_that_is_not_there(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("huggingface_hub.constants"), "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(EngineError, match="someone/small cannot be fetched"):
        midfill_model("pull", NAME)


def test_another_architecture_is_refused_before_its_weights_are_fetched(server: Hub) -> None:
    config = json.loads((server.folder / "config.json").read_text())
    text = json.dumps(config | {"model_type": "gemma3"}, indent=2).encode()
    server.lies["config.json"] = text + b" " * ((server.folder / "config.json").stat().st_size - len(text))
    with pytest.raises(EngineError, match="unknown architecture 'gemma3'"):
        midfill_model("pull", NAME)
    assert not any(name.endswith(".safetensors") for name, _ in server.asked)


def test_too_little_disk_is_said_before_the_download(server: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(server.folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1000))
    with pytest.raises(EngineError, match=r"are needed and 0\.0 GB are free"):
        midfill_model("pull", NAME)
    assert not server.asked


def test_a_folder_is_taken_over_without_a_copy(repository: Path, home: Path) -> None:
    assert midfill_model("pull", NAME, "--from", str(repository)) == 0
    for path in folder_of_model().glob("model-*.safetensors"):
        assert path.stat().st_ino == (repository / path.name).stat().st_ino
    shard = sorted(folder_of_model().glob("model-*.safetensors"))[0]
    shard.unlink()
    assert midfill_model("pull", NAME, "--from", str(repository)) == 0
    assert shard.exists()
    assert not (folder_of_model() / "modeling_evil.py").exists()
    assert midfill_model("remove", NAME) == 0
    checkpoint.read(repository)


def test_a_folder_on_another_disk_is_copied(repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: Any) -> None:
        raise OSError("cross-device link")

    monkeypatch.setattr("os.link", no_link)
    assert midfill_model("pull", NAME, "--from", str(repository)) == 0
    assert checkpoint.read(folder_of_model()).fingerprint == checkpoint.read(repository).fingerprint


def test_what_is_not_here_cannot_be_used(home: Path) -> None:
    with pytest.raises(EngineError, match="the weights of small are not on this machine") as caught:
        model.require_weights(load_profile(NAME))
    assert "midfill model pull small" in caught.value.hint
    with pytest.raises(EngineError, match="the weights of small are not in") as caught:
        midfill_model("use", NAME)
    assert caught.value.hint == "midfill model pull small"
    with pytest.raises(EngineError, match="no model profile 'nothing'"):
        midfill_model("use", "nothing")
    with pytest.raises(EngineError, match="not midfill's to change"):
        midfill_model("remove", "embedded")
    with pytest.raises(EngineError, match=r"config\.json is missing"):
        midfill_model("quantize", NAME)
    with pytest.raises(BadRequest):
        midfill_model("dance")


SETTINGS = '# mine\ndebounceMs = 10  # quick\n{}\n[filters]\nmodel = "not this one"\n'


@pytest.mark.parametrize(
    "before", ["", SETTINGS.format(""), SETTINGS.format('model = "x" # old'), "[a]\nb = 1", "x = 1"]
)
def test_choosing_changes_one_key_and_nothing_else(before: str, home: Path) -> None:
    path = model_store.config_file()
    path.write_text(before)
    midfill_model("use", "embedded")
    text = path.read_text()
    assert tomllib.loads(text) == tomllib.loads(before) | {"model": "embedded"}
    assert [line for line in before.splitlines() if "old" not in line and line] == [
        line for line in text.splitlines() if line != 'model = "embedded"' and line
    ]


@pytest.mark.parametrize("damage", ["model = ", "\x00", "model = 3\nmodel = 4"])
def test_damaged_settings_are_left_alone(damage: str, home: Path) -> None:
    path = model_store.config_file()
    path.write_text(damage)
    for call in (lambda: midfill_model("use", "embedded"), model_store.chosen):
        with pytest.raises(EngineError, match=r"config\.toml"):
            call()
    assert path.read_text() == damage


def test_the_engine_quantises_at_its_first_start(repository: Path, home: Path) -> None:
    midfill_model("pull", NAME, "--from", str(repository))
    resident = model.load(load_profile(NAME))
    assert resident.place.startswith(devices.choose().device.type)
    assert snapshot.find(folder_of_model() / "snapshot").complete  # type: ignore[union-attr]
    again = loader.existing(folder_of_model(), load_profile(NAME).quantisation, torch.bfloat16)  # type: ignore[arg-type]
    assert again is not None


def test_too_little_memory_is_said_with_numbers(repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    midfill_model("pull", NAME, "--from", str(repository))
    small = devices.Device(device=torch.device("cpu"), reason="a test", free=10**6)
    monkeypatch.setattr(devices, "choose", lambda: small)
    with pytest.raises(EngineError, match=r"the model needs \d\.\d GB .* and 0\.0 GB are free") as caught:
        model.load(load_profile(NAME))
    assert "vLLM" in caught.value.hint
    assert not (folder_of_model() / "snapshot").exists()
