"""How a profile names its server and its key; what is wrong with one is a sentence that names the file."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import keyring
import pytest
from conftest import write_profile
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from diffusion.api import EngineError
from diffusion.profiles import backend_of, load_profile
from diffusion.remote.settings import api_key, load_remote


@pytest.mark.parametrize("name", ["vllm", "openai", "ollama", "llamacpp"])
def test_the_shipped_profiles(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"MIDFILL_{name.upper()}_URL", "https://llm.example.com:8443/v1/")
    remote = load_remote(name)
    assert (remote.url, remote.name) == ("https://llm.example.com:8443", name)
    assert not remote.loopback and api_key(remote) == "" and backend_of(name) == remote.backend
    monkeypatch.delenv(f"MIDFILL_{name.upper()}_URL")
    if name == "openai":
        with pytest.raises(EngineError, match="needs the address"):
            load_remote(name)
    else:
        assert load_remote(name).loopback


def test_a_model_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIDFILL_OLLAMA_MODEL", "coder:1b")
    assert load_remote("ollama").model == "coder:1b"


def test_a_profile_that_names_a_server_has_no_weights(profiles: Path) -> None:
    write_profile(profiles, "http://x")
    with pytest.raises(EngineError, match="names a server and no weights"):
        load_profile("team")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "has no table"),
        ("[remote]", "needs the address of a server"),
        ("[remote]\nurl = 7", "`url` and `url_env` must be texts"),
        ("[remote]\nurl = 'ftp://x'", "'ftp://x' is no address of a server"),
        ("[remote]\nurl = 'x:80'", "'x:80' is no address of a server"),
        ("[remote]\nurl = 'http://x:port'", "is no address of a server"),
        ("[remote]\nurl = 'http://[x'", "is no address of a server"),
        ("[remote]\nurl = 'http://me:secret@x'", "is no address of a server"),
        ("[remote]\nurl = 'http://x'\nspeed = 1", "`speed` means nothing"),
        ("[remote]\nurl = 'http://x'\ntimeout = 'a'", "`timeout` must be a number"),
        ("[remote]\nurl = 'http://x'\ntimeout = true", "`timeout` must be a number"),
        ("[remote]\nurl = 'http://x'\ntimeout = 0", "`timeout` must lie between 0.1 and 600"),
        ("[remote]\nurl = 'http://x'\ntimeout = nan", "`timeout` must lie between"),
        ("[remote]\nurl = 'http://x'\nretries = 1.5", "`retries` must be a whole number"),
        ("[remote]\nurl = 'http://x'\nextra = 1", "`extra` must be a table"),
        ("[remote]\nurl = 'http://x'\nform = 'x'", "`form` must be one of completions, infill"),
        ("[remote]\nurl = 'http://x'\nca_file = 'no.pem'", "which is no file"),
        ("[remote]\nurl = 'http://x'\nca_file = 1", "`ca_file` must be a path"),
        ("remote = 1", "has no table"),
        ("like = 1\n[remote]\nurl = 'http://x'", "`like` must be a text"),
    ],
)
def test_what_is_wrong_in_a_profile(table: str, message: str, profiles: Path) -> None:
    (profiles / "team.toml").write_text(f'name = "team"\nbackend = "openai"\n{table}')
    with pytest.raises(EngineError, match=re.escape(message)) as caught:
        load_remote("team")
    assert caught.value.hint and "secret" not in caught.value.hint


def test_an_unknown_backend(profiles: Path) -> None:
    write_profile(profiles, "http://x", backend="telepathy")
    with pytest.raises(EngineError, match="'telepathy'") as caught:
        backend_of("team")
    assert "vllm" in caught.value.hint


def test_a_key_from_the_environment(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(profiles, "http://x", api_key_env="TEAM_KEY")
    with pytest.raises(EngineError, match="TEAM_KEY with the key for http://x is not set"):
        api_key(load_remote("team"))
    monkeypatch.setenv("TEAM_KEY", " abc\n")
    assert api_key(load_remote("team")) == "abc"
    monkeypatch.setenv("TEAM_KEY", "a b")
    with pytest.raises(EngineError, match="is no key"):
        api_key(load_remote("team"))


class Memory(KeyringBackend):
    priority = 1  # type: ignore[assignment]

    def __init__(self, key: str | None) -> None:
        super().__init__()
        self.key = key

    def get_password(self, service: str, username: str) -> str | None:
        if self.key == "locked":
            raise KeyringLocked
        return self.key if (service, username) == ("team", "midfill") else None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise AssertionError("a key is only read")


def test_a_key_from_the_keyring(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(profiles, "http://x", keyring="team")
    before = keyring.get_keyring()
    try:
        keyring.set_keyring(Memory("abc"))
        assert api_key(load_remote("team")) == "abc"
        keyring.set_keyring(Memory(None))
        with pytest.raises(EngineError, match="holds no key for 'team'") as caught:
            api_key(load_remote("team"))
        assert caught.value.hint == "store it: keyring set team midfill"
        keyring.set_keyring(Memory("locked"))
        with pytest.raises(EngineError, match="cannot be read"):
            api_key(load_remote("team"))
    finally:
        keyring.set_keyring(before)


def test_no_keyring_package(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_profile(profiles, "http://x", keyring="team")
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(EngineError, match="package keyring is missing") as caught:
        api_key(load_remote("team"))
    assert "pipx inject midfill keyring" in caught.value.hint
