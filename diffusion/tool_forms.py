"""From the bodies of other tools' requests to the engine's own, and from its candidates to plain text to insert.

Pure: JSON values in, values out. Knows no HTTP.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeVar

from diffusion.api import BadRequest, ContextItem, FillRequest, Mode, Result
from diffusion.wire import checked

TOKENS_PER_LINE = 12
MAX_LINES = 12
DEFAULT_TOKENS = 64
MAX_STOPS = 16
PREFIX_CHARS, SUFFIX_CHARS = 32_000, 8_000
"""What of the text around the cursor is looked at: far more than any model's window here."""
EXTRA_ITEMS, EXTRA_CHARS = 8, 4_000

LANGUAGES = {
    "py": "python", "pyi": "python", "js": "javascript", "mjs": "javascript", "cjs": "javascript",
    "jsx": "javascriptreact", "ts": "typescript", "mts": "typescript", "cts": "typescript", "tsx": "typescriptreact",
}  # fmt: skip
"""Ends of file names -> LSP language ids. Neither form names the language, but both may name files."""

MARKED = tuple(
    re.compile(f"{re.escape(before)}(.*?){re.escape(behind)}(.*){re.escape(end)}", re.DOTALL)
    for before, behind, end in (
        ("<fim_prefix>", "<fim_suffix>", "<fim_middle>"),
        ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"),
        ("<PRE> ", " <SUF>", " <MID>"),
    )
)
"""Prompts that hold both sides of the cursor between markers, as Zed and others write them for StarCoder, Qwen and Code
Llama: prefix, suffix."""

_SAID = re.compile(r"\W*language: (\w+)\b")
"""How minuet names the language: by a comment in the first line."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A request in either form. `tokens`: so many were asked for, 0: no text is wanted."""

    request: FillRequest
    stop: tuple[str, ...]
    tokens: int
    stream: bool = False
    stream_usage: bool = False
    response_fields: tuple[str, ...] = ()

    def texts(self, result: Result) -> list[tuple[str, bool]]:
        """What to insert at the cursor, best first, and whether a limit ended it; one empty text if there is nothing.

        A candidate that changes blanks before the cursor cannot be told as an insertion and is left out.
        """
        prefix, limited = self.request.prefix, result.finish in ("length", "deadline")
        found: dict[str, bool] = {}
        for candidate in result.candidates:
            replaced = prefix[len(prefix) - candidate.replace_before :]
            if candidate.text.startswith(replaced):
                whole = candidate.text[len(replaced) :]
                text = before_stop(whole, self.stop)
                found.setdefault(text, limited and text == whole)
        return list(found.items()) or [("", False)]


def before_stop(text: str, stop: tuple[str, ...]) -> str:
    """The text up to the first of the stop strings in it."""
    return text[: min((at for word in stop if (at := text.find(word)) >= 0), default=len(text))]


def from_openai(body: Any) -> Asked:
    """Raises BadRequest."""
    body = _object(body)
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1:
        prompt = prompt[0]
    if not isinstance(prompt, str):
        raise BadRequest("prompt must be one text")
    suffix = _take(body, "suffix", str, "")
    if not suffix and (marked := next(filter(None, (form.fullmatch(prompt) for form in MARKED)), None)):
        prompt, suffix = marked.groups()
    tokens = _take(body, "max_tokens", int, DEFAULT_TOKENS)
    if tokens < 1:
        raise BadRequest(f"max_tokens must be above 0, not {tokens}")
    options = _object(body.get("stream_options") or {}, "stream_options")
    stop = _stop(body)
    deadline = body.get("deadline_ms")
    if deadline is not None and not _is_number(deadline):
        raise BadRequest("deadline_ms must be a number")
    return Asked(
        request=_request(body, prompt, suffix, tokens, stop, n=_take(body, "n", int, 1), deadline=deadline),
        stop=stop,
        tokens=tokens,
        stream=_take(body, "stream", bool, False),
        stream_usage=_take(options, "include_usage", bool, False),
    )


