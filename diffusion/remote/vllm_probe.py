"""What a vLLM server can do: its version, which model it serves, whether it takes our canvases, and of which widths.

The server is asked with requests that it must refuse, since its refusals tell what it takes: an id beyond every
vocabulary tells the vocabulary's size, a canvas of one id the width that is served. A server that ignores a canvas
answers as if nothing were wrong. Only the last request computes anything: one denoising step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from diffusion.api import EngineError
from diffusion.profiles import ModelProfile
from diffusion.remote.canvases import vocabulary_size
from diffusion.remote.connection import Connection, Refused, nonsense
from diffusion.remote.openai import chosen_model, served_models
from diffusion.remote.texts import LocalTexts, ServerTexts, Texts
from diffusion.remote.work import Served
from diffusion.vocabulary import Vocabulary

WANTED = "0.32"
"""The first version whose documentation has pinned canvases."""

BEYOND = 2**31 - 1
"""No id of any vocabulary."""

LEAST_PROMPT = 1024
"""Ids that must be left for the prompt."""


@dataclass(frozen=True, kw_only=True)
class Native(Served):
    """A server that denoises our canvases: of `widths`, for the layout of `profile`, with ids of `texts`."""

    profile: ModelProfile
    widths: tuple[int, ...]
    texts: Texts


class Unsupported(Exception):
    """The server cannot denoise our canvases; the message says why. Chat completion is left."""


async def probe(connection: Connection, profile: ModelProfile) -> Served:
    """Raises EngineError where the server cannot be used at all."""
    remote = connection.remote
    models = await served_models(connection)
    model = chosen_model(remote, remote.model, models)
    version = await _version(connection)
    server = f"vLLM {version}" if version else "a server that is no vLLM"
    length = models[model].get("max_model_len")
    try:
        widths = await _widths(connection, model, profile)
        fitting = _fitting(profile, length, widths[-1])
        texts = await _texts(connection, model, fitting)
    except Unsupported as why:
        old = f" (vLLM {WANTED} or later is needed)" if version else ""
        note = f"filling by chat completion, since {server} at {remote.url} {why}{old}"
        return Served(server=server, model=model, note=note)
    return Native(server=server, model=model, profile=fitting, widths=widths, texts=texts)


def canvas_request(
    model: str,
    prompt: Sequence[int],
    seed_canvas: Sequence[int],
    pinned: Sequence[int] = (),
    steps: int = 1,
    width: int | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """The body of a request to denoise one canvas. `width`: None where it is the served one."""
    xargs: dict[str, Any] = {
        "diffusion_seed_canvas": seed_canvas,
        "diffusion_max_steps": steps,
        "diffusion_read_only": 1,  # xargs hold numbers, so true would arrive as 1
    }
    if pinned:
        xargs["diffusion_pinned"] = pinned
    if width is not None:
        xargs["diffusion_canvas_length"] = width
    return {
        "model": model, "prompt": prompt, "max_tokens": len(seed_canvas), "logprobs": 1, "seed": seed,
        "return_token_ids": True, "skip_special_tokens": False, "vllm_xargs": xargs,
    }  # fmt: skip


async def _version(connection: Connection) -> str:
    """vLLM's version, "" if the server does not say that it is one."""
    try:
        value = await connection.json("GET", "/version")
    except Refused as refused:
        if refused.code in ("busy", "unavailable"):
            raise
        return ""
    version = value.get("version") if isinstance(value, dict) else None
    return version if isinstance(version, str) and re.match(r"\d", version) else ""


async def _widths(connection: Connection, model: str, profile: ModelProfile) -> tuple[int, ...]:
    """Canvas widths that are served, narrow ones first. Raises Unsupported or EngineError."""
    bos, remote = profile.tokens["bos"], connection.remote
    said = await _refusal(connection, canvas_request(model, [bos], [BEYOND]))
    found = re.search(r"\[0, (\d+)\)", said)
    if found and int(found[1]) != vocabulary_size(profile):
        message = f"{remote.url} serves a model with {found[1]} tokens, {profile.name} has {vocabulary_size(profile)}"
        raise EngineError(message, f"name the profile of the served model as `like` in {remote.where}", "model")
    served = remote.canvas
    if not served:
        said = await _refusal(connection, canvas_request(model, [bos], [bos]))
        exactly = re.search(r"exactly (\d+) ids", said)
        if not exactly:
            raise Unsupported(f"does not tell how wide its canvas is ({said}): write `canvas` into {remote.where}")
        served = int(exactly[1])
    narrower = [width for width in profile.layout.widths if width < served]
    if not narrower:
        return (served,)
    width = narrower[0]
    try:
        await connection.json("POST", "/v1/completions", canvas_request(model, [bos], [bos] * width, width=width))
    except Refused as refused:
        if refused.status != 400:
            raise
        return (served,)  # early versions take narrower canvases with --async-scheduling only
    return (*narrower, served)


async def _refusal(connection: Connection, body: dict[str, Any]) -> str:
    """Why the server refuses a wrong canvas. Raises Unsupported where it does not, or for another reason."""
    try:
        await connection.json("POST", "/v1/completions", body)
    except Refused as refused:
        if refused.status not in (400, 404, 405, 422):
            raise
        if "diffusion_" not in refused.said:
            raise Unsupported(f"takes no canvas ({refused.said or refused.status})") from None
        return refused.said
    raise Unsupported("ignores canvases")


def _fitting(profile: ModelProfile, length: Any, canvas: int) -> ModelProfile:
    """The profile with a prompt that fits into the context length that is served. Raises Unsupported."""
    if not isinstance(length, int) or length >= profile.layout.encoder + canvas:
        return profile
    room = length - canvas - 1
    if room < LEAST_PROMPT:
        raise Unsupported(f"has a context of {length} tokens only: raise --max-model-len")
    assert profile.chat is not None
    layout = replace(profile.layout, encoder=room, context=min(profile.layout.context, room // 8))
    return replace(profile, layout=layout, chat=replace(profile.chat, suffix=min(profile.chat.suffix, room // 8)))


async def _texts(connection: Connection, model: str, profile: ModelProfile) -> Texts:
    """Who turns text into ids. Raises Unsupported or EngineError."""
    remote, chat = connection.remote, profile.chat
    assert chat is not None
    if remote.tokenizer:
        return LocalTexts(Vocabulary(remote.tokenizer, profile.specials))
    texts = ServerTexts(connection, model, lambda i: chat.first_text <= i <= chat.last_text)
    try:
        ids = await texts.laid_out(lambda encodes: encodes.encode_line("midfill"))
        if await texts.text(ids) != "midfill":
            raise nonsense(remote)
    except Refused as refused:
        if refused.status not in (404, 405):
            raise
        raise Unsupported(f"has no /tokenize: name a local `tokenizer` in {remote.where}") from None
    return texts
