"""How each kind of server is asked for a middle and how it answers: OpenAI's completions with a suffix, llama.cpp's
infill, Ollama's generate, and chat completions with an instruction. One row of FORMS each.

    completions   vLLM, TabbyAPI, DeepSeek, Mistral and others: prompt + suffix -> choices[0].text
    infill        llama.cpp: input_prefix, input_suffix, input_extra -> content
    ollama        Ollama: prompt + suffix -> response
    chat          any chat model: fills by an instruction -> choices[0].message.content

Bodies and answers as the servers' documentations have them. Pure: values in, values out; knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from diffusion.api import EditRequest, FillRequest
from diffusion.remote import prompts
from diffusion.remote.settings import Form, Remote

TOKENS_PER_LINE = 24
LEAST_TOKENS = 64
CHAT_TOKENS = 64
"""What a chat model may spend on the marks around its answer."""
OTHER_SAMPLES = 0.8
"""The temperature of all candidates but the first."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One answer that is wanted: a request, as which of its candidates, of which model."""

    request: FillRequest | EditRequest
    remote: Remote
    model: str
    index: int = 0

    @property
    def seed(self) -> int:
        return (self.request.seed + self.index) % 2**31

    @property
    def temperature(self) -> float:
        return self.remote.temperature if self.index == 0 else max(self.remote.temperature, OTHER_SAMPLES)

    @property
    def tokens(self) -> int:
        """How many tokens the answer may have."""
        if self.remote.max_tokens:
            return self.remote.max_tokens
        if isinstance(self.request, EditRequest):
            return LEAST_TOKENS * 4 + len(self.request.selected)
        return max(LEAST_TOKENS, TOKENS_PER_LINE * (self.request.max_lines if self.request.mode == "block" else 1))


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one object of an answer says: more text, whether it is the last, whether a limit ended it."""

    text: str = ""
    done: bool = False
    limited: bool = False


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One kind of server. `read` raises KeyError, IndexError, TypeError or AttributeError for what is no answer."""

    route: str
    body: Callable[[Asked], dict[str, Any]]
    read: Callable[[dict[str, Any]], Piece]
    chat: bool = False


def shape_for(remote: Remote, request: FillRequest | EditRequest) -> Shape:
    """A fill in the form of the profile; an edit always by chat."""
    if isinstance(request, FillRequest):
        shape = FORMS[remote.form]
        return replace(shape, route=remote.path) if remote.path else shape
    return OLLAMA_CHAT if remote.form == "ollama" else FORMS["chat"]


def _completions(asked: Asked) -> dict[str, Any]:
    request = _fill(asked)
    body = {**_openai(asked), "prompt": _with_context(request), "suffix": request.suffix, "max_tokens": asked.tokens}
    return {**body, "stop": ["\n"]} if request.mode == "line" else body


def _infill(asked: Asked) -> dict[str, Any]:
    request = _fill(asked)
    before, _, line = request.prefix.rpartition("\n")
    body: dict[str, Any] = {
        # The line of the cursor comes after the mark of the middle, as llama.cpp's own editors send it.
        "input_prefix": f"{before}\n" if before or "\n" in request.prefix else "",
        "input_suffix": request.suffix,
        "input_extra": [{"filename": item.path or item.kind, "text": item.text} for item in request.context],
        "prompt": line,
        "n_predict": asked.tokens,
        "temperature": asked.temperature,
        "seed": asked.seed,
        "cache_prompt": True,
        "stream": True,
    }
    if request.mode == "line":
        body["stop"] = ["\n"]
    return {**body, "model": asked.model} if asked.model else body


def _ollama(asked: Asked) -> dict[str, Any]:
    request = _fill(asked)
    options = _ollama_options(asked) | ({"stop": ["\n"]} if request.mode == "line" else {})
    prompt = _with_context(request)
    return {"model": asked.model, "prompt": prompt, "suffix": request.suffix, "options": options, "stream": True}


def _ollama_chat(asked: Asked) -> dict[str, Any]:
    options = _ollama_options(asked, CHAT_TOKENS)
    return {"model": asked.model, "messages": _messages(asked), "options": options, "think": False, "stream": True}


def _ollama_options(asked: Asked, more: int = 0) -> dict[str, Any]:
    return {"num_predict": asked.tokens + more, "temperature": asked.temperature, "seed": asked.seed}


def _chat(asked: Asked) -> dict[str, Any]:
    return {**_openai(asked), "messages": _messages(asked), "max_tokens": asked.tokens + CHAT_TOKENS}


def _openai(asked: Asked) -> dict[str, Any]:
    # Some servers know no seeds, and without a temperature they change nothing.
    seed = {"seed": asked.seed} if asked.temperature > 0 else {}
    return {"model": asked.model, "temperature": asked.temperature, "stream": True, **seed}


def _messages(asked: Asked) -> prompts.Messages:
    request = asked.request
    return prompts.fill_messages(request) if isinstance(request, FillRequest) else prompts.edit_messages(request)


def _fill(asked: Asked) -> FillRequest:
    assert isinstance(asked.request, FillRequest), "edits go by chat"
    return asked.request


def _with_context(request: FillRequest) -> str:
    """What helps from elsewhere stands above the prefix: these forms have no place for it."""
    return "".join(f"{item.text.rstrip()}\n\n" for item in request.context) + request.prefix


def _read_openai(value: dict[str, Any]) -> Piece:
    """A choice's text, of either kind and streamed or not. The last chunk of a stream may have no choices (usage)."""
    if not value["choices"]:
        return Piece()
    choice = value["choices"][0]
    message = choice.get("delta") or choice.get("message") or {}
    text = choice.get("text") or message.get("content") or ""
    reason = choice.get("finish_reason")
    return Piece(text=_text(text), done=bool(reason), limited=reason == "length")


def _read_infill(value: dict[str, Any]) -> Piece:
    return Piece(text=_text(value["content"]), done=bool(value.get("stop")), limited=value.get("stop_type") == "limit")


def _read_ollama(value: dict[str, Any]) -> Piece:
    done = bool(value["done"])
    text = value["message"]["content"] if "message" in value else value["response"]
    return Piece(text=_text(text), done=done, limited=value.get("done_reason") == "length")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text was expected")
    return value


FORMS: dict[Form, Shape] = {
    "completions": Shape(route="/v1/completions", body=_completions, read=_read_openai),
    "infill": Shape(route="/infill", body=_infill, read=_read_infill),
    "ollama": Shape(route="/api/generate", body=_ollama, read=_read_ollama),
    "chat": Shape(route="/v1/chat/completions", body=_chat, read=_read_openai, chat=True),
}
OLLAMA_CHAT = Shape(route="/api/chat", body=_ollama_chat, read=_read_ollama, chat=True)
