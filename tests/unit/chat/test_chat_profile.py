"""The profile of the 26B checkpoint: consistent, and what is wrong in a copy of it is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from diffusion import profiles
from diffusion.api import EngineError
from diffusion.profiles import load_profile, parse_profile
from diffusion.quantisation import Quantisation

SHIPPED = Path(profiles.__file__).parent / "profiles/diffusiongemma-26b-a4b-it.toml"
COST_ONLY = Path(__file__).parents[2] / "data/embedded-as-chat.toml"


@pytest.mark.parametrize("path", [SHIPPED, COST_ONLY])
def test_sizes_and_ids_fit_each_other(path: Path) -> None:
    profile = parse_profile(path)
    chat, layout = profile.chat, profile.layout
    assert chat is not None
    assert list(layout.widths) == sorted(layout.widths) and {layout.line_width, layout.block_width} <= set(
        layout.widths
    )
    assert max(chat.lengths) + layout.pins <= layout.widths[-1]
    assert layout.context + chat.suffix < layout.encoder / 2
    assert all(token < chat.first_text for token in profile.tokens.values()) and profile.specials == chat.first_text
    assert chat.shifts[0] == 0 and len(chat.shifts) >= profile.sampler.lengths
    assert chat.rule.strip() and "\n" not in chat.rule.strip()


def test_the_short_name_and_the_place_of_the_weights() -> None:
    profile = load_profile("diffusiongemma")
    assert profile.name == "diffusiongemma-26b-a4b-it" and profile.repository
    assert profile.weights == profiles.models_folder() / profile.name
    assert profile.quantisation == Quantisation(linears="int8", experts="int4", group=64)


@pytest.mark.parametrize("lost", ["first_text", "length_bias", "rule", "turn_end", "widths"])
def test_what_a_copy_lacks_or_misspells_is_named(lost: str, tmp_path: Path) -> None:
    text = SHIPPED.read_text(encoding="utf-8")
    damaged = text.replace(f"\n{lost} =", f"\n{lost}_ =", 1)
    assert damaged != text
    (tmp_path / "mine.toml").write_text(damaged, encoding="utf-8")
    with pytest.raises(EngineError, match=lost) as caught:
        parse_profile(tmp_path / "mine.toml")
    assert "mine.toml" in caught.value.message
