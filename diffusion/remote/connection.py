"""HTTP to one server: TLS, key, time-outs, retries with back-off, and one sentence for every way to fail.

Answers are bounded in time and size. A request that is cancelled closes its connection at once, which ends the work on
the server, too. Knows nothing of models and prompts; messages never quote code.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import httpx2

from diffusion.api import EngineError, ErrorCode
from diffusion.remote.settings import Remote

ANSWER_BYTES = 8 * 1024 * 1024
"""More than any list of models or middle has; what is longer is nonsense."""

BACK_OFF = (0.1, 0.3, 1.0, 2.0)
"""Seconds before each further attempt; the last one repeats. A server may ask for more, up to PATIENCE."""
PATIENCE = 2.0

_PASSING = frozenset((408, 425, 429, 500, 502, 503, 504, 529))


class Refused(EngineError):
    """The server answered with a status that says no. `status` is HTTP's, `said` what it gave as the reason, `wait` the
    seconds after which it wants to be asked again."""

    def __init__(self, message: str, hint: str, code: ErrorCode, *, status: int, said: str, wait: float) -> None:
        super().__init__(message, hint, code)
        self.status, self.said, self.wait = status, said, wait

    @property
    def may_pass(self) -> bool:
        return self.status in _PASSING and self.wait <= PATIENCE


class Connection:
    """A pool of connections, to be used on one event loop."""

    def __init__(self, remote: Remote, key: str) -> None:
        self.remote = remote
        headers = {"user-agent": "midfill", "accept": "application/json, text/event-stream, application/x-ndjson"}
        if key:
            headers["authorization"] = f"Bearer {key}"
        self._has_key = bool(key)
        self._client = httpx2.AsyncClient(
            base_url=remote.url,
            headers=headers,
            verify=_trust(remote),
            # A proxy for the way out would be asked for this machine, too.
            trust_env=not remote.loopback,
            timeout=httpx2.Timeout(remote.timeout, connect=remote.connect_timeout),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=remote.parallel, keepalive_expiry=60),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """The answer as JSON. Raises EngineError, as Refused where the server says no."""
        text = bytearray()
        async for part in self._parts(method, path, body):
            text += part
        return self._parsed(text)

    async def objects(self, path: str, body: Any) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of an answer that may be a stream: server-sent events, lines of JSON, or one object.

        Ends at "[DONE]" or with the answer; closing it closes the connection. Raises EngineError.
        """
        async with contextlib.aclosing(self._parts("POST", path, body)) as parts:
            async for line in _lines(parts):
                text = line.removeprefix(b"data:").strip()
                if text == b"[DONE]":
                    return
                if text.startswith(b"{"):
                    yield self._parsed(text)
                elif text and not re.match(rb"(:|event:|id:|retry:)", text):
                    raise self._nonsense()

    async def _parts(self, method: str, path: str, body: Any) -> AsyncGenerator[bytes, None]:
        """The body, in parts. Until the first one has come, a failure that may pass is followed by another attempt."""
        attempt = 0
        while True:
            begun = False
            try:
                async with asyncio.timeout(self.remote.timeout), self._client.stream(method, path, json=body) as answer:
                    if answer.status_code != 200:
                        raise await self._refusal(answer, path)
                    size = 0
                    async for part in answer.aiter_bytes():
                        begun = True
                        size += len(part)
                        if size > ANSWER_BYTES:
                            raise self._nonsense()
                        yield part
                    return
            except (httpx2.HTTPError, TimeoutError, Refused) as error:
                refused = error if isinstance(error, Refused) else None
                passing = refused.may_pass if refused else _may_pass(error)
                if begun or not passing or attempt >= self.remote.retries:
                    raise refused or self._failure(error, begun) from None
                wait = BACK_OFF[min(attempt, len(BACK_OFF) - 1)] * random.uniform(0.8, 1.2)
                await asyncio.sleep(max(wait, refused.wait if refused else 0))
                attempt += 1

    async def _refusal(self, answer: httpx2.Response, path: str) -> Refused:
        """What a status other than 200 means, in a sentence."""
        text = b""
        with contextlib.suppress(httpx2.HTTPError):
            async for part in answer.aiter_bytes():
                text += part
                if len(text) > 65_536:
                    break
        status, said, remote = answer.status_code, reason(text), self.remote
        tail = f": {said}" if said else ""
        code: ErrorCode = "model"
        if status in (401, 403):
            message = (
                f"{remote.url} refuses {'the key' if self._has_key else 'requests without a key'} ({status}{tail})"
            )
            hint = f"correct what `api_key_env` or `keyring` in {remote.where} names"
        elif status in (301, 302, 303, 307, 308):
            message = f"{remote.url} sends requests elsewhere ({status})"
            hint = f"write the final address as `url` into {remote.where}"
        elif status in (404, 405):
            message = f"{remote.url} knows no {path}{tail}" if not said else f"{remote.url} has not found it{tail}"
            hint = f"correct `url`, `form` or `model` in {remote.where}"
        elif status == 429:
            message, code = f"{remote.url} has too many requests{tail}", "busy"
            hint = "ask again in a moment, or ask for a higher limit"
        elif status >= 500:
            message, code = f"{remote.url} failed ({status}{tail})", "unavailable"
            hint = "look at the server's log"
        else:
            message = f"{remote.url} does not take the request ({status}{tail})"
            hint = f"correct {remote.where}; its `form` must fit the server"
        wait = answer.headers.get("retry-after", "")
        return Refused(message, hint, code, status=status, said=said, wait=float(wait) if wait.isdecimal() else 0)

    def _failure(self, error: Exception, begun: bool) -> EngineError:
        """What an exception of the transport means, in a sentence."""
        remote, cause = self.remote, _cause(error)
        if isinstance(cause, ssl.SSLCertVerificationError):
            message = f"the certificate of {remote.url} is not trusted ({cause.verify_message})"
            return EngineError(
                message, f"name your authority's certificates as `ca_file` in {remote.where}", "unavailable"
            )
        if isinstance(cause, ssl.SSLError):
            message = f"{remote.url} does not speak TLS as it should"
            return EngineError(message, f"should `url` in {remote.where} begin with http:// ?", "unavailable")
        if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError):
            why = "no answer" if isinstance(error, httpx2.ConnectTimeout) else _said(cause)
            message = f"no connection to {remote.url} ({why})"
            return EngineError(message, f"start the server, or correct `url` in {remote.where}", "unavailable")
        if isinstance(error, TimeoutError | httpx2.TimeoutException):
            message = f"{remote.url} has not answered within {remote.timeout:g} s"
            return EngineError(message, f"is it overloaded? `timeout` in {remote.where} can be raised", "unavailable")
        if isinstance(error, httpx2.UnsupportedProtocol | httpx2.InvalidURL | httpx2.ProxyError):
            return EngineError(
                f"{remote.url} cannot be reached ({type(error).__name__})", f"correct {remote.where}", "unavailable"
            )
        what = "broke off its answer" if begun else "closed the connection without an answer"
        return EngineError(f"{remote.url} {what}", "look at the server's log", "unavailable")

    def _parsed(self, text: bytes | bytearray) -> Any:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise self._nonsense() from None

    def _nonsense(self) -> EngineError:
        return nonsense(self.remote)


