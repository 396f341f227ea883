"""Which source of settings counts, and what becomes of what was toggled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.config_file import ConfigFile
from lsp_server.settings import Settings
from lsp_server.sources import Sources


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(file=ConfigFile(path=tmp_path / "config.toml"))


def configure(sources: Sources, text: str) -> None:
    sources.file.path.write_text(text)
    assert sources.reread()


def test_each_source_is_stronger_than_the_one_before(sources: Sources) -> None:
    seen = [sources.of().max_lines]
    configure(sources, "maxLines = 1")
    seen.append(sources.of().max_lines)
    sources.set_options({"maxLines": 2})
    seen.append(sources.of().max_lines)
    sources.set_client({"midfill": {"maxLines": 3}})
    seen.append(sources.of().max_lines)
    sources.set_of_file("u", {"maxLines": 4})
    seen.append(sources.of("u").max_lines)
    sources.toggle("maxLines", 5)
    assert [*seen, sources.of("u").max_lines, sources.of().max_lines] == [12, 1, 2, 3, 4, 5, 5]


def test_a_file_that_has_not_changed_is_not_read_again(sources: Sources) -> None:
    sources.reread()
    assert not sources.reread()
    configure(sources, "maxLines = 1")
    assert not sources.reread()


def test_an_empty_model_is_the_users_choice_and_no_other(sources: Sources) -> None:
    configure(sources, 'model = "mine"')
    sources.set_client({"model": ""})
    assert sources.of().model == "mine"
    sources.set_client({"model": "other"})
    assert sources.of().model == "other"


@pytest.mark.parametrize(
    ("body", "debounce"),
    [
        ({"pylsp": {}}, 7),
        ({}, 300),
        (None, 300),
        ([], 300),
        ({"midfill": None}, 300),
        ({"midfill": {}}, 300),
        ({"debounceMs": 1}, 1),
    ],
)
def test_what_the_client_sends_is_all_it_has_to_say_unless_it_is_about_others(
    sources: Sources, body: Any, debounce: int
) -> None:
    sources.set_client({"midfill": {"debounceMs": 7}})
    sources.set_client(body)
    assert sources.of().debounce_ms == debounce


def test_the_settings_of_a_file_end_with_it(sources: Sources) -> None:
    sources.set_of_file("u", {"enabled": False})
    assert not sources.of("u").enabled
    assert sources.of("other").enabled
    sources.forget("u")
    assert sources.of("u").enabled


def test_a_toggle_is_dropped_when_the_setting_below_it_changes(sources: Sources) -> None:
    sources.toggle("enabled", False)
    sources.set_client({"maxLines": 3, "enabled": True})
    assert not sources.of().enabled
    sources.set_client({"enabled": False})
    sources.set_client({"enabled": True})
    assert sources.of().enabled


bodies = st.none() | st.dictionaries(
    st.sampled_from(["maxLines", "enabled", "midfill", "model"]), st.none() | st.booleans() | st.integers() | st.text()
)
events = st.lists(
    st.tuples(st.sampled_from(["set_options", "set_client", "toggle"]), bodies)
    | st.tuples(st.just("set_of_file"), bodies)
)


@given(events)
def test_whatever_is_sent_there_are_settings(found: list[tuple[str, Any]]) -> None:
    sources = Sources(file=ConfigFile(path=Path("/nonexistent/config.toml")))
    for name, body in found:
        if name == "toggle":
            sources.toggle("enabled", not sources.of().enabled)
        elif name == "set_of_file":
            sources.set_of_file("u", body)
        else:
            getattr(sources, name)(body)
        for uri in ("", "u"):
            assert 1 <= sources.of(uri).max_lines <= 100
            assert isinstance(sources.problems(uri), tuple)
    sources.forget("u")
    assert sources.of("u") == sources.of()
    assert isinstance(sources.of(), Settings)
