"""The model in the user's config.toml is the one that clients ask for; a file that is wrong is never passed over."""

from __future__ import annotations

import asyncio
from pathlib import Path

import platformdirs
import pytest

from diffusion.api import EngineError, Event, FillRequest
from lsp_server.chosen_model import chosen_model
from lsp_server.engine_client import EngineClient
from lsp_server.engines import AUTO, make_engine


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(platformdirs, "user_config_path", lambda _: tmp_path)
    return tmp_path / "config.toml"


def test_the_embedded_model_where_nothing_was_asked_for(config: Path) -> None:
    assert chosen_model() == "embedded"
    config.write_text("debounceMs = 10\n")
    assert chosen_model() == "embedded"


def test_the_chosen_one_for_editors_and_commands_alike(config: Path) -> None:
    config.write_text('model = "diffusiongemma-26b-a4b-it"\n')
    engine = make_engine(AUTO)
    assert isinstance(engine, EngineClient)
    assert engine.profile == EngineClient().profile == "diffusiongemma-26b-a4b-it"
    assert "diffusiongemma-26b-a4b-it" in engine.paths.socket.name
    assert EngineClient("embedded").profile == "embedded", "who asks by name gets that one"


@pytest.mark.parametrize("text", ["model = ", "\x00", "model = 3", 'model = ""', "model = ['a']"])
def test_a_choice_that_cannot_be_read_is_an_error_and_no_other_model(text: str, config: Path) -> None:
    config.write_text(text)
    with pytest.raises(EngineError, match=r"config\.toml"):
        chosen_model()

    async def answers() -> list[Event]:
        return [event async for event in EngineClient().fill(FillRequest(id="1", prefix="", suffix=""))]

    (answer,) = asyncio.run(answers())
    assert "config.toml" in getattr(answer, "message", ""), answer