def nonsense(remote: Remote) -> EngineError:
    """The server answers, but not with what it should."""
    hint = f"does `url` in {remote.where} lead to the right server, and does `form` fit it?"
    return EngineError(f"{remote.url} answers something else than a completion", hint, "model")


def reason(text: bytes) -> str:
    """The reason in the body of a refusal, if it is JSON."""
    try:
        return reason_in(json.loads(text))
    except (ValueError, RecursionError):
        return ""


def reason_in(value: Any) -> str:
    """The reason in an error of any of the usual shapes, on one line and cut, since some servers quote the request."""
    for key in ("error", "message", "detail"):
        value = value.get(key, value) if isinstance(value, dict) else value
    return " ".join(value.split())[:200] if isinstance(value, str) else ""


async def _lines(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Lines of a stream; a body that is one object on many lines is one line."""
    rest, whole = b"", None
    async for part in parts:
        rest += part
        if whole is None and rest.strip():
            whole = re.match(rb"\s*\{\s*\n", rest) is not None  # no stream begins with a bare brace
        if not whole:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield line
    yield rest


def _trust(remote: Remote) -> ssl.SSLContext | bool:
    """Whose certificates are believed. Raises EngineError."""
    if remote.ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=str(remote.ca_file))
    except (OSError, ssl.SSLError):
        message = f"`ca_file` in {remote.where} names {remote.ca_file}, which holds no certificates"
        raise EngineError(message, "name a PEM file with your authority's certificates", "model") from None


def _may_pass(error: Exception) -> bool:
    """Is a further attempt of use? An answer that took too long would take so long again."""
    if isinstance(_cause(error), ssl.SSLError):
        return False
    return isinstance(error, httpx2.NetworkError | httpx2.RemoteProtocolError | httpx2.ConnectTimeout)


def _cause(error: BaseException) -> BaseException:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return error


def _said(cause: BaseException) -> str:
    """Why there is no connection. asyncio's own words name the address once more."""
    if isinstance(cause, OSError) and (cause.errno or 0) > 0:
        return os.strerror(cause.errno or 0).lower()
    return (cause.strerror if isinstance(cause, OSError) else str(cause)) or type(cause).__name__
