"""Settings in a running editor (12): from every source, for single files, toggled, wrong; at once, and without a
second set of handlers."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pytest

from .client import Client, RpcError, server

PULLED = {"workspace": {"configuration": True, "didChangeConfiguration": {"dynamicRegistration": True}}}
ANSWER = {"after": "x = ", "fill": "1"}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's config.toml; its folder exists."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config/midfill").mkdir(parents=True)
    return tmp_path / "config/midfill/config.toml"


def write(config: Path, text: str | None) -> None:
    """None: away with it."""
    config.unlink() if text is None else config.write_text(text)


async def offered(client: Client, uri: str) -> bool:
    return await client.inline(uri, 0, 4) != []


async def logged(client: Client, text: str) -> str:
    """The client's log, once it has a line with `text`."""
    message: str = (await client.notification("window/logMessage", lambda log: text in log["message"]))["message"]
    return message


def has_logged(client: Client, count: int, _: Any) -> bool:
    return len(client.all("window/logMessage")) == count


async def why(client: Client) -> str:
    sentence: str = (await client.request("midfill/why"))["sentence"]
    return sentence


async def toggle(client: Client, *arguments: Any) -> bool:
    command = {"command": "midfill.toggle", "arguments": list(arguments)}
    enabled: bool = (await client.request("workspace/executeCommand", command))["enabled"]
    return enabled


async def test_config_toml_is_weaker_than_the_editor(config: Path) -> None:
    write(config, 'enabled = false\nmaxLines = 3\ndebounceMs = 7\ndisabledLanguages = ["c"]\n')
    async with server(ANSWER) as client:
        client.configuration = {"debounceMs": 1}
        await client.initialize(
            capabilities=PULLED, initializationOptions={"enabled": True, "debounceMs": 0, "maxLines": None}
        )
        first = await logged(client, "settings: ")
        assert "max_lines = 3" in first
        assert "enabled" not in first
        assert "debounce_ms = 0" in first
        assert "debounce_ms = 1" in await logged(client, "debounce_ms = 1")
        assert await offered(client, client.open("x = "))


async def test_12_config_toml_is_read_again_when_it_changes(config: Path) -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        assert await offered(client, uri)
        write(config, "enabled = false\n")
        assert not await offered(client, uri)
        assert "switched off" in await why(client)
        write(config, 'disabledLanguages = ["python"]\n')
        assert not await offered(client, uri)
        assert "while typing in python" in await why(client)
        write(config, None)
        assert await offered(client, uri)
        assert client.all("window/showMessage") == []


async def test_12_a_bad_value_names_itself_and_its_source_once_and_the_weaker_one_holds(config: Path) -> None:
    write(config, 'maxLines = 4\ndeadline = 100\nsuffixChars = "all"\n')
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"maxLines": "many", "debounceMs": 0})
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"maxLines": "many"}}})
        uri = client.open("x = ")
        assert await offered(client, uri)
        shown = [message["message"] for message in client.all("window/showMessage")]
        assert len(shown) == 3
        assert f"setting suffixChars in {config} must be a whole number" in shown[0]
        assert "not 'all'; using 4000" in shown[0]
        assert f"no setting 'deadline' in {config}: is deadlineMs meant?" in shown[1]
        assert "maxLines in the initialization options must be a whole number" in shown[2]
        assert "using 4" in shown[2]
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"maxLines": 1000}}})
        await client.notification("window/showMessage", lambda message: "1000; using 4" in message["message"])


async def test_12_a_config_toml_that_cannot_be_read_changes_nothing(config: Path) -> None:
    write(config, 'disabledLanguages = ["python"]\n')
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        for text in ("disabledLanguages = [", "enabled = nonsense", "[" * 5000):
            write(config, text)
            assert not await offered(client, uri)
            assert "while typing in python" in await why(client)
        shown = [message["message"] for message in client.all("window/showMessage")]
        assert shown and all(f"{config} cannot be read" in message for message in shown)
        write(config, "")
        assert await offered(client, uri)


