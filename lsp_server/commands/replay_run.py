"""Types stretches of files through a real server, one window per way of completing, and counts what happens.

Knows the server's requests and how people type; nothing of how a completion is made.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diffusion.api import EngineError
from lsp_server.commands import replay_typing as typing_
from lsp_server.commands.replay_typing import Acceptance, Stretch
from lsp_server.commands.server_process import ServerProcess

LOOK = 50
"""Requests after which the journal is read: it remembers the last 200."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way of completing: `measured` is a choice of `midfill lsp --measure`, "" for the server as it is."""

    name: str
    measured: str
    min_confidence: float


@dataclass(kw_only=True)
class Counts:
    """What has happened so far in one way. `by_hand`: keys that typing the same without an item takes; `late`: requests
    without an answer before the next key; `shown` items were accepted `whole` or in `parts`, or were `wrong`."""

    way: Way
    files: int = 0
    characters: int = 0
    by_hand: int = 0
    keys: int = 0
    accepted: int = 0
    requests: int = 0
    late: int = 0
    shown: int = 0
    whole: int = 0
    parts: int = 0
    wrong: int = 0
    answered: int = 0
    without_model: int = 0
    forwards: int = 0
    encodes: int = 0
    latencies_ms: list[float] = field(default_factory=list)


@dataclass(kw_only=True)
class Window:
    """One server and what happens in it."""

    server: ServerProcess
    counts: Counts
    _seen: dict[str, Any] = field(default_factory=dict)

    async def type(self, place: Stretch, pauses: Iterator[float] | None) -> None:
        """Type a stretch. `pauses`: seconds between keys; None: every answer is waited for. Raises EngineError."""
        uri = f"file:///replay/{place.name}"
        document = {"uri": uri, "languageId": place.language, "version": 0, "text": place.text(0)}
        self.server.notify("textDocument/didOpen", {"textDocument": document})
        counts, by_hand, done, version = self.counts, typing_.keys_of(place.target), 0, 0
        accepted: Acceptance | None = None
        while done < len(place.target):
            cursor = place.position(done)
            if accepted is None:
                reached = done + typing_.keys(place.target, done)
                change = {"range": {"start": cursor, "end": cursor}, "text": place.target[done:reached]}
                counts.keys += 1
            else:
                reached = accepted.done
                text = place.text(done)
                start, end = (typing_.position_at(text[:offset]) for offset in accepted.span)
                change = {"range": {"start": start, "end": end}, "text": accepted.text}
                counts.keys += accepted.keys
                counts.accepted += reached - done
            counts.by_hand += bisect_left(by_hand, reached) - bisect_left(by_hand, done)
            counts.characters += reached - done
            done, version = reached, version + 1
            named = {"uri": uri, "version": version}
            self.server.notify("textDocument/didChange", {"textDocument": named, "contentChanges": [change]})
            pause = next(pauses) if pauses else None
            item = await self._asked({"textDocument": {"uri": uri}, "position": place.position(done)}, pause)
            accepted = typing_.acceptance(place, done, item) if item else None
            if item:
                counts.shown += 1
                counts.whole += accepted is not None and accepted.taken == "whole"
                counts.parts += accepted is not None and accepted.taken != "whole"
                counts.wrong += accepted is None
            if counts.requests % LOOK == 0:
                await self._look()
        await self._look()
        self.server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        counts.files += 1

    async def _asked(self, where: Mapping[str, Any], pause: float | None) -> dict[str, Any] | None:
        """The item that is shown when the next key is due."""
        begun = time.monotonic()
        number, answer = self.server.begin("textDocument/inlineCompletion", {**where, "context": {"triggerKind": 2}})
        self.counts.requests += 1
        await asyncio.wait({answer}, timeout=pause)
        if not answer.done():
            self.counts.late += 1
            self.server.cancel(number)
            return None
        self.counts.latencies_ms.append((time.monotonic() - begun) * 1000)
        items: Sequence[dict[str, Any]] = answer.result()["items"]
        if pause is not None:
            await asyncio.sleep(begun + pause - time.monotonic())
        return items[0] if items else None

    async def _look(self) -> None:
        """Count what the journal says of the requests since the last look."""
        news: list[dict[str, Any]] = []
        for decision in (await self.server.request("midfill/why", {}))["decisions"]:
            if decision == self._seen:
                break
            news.append(decision)
        self._seen = news[0] if news else self._seen
        for decision in news:
            if decision["outcome"] not in ("prefetched", "dropped"):
                self.counts.answered += 1
                self.counts.without_model += decision["source"] != "engine"
            if not decision["shared"]:  # else it is counted where it began
                self.counts.forwards += decision["forwards"]
                self.counts.encodes += decision["encodes"]


async def replay(
    ways: Sequence[Way],
    stretches: Sequence[Stretch],
    counts: list[Counts],
    *,
    options: Mapping[str, Any],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    seed: int,
    speed: float | None,
    on_progress: Callable[[str], None],
) -> None:
    """Type all stretches in all ways, in turn so that what is there after an interruption can be compared.

    Fills `counts`, one per way. `speed`: times as fast as people type; None: every answer is waited for. Raises
    EngineError.
    """
    windows: list[Window] = []
    try:
        for way in ways:
            more = ("--measure", way.measured) if way.measured else ()
            server = await ServerProcess.start(*arguments, *more, environment=environment)
            counts.append(Counts(way=way))
            windows.append(Window(server=server, counts=counts[-1]))
            await server.initialize({**options, "minConfidence": way.min_confidence}, ("utf-32",))
        for number, place in enumerate(stretches):
            for window in windows:
                on_progress(f"{number + 1}/{len(stretches)}  {window.counts.way.name:<20} {place.name}")
                pauses = typing_.pauses(seed + number, speed) if speed else None
                await window.type(place, pauses)
    finally:
        for window in windows:
            with contextlib.suppress(EngineError):
                await window.server.end()
