"""What the tests of the commands share: a look at the requests that reach the scripted engine."""

from __future__ import annotations

from typing import Any

import pytest

from diffusion.api import FillRequest
from lsp_server import scripted


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[FillRequest]:
    """The requests that reach the scripted engine."""
    seen: list[FillRequest] = []
    original = scripted.ScriptedEngine.fill

    def fill(self: scripted.ScriptedEngine, request: FillRequest) -> Any:
        seen.append(request)
        return original(self, request)

    monkeypatch.setattr(scripted.ScriptedEngine, "fill", fill)
    return seen
