"""The scripted engine: entries in order and by prefix, and files that are wrong."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from diffusion.api import Draft, EngineError, Event, Failure, FillRequest, Result
from lsp_server.scripted import ScriptedEngine, load


def engine(folder: Path, *entries: Any) -> ScriptedEngine:
    path = folder / "script.json"
    path.write_text(json.dumps(entries))
    return load(path)


async def events(engine: ScriptedEngine, prefix: str = "", n: int = 1) -> list[Event]:
    return [event async for event in engine.fill(FillRequest(id="1", prefix=prefix, suffix="", n=n))]


def texts(found: list[Event]) -> list[str]:
    (result,) = found
    assert isinstance(result, Result)
    return [candidate.text for candidate in result.candidates]


async def test_entries_are_used_up_in_order_and_then_nothing_is_left(tmp_path: Path) -> None:
    script = engine(tmp_path, {"fill": "a"}, {"none": True}, {"fill": ["b", "c"]})
    assert [texts(await events(script, n=2)) for _ in range(4)] == [["a"], [], ["b", "c"], []]


async def test_an_entry_with_after_answers_as_often_as_its_prefix_ends_so(tmp_path: Path) -> None:
    script = engine(tmp_path, {"fill": "in order"}, {"after": "x = ", "fill": "1"})
    assert [texts(await events(script, prefix)) for prefix in ("x = ", "y", "x = ")] == [["1"], ["in order"], ["1"]]


async def test_drafts_come_before_the_result_and_an_error_ends_the_fill(tmp_path: Path) -> None:
    script = engine(
        tmp_path,
        {"fill": "ab", "drafts": ["a", "ab"], "confidence": 0.5, "replace_before": 2, "delay_ms": 1},
        {"error": {"code": "loading", "message": "wait"}},
        {"error": "broken"},
    )
    *drafts, result = await events(script)
    assert drafts == [Draft(step=1, text="a"), Draft(step=2, text="ab")]
    assert isinstance(result, Result)
    assert (result.candidates[0].confidence, result.candidates[0].replace_before) == (0.5, 2)
    assert await events(script) == [Failure(code="loading", message="wait")]
    assert await events(script) == [Failure(code="model", message="broken")]


async def test_an_answer_waits_for_its_file_and_takes_it_away(tmp_path: Path) -> None:
    file = tmp_path / "go"
    entry = {"after": "x = ", "fill": "1", "drafts": ["░"], "wait_for": str(file)}
    script = engine(tmp_path, entry)
    for _ in range(2):
        under_way = script.fill(FillRequest(id="1", prefix="x = ", suffix=""))
        assert await anext(under_way) == Draft(step=1, text="░")
        answer = asyncio.ensure_future(anext(under_way))
        assert not (await asyncio.wait([answer], timeout=0))[0]
        file.touch()
        assert texts([await answer]) == ["1"]
        assert not file.exists()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "no JSON"),
        ('{"fill": "a"}', "JSON list"),
        ("[1]", "entry 1"),
        ('[{"fil": "a"}]', "unknown key 'fil'"),
        ('[{"fill": 1}]', "fill has a value of the wrong kind"),
        ('[{"fill": "a"}, {"delay_ms": -1}]', "entry 2"),
        ('[{"error": {"code": "no such", "message": ""}}]', "error has a value"),
    ],
)
def test_a_file_that_is_wrong_is_explained(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(EngineError, match=says):
        load(path)


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot read the script"):
        load(tmp_path / "none.json")
