"""Who may use a network port of the engine: programs of this machine that have the key, and never a page in a browser.

A page can send a request to any port of 127.0.0.1, and through a name that it makes point there even read the answer.
So the Host must be ours, an Origin is refused, nothing answers OPTIONS, no CORS header is sent, a body must be declared
as JSON (which no page may do unasked), and the key is asked for. Knows nothing of what is served.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Guard:
    """An application behind the checks. `port` is the one that clients name in their Host header; `without_key` are the
    paths that may be asked without a key."""

    def __init__(self, app: ASGIApp, *, port: int, key: str, without_key: Sequence[str] = ()) -> None:
        self._app = app
        self._without_key = without_key
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._authorization = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self._refusal(scope)
        await (refused or self._app)(scope, receive, send)

    def _refusal(self, scope: Scope) -> JSONResponse | None:
        headers = Headers(scope=scope)
        if headers.getlist("host") == [] or not self._hosts.issuperset(headers.getlist("host")):
            return error_response(403, "this address is not served here: use 127.0.0.1 or localhost with the port")
        if "origin" in headers or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return error_response(403, "pages in a browser are not served")
        given = headers.get("authorization", "").encode("latin-1")
        if scope["path"] not in self._without_key and not hmac.compare_digest(given, self._authorization):
            return error_response(401, "the header 'Authorization: Bearer KEY' is missing or wrong")
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip() != JSON:
            return error_response(415, f"the content type must be {JSON}")
        return None


JSON = "application/json"

_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_TYPES |= {404: "not_found_error", 405: "not_found_error", 503: "unavailable_error"}


def error_response(status: int, message: str) -> JSONResponse:
    """An error as OpenAI's and llama.cpp's clients read it."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status)
