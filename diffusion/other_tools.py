"""The engine for other completion tools: OpenAI's completions and llama.cpp's infill, as far as they fit a diffusion
model. Served on a network port behind `guard`.

    POST /v1/completions   prompt, suffix, n, max_tokens, stop, stream, seed; also language (LSP id), path, deadline_ms.
                           A prompt with the markers of some models holds both sides of the cursor: see tool_forms
    POST /infill           input_prefix, input_suffix, input_extra, prompt (goes on where input_prefix ends), n_predict,
                           stop, stream, t_max_prompt_ms, t_max_predict_ms, response_fields, n_cmpl (above 1: the
                           answer is a list); also language, path
    GET  /v1/models        the one model
    GET  /health           200 when the model is loaded, 503 before

One line or several? Both forms bound tokens only. A middle is one line where code follows the cursor on its line, where
a stop string is a newline, and where the bound leaves room for one line; else it has as many lines as the bound allows.
Temperature and other ways of sampling are accepted and have no effect. A draft is revised until it is done, so a stream
brings the whole text at once. Tokens of the middle are estimated from its length. Knows neither model nor transport.
"""

from __future__ import annotations

import contextlib
import json
import math
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from diffusion.api import Draft, EngineError, Event, Failure, FillRequest, Result, Status
from diffusion.guard import error_response
from diffusion.tool_forms import Asked, from_infill, from_openai
from diffusion.wire import as_failure, client_gone, http_message, parse_json, read_body, unless_gone

Fill = Callable[[FillRequest, float], AsyncGenerator[Event, None]]
"""The events of a request that arrived at a time (time.monotonic())."""

STATUS_CODES = {"bad_request": 400, "busy": 429, "internal": 500}
"""HTTP statuses for error codes; 503 for the others, which pass."""


def other_tools(fill: Fill, status: Callable[[], Status]) -> Starlette:
    """The application."""
    routes = _Routes(fill, status)
    return Starlette(
        routes=[
            Route("/v1/completions", routes.completions, methods=["POST"]),
            Route("/infill", routes.infill, methods=["POST"]),
            Route("/v1/models", routes.models, methods=["GET"]),
            Route("/health", routes.health, methods=["GET"]),
        ],
        exception_handlers={
            EngineError: _engine_error,
            HTTPException: _http_error,
            ClientDisconnect: client_gone,
            Exception: _internal_error,
        },
    )


class _Routes:
    def __init__(self, fill: Fill, status: Callable[[], Status]) -> None:
        self._fill = fill
        self._status = status

    async def completions(self, http: Request) -> Response:
        arrived = time.monotonic()
        asked = from_openai(parse_json(await read_body(http)))
        result = await self._result(http, asked, arrived)
        texts = asked.texts(result)
        choices: list[dict[str, Any]] = [
            {"index": index, "text": text, "logprobs": None, "finish_reason": "length" if limited else "stop"}
            for index, (text, limited) in enumerate(texts)
        ]
        body = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),  # a date for the client's log; nothing here depends on it
            "model": result.model or self._status().model,
        }
        read, written = result.cost.encoded + result.cost.cached, sum(estimate(text) for text, _ in texts)
        usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
        if not asked.stream:
            return JSONResponse({**body, "choices": choices, "usage": usage})
        chunks = [{**body, "choices": [{**choice, "finish_reason": None}]} for choice in choices]
        chunks += [{**body, "choices": [{**choice, "text": ""}]} for choice in choices]
        if asked.stream_usage:
            chunks.append({**body, "choices": [], "usage": usage})
        return _event_stream(*chunks, end="[DONE]")

    async def infill(self, http: Request) -> Response:
        arrived = time.monotonic()
        asked = from_infill(parse_json(await read_body(http)))
        # No token to predict: the client wants its context read in advance, which is not worth a queue's place.
        result = await self._result(http, asked, arrived) if asked.tokens else Result(candidates=())
        answers = [self._infilled(result, *found) for found in enumerate(asked.texts(result))]
        if asked.stream:
            content = answers[0]["content"]
            return _event_stream({"index": 0, "content": content, "stop": False}, {**answers[0], "content": ""})
        chosen = [_selected(answer, asked.response_fields) if asked.response_fields else answer for answer in answers]
        return JSONResponse(chosen if asked.request.n > 1 else chosen[0])

    def _infilled(self, result: Result, index: int, found: tuple[str, bool]) -> dict[str, Any]:
        (text, limited), cost = found, result.cost
        written = estimate(text)
        return {
            "index": index,
            "content": text,
            "stop": True,
            "stop_type": "limit" if limited else "eos",
            "stopping_word": "",
            "model": result.model or self._status().model,
            "tokens_predicted": written,
            "tokens_evaluated": cost.encoded + cost.cached,
            "tokens_cached": cost.cached,
            "truncated": False,
            "timings": {**_timings("prompt", cost.encoded, 0.0), **_timings("predicted", written, cost.ms)},
        }

    async def models(self, http: Request) -> Response:
        model = {"id": self._status().model, "object": "model", "created": 0, "owned_by": "midfill"}
        return JSONResponse({"object": "list", "data": [model]})

    async def health(self, http: Request) -> Response:
        state = self._status().state
        if state in ("ready", "busy"):
            return JSONResponse({"status": "ok"})
        return error_response(503, "Loading model" if state in ("starting", "loading") else f"the engine is {state}")

    async def _result(self, http: Request, asked: Asked, arrived: float) -> Result:
        """The end of a fill, which is cancelled when the client goes. Raises EngineError."""
        event = await unless_gone(http.receive, self._last(asked.request, arrived))
        if isinstance(event, Failure):
            raise EngineError(event.message, event.hint, event.code)
        return event

    async def _last(self, request: FillRequest, arrived: float) -> Result | Failure:
        async with contextlib.aclosing(self._fill(request, arrived)) as events:
            async for event in events:
                if not isinstance(event, Draft):
                    return event
        raise EngineError("the engine gave no answer", "its log says where")


def estimate(text: str) -> int:
    """Tokens in a middle, by its length: the engine's answer does not count them."""
    return math.ceil(len(text) / 4)


def _timings(name: str, tokens: int, ms: float) -> dict[str, float]:
    return {
        f"{name}_n": tokens,
        f"{name}_ms": ms,
        f"{name}_per_token_ms": ms / tokens if tokens else 0.0,
        f"{name}_per_second": tokens * 1000 / ms if ms else 0.0,
    }


def _selected(answer: dict[str, Any], fields: tuple[str, ...]) -> dict[str, Any]:
    """The fields asked for; "a/b" is b of a, under that very name. What does not exist is left out."""
    found = {}
    for field in fields:
        value: Any = answer
        for part in field.split("/"):
            value = value.get(part) if isinstance(value, dict) else None
        if value is not None:
            found[field] = value
    return found


def _event_stream(*values: dict[str, Any], end: str = "") -> Response:
    body = "".join(f"data: {line}\n\n" for line in [*map(json.dumps, values), *filter(None, [end])])
    return Response(body, media_type="text/event-stream", headers={"cache-control": "no-store"})


# --- errors


async def _engine_error(http: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    message = f"{error.message}: {error.hint}" if error.hint else error.message
    return error_response(STATUS_CODES.get(error.code, 503), message)


async def _http_error(http: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return error_response(error.status_code, http_message(http, error))


async def _internal_error(http: Request, error: Exception) -> Response:
    return error_response(500, as_failure(error).message)
