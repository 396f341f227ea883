"""Settings: what clients send, what is taken over, what is named instead; and the table that documents them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.commands import settings as command
from lsp_server.settings import NAMES, ROWS, Settings, read

ROOT = Path(__file__).parents[3]


def test_names_are_camel_case_and_types_are_kept() -> None:
    body = {"debounceMs": 0, "minConfidence": 1, "disabledLanguages": ["c"], "enabled": False, "other": 1}
    settings, problems = read(body, Settings())
    assert problems == ()
    assert settings == Settings(debounce_ms=0, min_confidence=1.0, disabled_languages=("c",), enabled=False)
    assert type(settings.min_confidence) is float


def test_a_section_may_be_wrapped_and_null_means_unset() -> None:
    base = Settings(max_lines=3)
    assert read({"midfill": {"debounceMs": 5, "maxLines": None}}, base) == (Settings(max_lines=3, debounce_ms=5), ())
    assert read(None, base) == (base, ())


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"debounceMs": "fast"}, "debounceMs"),
        ({"debounceMs": True}, "debounceMs"),
        ({"debounceMs": -1}, "debounceMs"),
        ({"maxLines": 2.5}, "maxLines"),
        ({"minConfidence": float("nan")}, "minConfidence"),
        ({"enabled": "no"}, "enabled"),
        ({"disabledLanguages": "python"}, "disabledLanguages"),
        ({"disabledLanguages": [1]}, "disabledLanguages"),
        ({"contextSources": ["imports", "all"]}, "contextSources"),
        ({"model": "../weights"}, "model"),
        ({"model": 7}, "model"),
        (["debounceMs"], "an object, not ['debounceMs']"),
        ("off" * 1000, "an object, not 'off"),
        ({"maxLines": 10**400}, "maxLines"),
    ],
)
def test_a_bad_value_is_named_with_its_source_and_left_out(body: Any, named: str) -> None:
    settings, (problem,) = read(body, Settings(max_lines=7), source="config.toml")
    assert settings == Settings(max_lines=7)
    assert named in problem.message
    assert "in config.toml must be" in problem.message
    assert len(problem.message) < 250


def test_what_is_used_instead_is_told() -> None:
    _, (problem,) = read({"debounceMs": "fast"}, Settings(debounce_ms=20))
    assert problem.message == "setting debounceMs must be a whole number from 0 to 5000, not 'fast'; using 20"


def test_a_name_that_is_none_is_a_problem_only_in_a_file_of_ours() -> None:
    assert read({"debounce": 1}, Settings()) == (Settings(), ())
    _, (near,) = read({"debounceMS": 1}, Settings(), source="config.toml", strict=True)
    assert near.message == "there is no setting 'debounceMS' in config.toml: is debounceMs meant?"
    _, (far,) = read({"colour": 1}, Settings(), strict=True)
    assert "`midfill settings`" in far.message


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_every_setting_is_documented_and_its_default_is_one_that_can_be_set(row: Any) -> None:
    value = list(row.default) if isinstance(row.default, tuple) else row.default
    assert read({row.name: value}, Settings()) == (Settings(), ())
    assert row.doc.endswith(".")
    assert ". " not in row.doc
    if row.high:
        for outside in (row.low - 1, row.high + 1):
            assert read({row.name: outside}, Settings())[1]
        for edge in (row.low, row.high):
            assert getattr(read({row.name: edge}, Settings())[0], row.field) == edge


def test_the_readme_has_the_table_that_the_command_prints() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.partition(command.START + "\n")[2].partition(command.END)[0]
    assert table == command.markdown(), "run `midfill settings --markdown` and put it between the marks in README.md"


def test_the_schemas_say_what_the_table_says(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--json-schema"]) == 0
    properties = json.loads(capsys.readouterr().out)["properties"]
    assert tuple(properties) == NAMES
    assert properties["deadlineMs"] == {
        "type": "integer",
        "default": 250,
        "description": next(row.doc for row in ROWS if row.name == "deadlineMs"),
        "minimum": 50,
        "maximum": 60_000,
    }
    assert properties["contextSources"]["items"]["enum"][0] == "auto"
    assert command.main(["--vscode"]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert tuple(manifest) == tuple(f"midfill.{name}" for name in NAMES)
    assert manifest["midfill.model"]["scope"] == "machine"
    assert manifest["midfill.enabled"]["scope"] == "language-overridable"


def test_the_command_names_what_is_wrong_with_config_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert command.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["maxLines"] == 12
    file = tmp_path / "midfill/config.toml"
    file.parent.mkdir()
    file.write_text('maxLines = 3\nenabled = "no"\n')
    assert command.main(["--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["settings"]["maxLines"] == 3
    assert told["settings"]["enabled"] is True
    assert str(file) in told["problems"][0]
    assert command.main([]) == 1
    shown = capsys.readouterr()
    assert "enabled" in shown.err
    assert "maxLines" in shown.out


anything = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*NAMES, "midfill", "x"]) | st.text(max_size=3), inner)
    ),
)


@given(anything, st.booleans())
def test_nothing_a_client_sends_breaks_the_settings(body: Any, strict: bool) -> None:
    settings, problems = read(body, Settings(), strict=strict)
    for row in ROWS:
        assert type(getattr(settings, row.field)) is type(row.default)
    assert 1 <= settings.max_lines <= 100
    assert all(problem.message for problem in problems)
