"""The backend for autoregressive models: FIM servers, llama.cpp, Ollama and chat models, as `forms` asks them.

A candidate is one streamed answer, which is closed as soon as it has all that the request allows. Several candidates
are several requests side by side, the first of them greedy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

from diffusion.api import Candidate, EditRequest, EngineError, FillRequest, Finish
from diffusion.remote import prompts
from diffusion.remote.bridge import Bridge
from diffusion.remote.connection import Connection, Refused, nonsense, reason_in
from diffusion.remote.forms import Asked, Piece, Shape, shape_for
from diffusion.remote.settings import Remote
from diffusion.remote.work import Served, Work, cut, whole_lines

CANDIDATES = 3
"""Candidates that are asked for at most: each is a whole answer, and may cost money."""
LISTED = 5
"""Models that a message names."""


class OpenAiBackend:
    def __init__(self, connection: Connection, bridge: Bridge) -> None:
        self._connection = connection
        self._remote = connection.remote

    async def probe(self) -> Served:
        """Raises EngineError."""
        if self._remote.form == "ollama":
            models = await served_models(self._connection, "/api/tags", "models", "name")
            return Served(server="Ollama", model=chosen_model(self._remote, _with_latest(self._remote.model), models))
        models = await served_models(self._connection)
        if self._remote.form == "infill":  # llama.cpp answers with the model it has, whatever it is called
            return Served(server="llama.cpp", model=self._remote.model)
        if self._remote.model and self._remote.model not in models:
            # A gateway may serve more than it lists: only its answer to a request tells.
            note = f"{self._remote.url} does not list {self._remote.model}; it lists {_some(models)}" if models else ""
            return Served(server="server", model=self._remote.model, note=note)
        return Served(server="server", model=chosen_model(self._remote, self._remote.model, models))

    async def write(self, work: Work, served: Served) -> Finish:
        """Raises EngineError, if the first candidate fails; the others may."""
        return await write_candidates(self._connection, work, served.model, shape_for(self._remote, work.request))


async def write_candidates(connection: Connection, work: Work, model: str, shape: Shape) -> Finish:
    """The answers to a request in one of the forms. Raises EngineError."""
    count = min(work.request.n, CANDIDATES) if isinstance(work.request, FillRequest) else 1
    writing = _Writing(connection, work, model, shape, count)
    others = asyncio.gather(*(writing.one(index) for index in range(1, count)), return_exceptions=True)
    try:
        finish = await writing.one(0)
        await others
    finally:
        others.cancel()
    return finish


class _Writing:
    """The candidates of one request while they are written."""

    def __init__(self, connection: Connection, work: Work, model: str, shape: Shape, count: int) -> None:
        self._connection, self._work, self._model, self._shape = connection, work, model, shape
        self._texts = [""] * count

    async def one(self, index: int) -> Finish:
        """Write a candidate. Raises EngineError."""
        work, shape = self._work, self._shape
        asked = Asked(request=work.request, remote=self._connection.remote, model=self._model, index=index)
        said, text, ended, limited, answered = "", "", False, False, False
        work.forwards += 1
        body = {**shape.body(asked), **asked.remote.extra}
        async with contextlib.aclosing(self._connection.objects(shape.route, body)) as objects:
            async for value in objects:
                piece = self._read(shape, value)
                answered = True
                said += piece.text
                limited = limited or piece.limited
                text, ended = self._middle(said, complete=False)
                self._update(index, text)
                if ended or piece.done:
                    break
        if not answered:
            raise nonsense(self._connection.remote)
        if ended and isinstance(work.request, EditRequest):
            work.candidates = (Candidate(text=text),)  # an empty one, too: it deletes the selection
        if not ended:
            text, ended = self._middle(said, complete=not limited)
            # What the limit broke off is told as such, unless the lines before it are all that was wanted.
            self._update(index, whole_lines(text) if limited and isinstance(work.request, FillRequest) else text)
        return "length" if limited and not ended else "stop"

    def _middle(self, said: str, *, complete: bool) -> tuple[str, bool]:
        """The text so far, and whether no more is wanted."""
        ended = self._shape.chat and prompts.middle_ended(said)
        text = said.replace("\r\n", "\n")
        if self._shape.chat:
            text = prompts.without_frame(prompts.said_middle(text, complete=complete), self._work.request)
        text, full = cut(text, self._work.request)
        return text, ended or full

    def _read(self, shape: Shape, value: dict[str, Any]) -> Piece:
        """Raises EngineError for an object that says something else."""
        remote = self._connection.remote
        if value.get("error"):
            message = f"{remote.url} broke off its answer: {reason_in(value) or 'an error'}"
            raise EngineError(message, "look at the server's log", "unavailable")
        try:
            return shape.read(value)
        except (KeyError, IndexError, TypeError, AttributeError):
            raise nonsense(remote) from None

    def _update(self, index: int, text: str) -> None:
        self._texts[index] = text
        self._work.answer(*(Candidate(text=text) for text in self._texts))
        if index == 0:
            self._work.draft(text)


async def served_models(
    connection: Connection, route: str = "/v1/models", table: str = "data", key: str = "id"
) -> dict[str, dict[str, Any]]:
    """What a server says of the models that it lists, by name; nothing where it has no list. Raises EngineError."""
    try:
        value = await connection.json("GET", route)
    except Refused as refused:
        if refused.status in (404, 405):
            return {}
        raise
    try:
        return {str(entry[key]): dict(entry) for entry in value[table]}
    except (KeyError, TypeError, ValueError):
        raise nonsense(connection.remote) from None


def chosen_model(remote: Remote, wanted: str, models: Iterable[str]) -> str:
    """The model to ask for. Raises EngineError where it is not served, or nobody has said which one."""
    models = list(models)
    if wanted:
        if wanted in models:
            return wanted
        serves = f"it serves {_some(models)}" if models else "it serves none"
        raise EngineError(
            f"{remote.url} does not serve {wanted}", f"{serves}: correct `model` in {remote.where}", "model"
        )
    if len(models) == 1:
        return models[0]
    serves = f"{remote.url} serves {_some(models)}" if models else f"{remote.url} lists no models"
    raise EngineError(serves, f"name one as `model` in {remote.where}", "model")


def _some(models: Iterable[str]) -> str:
    models = list(models)
    more = f" and {len(models) - LISTED} more" if len(models) > LISTED else ""
    return ", ".join(models[:LISTED]) + more


def _with_latest(model: str) -> str:
    return f"{model}:latest" if model and ":" not in model else model
