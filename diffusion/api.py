"""The interface between the two processes: requests, events, status, errors, and their JSON form.

Standard library only, since the language server imports it and must stay light. It knows text and numbers;
it knows no tokens, no offsets into documents, no transport and no model.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol

PROTOCOL_VERSION = 3
"""Raised when the JSON below changes; part of the engine socket's name, so that two versions never meet."""

DISTRIBUTION = "midfill"
"""The name under which the package is installed, and of its folders."""

Mode = Literal["line", "block"]
Finish = Literal["stop", "length", "deadline", "superseded"]
Decoding = Literal["diffusion", "left-to-right"]
State = Literal["starting", "loading", "ready", "busy", "errored", "stopped"]
ErrorCode = Literal["bad_request", "loading", "busy", "cancelled", "model", "unsupported", "unavailable", "internal"]
CellState = Literal["masked", "accepted", "end"]


@dataclass(frozen=True, kw_only=True)
class ContextItem:
    """A piece of text from elsewhere that may help: `kind` is "import", "signature", "file", "edit" ..."""

    kind: str
    path: str = ""
    text: str


@dataclass(frozen=True, kw_only=True)
class FillRequest:
    """Fill the middle between `prefix` and `suffix`, both Unicode without lone surrogates.

    Line ends may be any; middles come back with "\\n". `language` is an LSP language id; `path` is shown to the model
    (file name, at most a few folders). `mode` "line" forbids newlines in the middle, "block" allows `max_lines` lines.
    With `keep_indent` the blanks before the cursor stay as they are, else the model may write others in their place.
    `n` candidates at most are returned, best first. `deadline_ms` counts from the arrival of the request at the
    engine; None waits until the fill is done. `starts` are middles that may be right (what is left of an earlier
    answer, lines found nearby): canvases start from them, and they are candidates; `likely` says how likely each of
    them is to be right, from 0 to 1, as far as that is known without a model (0, or left out: not known). `drafts` asks
    for a draft after every denoising step, `cells` for the state of each slot position in them. `steps` bounds the
    denoising steps of each canvas, `corrections` how often what does not fit is taken back (None: the profile's
    defaults). `length_of` is for evaluation only: the middle has as
    many tokens as this text would have at this place (None: the engine finds the length). So is `decoding`: with
    "left-to-right" the same weights write one line token by token, where the model can, without a look at `suffix` and
    `starts`; and `trace`, which asks for what the answer was chosen from.
    """

    id: str
    client: str = ""
    language: str = "plaintext"
    path: str = ""
    prefix: str
    suffix: str
    context: tuple[ContextItem, ...] = ()
    mode: Mode = "line"
    keep_indent: bool = False
    max_lines: int = 1
    n: int = 1
    deadline_ms: float | None = None
    seed: int = 0
    starts: tuple[str, ...] = ()
    likely: tuple[float, ...] = ()
    drafts: bool = False
    cells: bool = False
    steps: int | None = None
    corrections: int | None = None
    length_of: str | None = None
    decoding: Decoding = "diffusion"
    trace: bool = False

    def __post_init__(self) -> None:
        _check_ranges(self, "max_lines", "n", "seed", "steps", "corrections")
        if any(not 0 <= value <= 1 for value in self.likely):
            raise BadRequest("likely must lie between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class EditRequest:
    """Write `selected`, which stands between `before` and `after`, anew as `instruction` says.

    Answered like a fill; a draft's and a candidate's text replaces `selected`. The other fields mean what they mean in
    a FillRequest.
    """

    id: str
    client: str = ""
    language: str = "plaintext"
    path: str = ""
    before: str
    selected: str
    after: str
    instruction: str
    context: tuple[ContextItem, ...] = ()
    deadline_ms: float | None = None
    seed: int = 0
    drafts: bool = False
    steps: int | None = None

    def __post_init__(self) -> None:
        _check_ranges(self, "seed", "steps")


_RANGES = {"max_lines": (1, 200), "n": (1, 10), "seed": (0, 2**63 - 1), "steps": (1, 256), "corrections": (0, 8)}


def _check_ranges(request: FillRequest | EditRequest, *names: str) -> None:
    for name in names:
        (low, high), value = _RANGES[name], getattr(request, name)
        if value is not None and not low <= value <= high:
            raise BadRequest(f"{name} must lie between {low} and {high}, not {value}")
    if request.deadline_ms is not None and not request.deadline_ms > 0:
        raise BadRequest(f"deadline_ms must be above 0, not {request.deadline_ms}")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One position of the slot in a draft: the text of its token and whether the model has settled on it."""

    text: str
    state: CellState


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The best middle after denoising step `step` (1-based, counted over all canvases of the request)."""

    step: int
    text: str
    cells: tuple[Cell, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A finished middle. `text` replaces the `replace_before` characters directly before the cursor; they are spaces
    and tabs of the cursor's own line. `confidence`: calibrated probability of being exactly what the author wrote, or
    None where the profile has no calibration."""

    text: str
    replace_before: int = 0
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a fill took: tokens encoded and reused from the cache, decoder and encoder calls, milliseconds in all since
    its arrival, and how many of them it waited for its turn."""

    encoded: int = 0
    cached: int = 0
    forwards: int = 0
    encodes: int = 0
    ms: float = 0.0
    queued_ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What an answer was chosen from: what the decoder alone would have said (`first`), what the ranking said before
    the model corrected itself (`uncorrected`), and all there was to choose from (`batch`). `renoised`: ids that had
    been accepted and were taken back; `revised`: those of them that became others in the answer."""

    first: Candidate
    uncorrected: Candidate
    batch: tuple[Candidate, ...]
    renoised: int = 0
    revised: int = 0


@dataclass(frozen=True, kw_only=True)
class Result:
    """The end of a fill. `candidates` is empty when there is nothing to say. `gate`: the confidence from which on the
    model's answers are worth being shown unasked, None if that has not been measured."""

    candidates: tuple[Candidate, ...]
    finish: Finish = "stop"
    cost: Cost = Cost()
    model: str = ""
    gate: float | None = None
    trace: Trace | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a load is: `done` of `total` units, both counted in the unit that suits the work (bytes, shards)."""

    done: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Status:
    """What an engine says of itself on `GET /health`. Times in seconds, memory in bytes. `idle`: after so long without
    clients it ends; 0: never."""

    state: State
    detail: str = ""
    progress: Progress | None = None
    model: str = ""
    device: str = ""
    version: str = ""
    protocol: int = PROTOCOL_VERSION
    pid: int = 0
    uptime: float = 0.0
    memory: int = 0
    clients: int = 0
    requests: int = 0
    idle: float = 0.0
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The other end of a fill: an error as data. `message` says what happened, `hint` what to do about it."""

    code: ErrorCode
    message: str
    hint: str = ""


Event = Draft | Result | Failure
"""A fill is any number of drafts, then exactly one result or failure."""


class EngineError(Exception):
    """An error with a sentence for the user and one that says what to do. Travels as a `Failure`."""

    code: ErrorCode = "internal"

    def __init__(self, message: str, hint: str = "", code: ErrorCode | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or type(self).code

    def as_failure(self) -> Failure:
        return Failure(code=self.code, message=self.message, hint=self.hint)


class BadRequest(EngineError, ValueError):
    """The request itself is wrong: a field is missing, of the wrong type, or out of range."""

    code: ErrorCode = "bad_request"


class Engine(Protocol):
    """Whoever answers fills: the real engine process, or a scripted one in tests."""

    def fill(self, request: FillRequest) -> AsyncIterator[Event]:
        """The events of one fill. Closing the iterator cancels; after that no event follows."""
        ...

    def edit(self, request: EditRequest) -> AsyncIterator[Event]:
        """The events of one edit; the same rules."""
        ...

    async def status(self) -> Status:
        """How the engine is now. Raises EngineError if there is none and none can be started."""
        ...

    async def close(self) -> None:
        """Give up what is held for this client."""
        ...


# --- JSON -------------------------------------------------------------------------------------------------------


def to_json(value: Any) -> dict[str, Any]:
    """A dataclass of this module as a JSON object, without its None fields. Events carry their kind under "event"."""
    body = _strip(dataclasses.asdict(value))
    kind = _EVENT_NAMES.get(type(value))
    return {"event": kind, **body} if kind else body


def parse_request(body: Any) -> FillRequest:
    """JSON object -> FillRequest. Raises BadRequest naming the field that is wrong; unknown fields are ignored."""
    return typing.cast(FillRequest, _build(FillRequest, body, "request"))


def parse_edit(body: Any) -> EditRequest:
    """JSON object -> EditRequest. Raises BadRequest naming the field that is wrong; unknown fields are ignored."""
    return typing.cast(EditRequest, _build(EditRequest, body, "request"))


def parse_status(body: Any) -> Status:
    """JSON object -> Status. Raises BadRequest."""
    return typing.cast(Status, _build(Status, body, "status"))


def parse_event(body: Any) -> Event:
    """JSON object with an "event" key -> Draft, Result or Failure. Raises BadRequest."""
    kind = body.get("event") if isinstance(body, dict) else None
    for cls, name in _EVENT_NAMES.items():
        if name == kind:
            return typing.cast(Event, _build(cls, body, name))
    raise BadRequest(f"not an event: {kind!r}")


_EVENT_NAMES: dict[type, str] = {Draft: "draft", Result: "result", Failure: "error"}


def _strip(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _strip(item) for key, item in value.items() if item is not None}
    return [_strip(item) for item in value] if isinstance(value, list | tuple) else value


def _build(cls: Any, body: Any, where: str) -> Any:
    if not isinstance(body, dict):
        raise BadRequest(f"{where} must be a JSON object")
    hints = _hints(cls)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        if field.name in body:
            values[field.name] = _coerce(hints[field.name], body[field.name], f"{where}.{field.name}")
        elif field.default is dataclasses.MISSING:
            raise BadRequest(f"{where}.{field.name} is missing")
    return cls(**values)


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _coerce(hint: Any, value: Any, where: str) -> Any:
    """Check `value` against a type hint of this module (scalars, literals, unions, tuples, dataclasses)."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in args:
            return None
        (inner,) = [arg for arg in args if arg is not type(None)]
        return _coerce(inner, value, where)
    if origin is Literal:
        if value in args:
            return value
        raise BadRequest(f"{where} must be one of {', '.join(map(repr, args))}")
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise BadRequest(f"{where} must be a list")
        return tuple(_coerce(args[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if dataclasses.is_dataclass(hint):
        return _build(hint, value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise BadRequest(f"{where} must be {hint.__name__}, not {type(value).__name__}")
    return value