def from_infill(body: Any) -> Asked:
    """Raises BadRequest."""
    body = _object(body)
    for name in ("input_prefix", "input_suffix"):
        if not isinstance(body.get(name), str):
            raise BadRequest(f"{name} must be a text")
    tokens = _take(body, "n_predict", int, -1)
    stop = _stop(body)
    limits = [_take(body, name, int, 0) for name in ("t_max_prompt_ms", "t_max_predict_ms")]
    return Asked(
        request=_request(
            body,
            body["input_prefix"] + _take(body, "prompt", str, ""),
            body["input_suffix"],
            tokens if tokens >= 0 else DEFAULT_TOKENS,
            stop,
            n=_take(body, "n_cmpl", int, 1),
            context=_extra(body),
            deadline=sum(limits) if limits[1] > 0 else None,
        ),
        stop=stop,
        tokens=tokens,
        stream=_take(body, "stream", bool, False),
        response_fields=tuple(map(str, _take(body, "response_fields", list, []))),
    )


def lines_allowed(suffix: str, tokens: int, stop: tuple[str, ...]) -> int:
    """How many lines a middle may have; see the docstring of `other_tools`."""
    code_follows = suffix.partition("\n")[0].strip()
    return 1 if code_follows or {"\n", "\r\n"} & {*stop} else max(1, min(MAX_LINES, tokens // TOKENS_PER_LINE))


def _request(
    body: dict[str, Any],
    prefix: str,
    suffix: str,
    tokens: int,
    stop: tuple[str, ...],
    *,
    n: int = 1,
    context: tuple[ContextItem, ...] = (),
    deadline: float | None = None,
) -> FillRequest:
    lines = lines_allowed(suffix, tokens, stop)
    mode: Mode = "block" if lines > 1 else "line"
    seed = _take(body, "seed", int, 0)
    path = _take(body, "path", str, "")
    return checked(
        FillRequest(
            id=uuid.uuid4().hex,
            # No client: tools run several requests side by side, and end one by closing its connection.
            language=_take(body, "language", str, "")
            or (said.group(1).lower() if (said := _SAID.match(prefix)) else "")
            or _language([path] if path else [c.path for c in context]),
            path="/".join(path.replace("\\", "/").split("/")[-2:]),
            prefix=prefix[-PREFIX_CHARS:],
            suffix=suffix[:SUFFIX_CHARS],
            context=context,
            mode=mode,
            max_lines=lines,
            n=n,
            deadline_ms=deadline,
            seed=seed if seed > 0 else 0,
        )
    )


def _extra(body: dict[str, Any]) -> tuple[ContextItem, ...]:
    """The newest chunks of other files, which come last."""
    chunks = [_object(chunk, "input_extra") for chunk in _take(body, "input_extra", list, [])]
    return tuple(
        ContextItem(
            kind="file", path=_take(chunk, "filename", str, ""), text=_take(chunk, "text", str, "")[:EXTRA_CHARS]
        )
        for chunk in chunks[-EXTRA_ITEMS:]
    )


def _language(paths: list[str]) -> str:
    known = Counter(filter(None, (LANGUAGES.get(PurePath(path).suffix[1:].lower()) for path in paths)))
    return known.most_common(1)[0][0] if known else "plaintext"


def _stop(body: dict[str, Any]) -> tuple[str, ...]:
    stop = body.get("stop") or []
    words = [stop] if isinstance(stop, str) else stop
    if not isinstance(words, list) or len(words) > MAX_STOPS or not all(isinstance(word, str) for word in words):
        raise BadRequest(f"stop must be a text or a list of {MAX_STOPS} texts at most")
    return tuple(filter(None, words))


def _object(value: Any, name: str = "the request") -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadRequest(f"{name} must be a JSON object")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _take(body: dict[str, Any], name: str, kind: type[T], default: T) -> T:
    """A field of a given type; null is as good as missing."""
    value = body.get(name)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise BadRequest(f"{name} must be {kind.__name__}, not {type(value).__name__}")
    return value
