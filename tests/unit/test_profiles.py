"""Profiles: what the shipped one says, and what becomes of bad ones."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from diffusion.api import BadRequest, EngineError
from diffusion.profiles import load_profile, parse_profile
from diffusion.training.train import main as train


def test_the_shipped_profile_is_consistent() -> None:
    profile = load_profile("embedded")
    layout = profile.layout
    assert list(layout.widths) == sorted(layout.widths) and layout.widths[-1] <= layout.gap
    assert {layout.line_width, layout.block_width} <= set(layout.widths)
    assert layout.context < layout.encoder
    ids = [*profile.tokens.values(), *set(profile.languages.values())]
    assert len(set(ids)) == len(ids) and max(ids) < profile.specials


@pytest.mark.parametrize("name", ["nonsense", "x/y", "../profiles/embedded", "", "."])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(EngineError, match="no model profile") as caught:
        load_profile(name)
    assert "embedded" in caught.value.hint


def test_a_user_s_own_profile_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platformdirs, "user_config_path", lambda _: tmp_path)
    text = (Path(__file__).parents[2] / "diffusion/profiles/embedded.toml").read_text()
    (tmp_path / "profiles").mkdir()
    own = text.replace('"package:weights"', '"mine"').replace('title = "midfill embedded', 'title = "my own')
    (tmp_path / "profiles/embedded.toml").write_text(own)
    profile = load_profile("embedded")
    assert profile.title.startswith("my own") and profile.weights == (tmp_path / "profiles/mine").resolve()


@pytest.mark.parametrize("damage", ["[tokens", "name = 1", "", "\x00"])
def test_a_damaged_profile_names_the_file(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(damage)
    with pytest.raises(EngineError, match=r"p\.toml cannot be read"):
        parse_profile(path)


def test_train_reports_wrong_arguments_in_one_line() -> None:
    with pytest.raises(BadRequest, match="unrecognized arguments: --x"):
        train(["--x"])