async def test_12_no_change_makes_a_second_set_of_handlers(config: Path) -> None:
    async with server(ANSWER) as client:
        client.configuration = {"debounceMs": 0}
        await client.initialize(capabilities=PULLED)
        await logged(client, "debounce_ms = 0")
        uri = client.open("x = ")
        assert await offered(client, uri)
        for number in range(10):
            client.configuration = {"debounceMs": 0, "enabled": number % 2 == 1}
            client.notify("workspace/didChangeConfiguration", {"settings": None})
            enough = functools.partial(has_logged, client, number + 2)
            await client.notification("window/logMessage", enough)
            assert await offered(client, uri) is (number % 2 == 1)
        registered = [r for r in client.requests if r["method"] == "client/registerCapability"]
        assert len(registered) == 1
        assert len(client.all("window/logMessage")) == 11


async def test_what_the_client_no_longer_sets_is_unset() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"enabled": False}}})
        assert not await offered(client, uri)
        client.notify("workspace/didChangeConfiguration", {"settings": {"pylsp": {"plugins": {}}}})
        assert not await offered(client, uri)
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {}}})
        assert await offered(client, uri)


async def test_a_file_has_settings_of_its_own_where_the_client_has_such() -> None:
    ours, theirs = "file:///ours/a.py", "file:///theirs/b.py"
    async with server(ANSWER) as client:
        client.configuration = {"debounceMs": 0}
        client.configuration_of[theirs] = {"debounceMs": 0, "enabled": False}
        await client.initialize(capabilities=PULLED)
        client.open("x = ", ours)
        client.open("x = ", theirs)
        await logged(client, "settings of b.py: enabled = False")
        assert await offered(client, ours)
        assert not await offered(client, theirs)
        assert "switched off" in await why(client)
        client.configuration_of[theirs] = {"debounceMs": 0, "maxLines": "many"}
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        shown = await client.notification("window/showMessage")
        assert "maxLines in the editor's configuration" in shown["message"]
        assert await offered(client, theirs)
        scopes = [item.get("scopeUri") for r in client.requests for item in r["params"].get("items", ())]
        assert scopes.count(None) == 2
        assert {ours, theirs} < set(scopes)


async def test_a_client_that_cannot_be_asked_is_not_asked() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        assert await offered(client, client.open("x = "))
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        assert await client.shutdown() == 0
        assert client.requests == []


async def test_a_toggle_holds_until_the_setting_itself_is_changed() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        assert await toggle(client) is False
        assert not await offered(client, uri)
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"maxLines": 3, "debounceMs": 0}}})
        assert not await offered(client, uri)
        assert await toggle(client) is True
        assert await offered(client, uri)
        assert await toggle(client) is False
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"enabled": False}}})
        client.notify("workspace/didChangeConfiguration", {"settings": {"midfill": {"enabled": True}}})
        assert await offered(client, uri)


async def test_one_language_is_toggled_while_typing() -> None:
    async with server(ANSWER) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        prose = client.open("x = ", "file:///project/a.md", "markdown")
        assert await toggle(client, "Python") is False
        assert not await offered(client, uri)
        assert "while typing in python" in await why(client)
        assert await client.inline(uri, 0, 4, explicit=True)
        assert await toggle(client, "markdown") is True
        assert await offered(client, prose)
        assert await toggle(client, "python") is True
        assert await offered(client, uri)
        with pytest.raises(RpcError, match="id of a language"):
            await toggle(client, 5)


async def test_another_model_is_another_engine(config: Path) -> None:
    """The script starts anew with the engine."""
    async with server({"fill": "1"}, {"fill": "2"}) as client:
        await client.initialize(initializationOptions={"debounceMs": 0})
        uri = client.open("x = ")
        assert [item["insertText"] for item in await client.inline(uri, 0, 4)] == ["1"]
        write(config, 'model = "another"\n')
        await client.request("midfill/status")
        assert [item["insertText"] for item in await client.inline(uri, 0, 4)] == ["1"]
        write(config, 'model = "another"\nmaxLines = 5\n')
        assert [item["insertText"] for item in await client.inline(uri, 0, 4)] == ["2"]
