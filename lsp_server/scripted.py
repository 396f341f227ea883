"""An engine that answers from a JSON list instead of a model: the stand-in of all tests, ours and the editors'.

Knows the engine interface and the file format. Entries without "after" are used up in order; an entry with
"after": TEXT answers whenever the prefix (of an edit: what stands before the selection) ends with TEXT, as often as
asked. Where none is left, nothing is offered.

    [{"fill": "1)", "confidence": 0.9}, {"after": "x = ", "fill": ["1", "2"]}, {"error": "out of memory"}]

Keys of an entry: `fill` (text, or a list of texts: several candidates), `confidence`, `replace_before`, `delay_ms`
(before the answer, shared out between the drafts), `drafts` (texts), `wait_for` (a file: the answer waits, behind the
drafts, until it is there, and takes it away), `error` (text or {code, message, hint}), `none` (true: an answer without
a candidate). Two kinds of entries are no answers: {"log": FILE}, every request is
appended to FILE as a line of JSON; {"statuses": [{"state": "loading", "progress": {"done": 1, "total": 4}} ...]}, what
the engine says of itself before it is ready.
"""

from __future__ import annotations

import asyncio
import json
import typing
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffusion.api import (
    Candidate,
    Cost,
    Draft,
    EditRequest,
    EngineError,
    ErrorCode,
    Event,
    Failure,
    FillRequest,
    Result,
    Status,
    parse_status,
    to_json,
)

MODEL = "scripted"
POLL_S = 0.02


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One answer of the script. `after` None: used up once, in order."""

    after: str | None = None
    fills: tuple[str, ...] = ()
    confidence: float | None = None
    replace_before: int = 0
    delay_ms: float = 0.0
    drafts: tuple[str, ...] = ()
    wait_for: Path | None = None
    error: Failure | None = None


class ScriptedEngine:
    """Implements `diffusion.api.Engine`. `asked` keeps every request, `running` counts the fills under way."""

    def __init__(self, entries: tuple[Entry, ...], log: Path | None = None, statuses: tuple[Status, ...] = ()) -> None:
        self._log, self._statuses = log, statuses
        self._reusable = tuple(entry for entry in entries if entry.after is not None)
        self._in_order = [entry for entry in entries if entry.after is None]
        self.asked: list[FillRequest | EditRequest] = []
        self.running = 0

    def fill(self, request: FillRequest) -> AsyncIterator[Event]:
        return self._answer(request, request.prefix, request.n)

    def edit(self, request: EditRequest) -> AsyncIterator[Event]:
        return self._answer(request, request.before, 1)

    async def _answer(self, request: FillRequest | EditRequest, prefix: str, n: int) -> AsyncIterator[Event]:
        self.asked.append(request)
        if self._log is not None:
            with self._log.open("a", encoding="utf-8") as log:
                log.write(json.dumps(to_json(request)) + "\n")
        entry = self._entry_for(prefix)
        self.running += 1
        try:
            pause = entry.delay_ms / 1000 / (len(entry.drafts) + 1)
            for step, text in enumerate(entry.drafts, start=1):
                await asyncio.sleep(pause)
                yield Draft(step=step, text=text)
            await asyncio.sleep(pause)
            while entry.wait_for is not None and not _taken(entry.wait_for):  # noqa: ASYNC110  no event
                await asyncio.sleep(POLL_S)
            yield entry.error or Result(
                candidates=tuple(
                    Candidate(text=text, replace_before=entry.replace_before, confidence=entry.confidence)
                    for text in entry.fills[:n]
                ),
                cost=Cost(forwards=len(entry.drafts) or 1, ms=entry.delay_ms),
                model=MODEL,
            )
        finally:
            self.running -= 1

    async def status(self) -> Status:
        return Status(state="ready", model=MODEL, requests=len(self.asked))

    async def events(self) -> AsyncIterator[Status]:
        """The statuses of the script, then the one that does not change any more."""
        for status in self._statuses:
            yield status
        yield await self.status()
        await asyncio.Event().wait()

    async def set_idle(self, seconds: float) -> None:
        """It ends with its server."""

    async def end(self) -> None:
        """The next one says the same."""

    async def close(self) -> None:
        return None

    def _entry_for(self, prefix: str) -> Entry:
        for entry in self._reusable:
            if entry.after is not None and prefix.endswith(entry.after):
                return entry
        return self._in_order.pop(0) if self._in_order else Entry()


def load(path: Path) -> ScriptedEngine:
    """The script in `path`. Raises EngineError if the file is missing, is no JSON, or has an entry that is wrong."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise EngineError(
            f"cannot read the script {path}: {error.strerror}", "check the path after scripted:"
        ) from None
    except ValueError as error:
        raise EngineError(f"the script {path} is no JSON: {error}", "it must hold a list of entries") from None
    if not isinstance(body, list):
        raise EngineError(f"the script {path} must hold a JSON list", 'for example [{"fill": "1)"}]')
    log: Path | None = None
    answers, statuses = [], []
    for number, item in enumerate(body, start=1):
        if isinstance(item, dict) and isinstance(item.get("log"), str):
            log = Path(item["log"])
        elif isinstance(item, dict) and isinstance(item.get("statuses"), list):
            statuses += [parse_status({"model": MODEL} | status) for status in item["statuses"]]
        else:
            answers.append(_entry(item, f"entry {number} of {path}"))
    return ScriptedEngine(tuple(answers), log, tuple(statuses))


def _entry(body: Any, where: str) -> Entry:
    if not isinstance(body, dict):
        raise EngineError(f"{where} must be an object", 'for example {"fill": "1)"}')
    unknown = body.keys() - _KEYS.keys()
    if unknown:
        raise EngineError(f"{where}: unknown key {sorted(unknown)[0]!r}", f"known: {', '.join(_KEYS)}")
    for key, value in body.items():
        if not _KEYS[key](value):
            raise EngineError(f"{where}: {key} has a value of the wrong kind: {json.dumps(value)}", "see the format")
    fill = body.get("fill", [])
    fills = () if body.get("none") else ((fill,) if isinstance(fill, str) else tuple(fill))
    return Entry(
        after=body.get("after"),
        fills=fills,
        confidence=body.get("confidence"),
        replace_before=body.get("replace_before", 0),
        delay_ms=body.get("delay_ms", 0),
        drafts=tuple(body.get("drafts", ())),
        wait_for=Path(body["wait_for"]) if "wait_for" in body else None,
        error=_failure(body["error"]) if "error" in body else None,
    )


def _taken(file: Path) -> bool:
    """Whether the file was there; it is not any more."""
    try:
        file.unlink()
    except FileNotFoundError:
        return False
    return True


def _failure(error: Any) -> Failure:
    if isinstance(error, str):
        return Failure(code="model", message=error)
    return Failure(code=error.get("code", "model"), message=error["message"], hint=error.get("hint", ""))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _error(value: Any) -> bool:
    return isinstance(value, str) or (
        isinstance(value, dict)
        and isinstance(value.get("message"), str)
        and isinstance(value.get("hint", ""), str)
        and value.get("code", "model") in typing.get_args(ErrorCode)
    )


_KEYS: dict[str, Any] = {
    "after": lambda value: isinstance(value, str),
    "fill": lambda value: isinstance(value, str) or _texts(value),
    "confidence": lambda value: value is None or _number(value),
    "replace_before": lambda value: _number(value) and isinstance(value, int),
    "delay_ms": _number,
    "drafts": _texts,
    "wait_for": lambda value: isinstance(value, str),
    "error": _error,
    "none": lambda value: isinstance(value, bool),
}
