"""Requests with a cursor mark, and what an engine answers to them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from diffusion.api import EditRequest, EngineError, Event, FillRequest, Result
from diffusion.remote.engine import RemoteEngine


def fill(text: str, **more: Any) -> FillRequest:
    """A fill at the cursor mark "│"."""
    prefix, _, suffix = text.partition("│")
    return FillRequest(id="1", language="python", path="a/b.py", prefix=prefix, suffix=suffix, **more)


def edit(text: str, instruction: str = "rename it", **more: Any) -> EditRequest:
    """An edit of what stands between two marks "│"."""
    before, selected, after = text.split("│")
    return EditRequest(
        id="1", language="python", before=before, selected=selected, after=after, instruction=instruction, **more
    )


def ask(
    engine: RemoteEngine, request: FillRequest | EditRequest, cancelled: Callable[[], bool] = lambda: False
) -> list[Event]:
    return list(start(engine, request, cancelled))


def start(
    engine: RemoteEngine, request: FillRequest | EditRequest, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[Event]:
    return engine.fill(request, arrived=time.monotonic(), cancelled=cancelled)


def result(engine: RemoteEngine, request: FillRequest | EditRequest) -> Result:
    end = ask(engine, request)[-1]
    assert isinstance(end, Result)
    return end


def texts(engine: RemoteEngine, request: FillRequest | EditRequest) -> list[str]:
    return [candidate.text for candidate in result(engine, request).candidates]


def failure(engine: RemoteEngine, request: FillRequest | EditRequest | None = None) -> EngineError:
    with pytest.raises(EngineError) as caught:
        ask(engine, request or fill("a│"))
    error = caught.value
    assert error.message and error.hint and "\n" not in error.message + error.hint
    return error


class Flag:
    """Whether a request is cancelled, and a way to do it."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self.set = self._event.set

    def __call__(self) -> bool:
        return self._event.is_set()
