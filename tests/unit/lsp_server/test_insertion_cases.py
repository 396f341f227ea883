"""The reported faults of tests/data/insertion.toml: a document, a fill, and the document once it has been accepted."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from diffusion.api import Candidate, FillRequest
from lsp_server import filters

CURSOR = "│"
CASES = tomllib.loads((Path(__file__).parents[2] / "data/insertion.toml").read_text())["case"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_accepting_the_item_gives_the_expected_document(case: dict[str, Any]) -> None:
    prefix, suffix = case["before"].split(CURSOR)
    request = FillRequest(id="", language=case["language"], prefix=prefix, suffix=suffix)
    made = filters.insertion(Candidate(text=case["fill"]), request)
    if case.get("none"):
        assert isinstance(made, filters.Rejected)
        return
    assert not isinstance(made, filters.Rejected), made
    assert made.applied(prefix, suffix) == case["after"].replace(CURSOR, "")
    if CURSOR in case["after"]:
        assert prefix[: len(prefix) - made.before] + made.text == case["after"].split(CURSOR)[0]
