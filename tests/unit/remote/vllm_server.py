"""A vLLM server with a model that knows the right middle: routes, answers and refusals as documented for vLLM 0.32.

Its tokenizer has one id for every character and the special tokens of the shipped profile, which it reads in texts, as
the real one does. Its model writes the middle, and after it the suffix, where a canvas is free: surely if the pins are
at their right places, unsurely if they are not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from local_server import Asked, Handler, LocalServer, says
from starlette.responses import JSONResponse

MODEL = "google/diffusiongemma-26B-A4B-it"
VOCABULARY = 262_144
EOS, TURN_END, FIRST_TEXT = 1, 106, 107
SPECIALS = {"<bos>": 2, "<eos>": EOS, "<|turn>": 105, "<turn|>": TURN_END, "<|channel>": 100, "<channel|>": 101}
SURE, UNSURE = -0.02, -2.5


def encode(text: str) -> list[int]:
    parts = re.split(f"({'|'.join(map(re.escape, SPECIALS))})", text)
    return [i for part in parts for i in ([SPECIALS[part]] if part in SPECIALS else map(_id, part))]


def _id(character: str) -> int:
    return FIRST_TEXT + ord(character)


def decode(ids: Sequence[int]) -> str:
    names = {i: name for name, i in SPECIALS.items()}
    return "".join(names.get(i) or chr(i - FIRST_TEXT) for i in ids)


class Vllm:
    """`middle` is right between the cursor's text and `suffix`. `canvas`: the served width. `narrow`: are narrower ones
    taken? `pins`: the xargs are known. `logprobs`, `echo`: are they told, and are pinned ids given back as they are?
    `floats`: does it write anything of use where nothing is pinned at the canvas's end?"""

    def __init__(self, middle: str = "", suffix: str = "", **more: Any) -> None:
        self.middle, self.suffix = middle, suffix
        self.canvas, self.narrow, self.pins, self.logprobs, self.echo, self.floats = 128, True, True, True, True, True
        self.version, self.vocabulary, self.length = "0.32.0", VOCABULARY, 16_384
        for name, value in more.items():
            assert hasattr(self, name)
            setattr(self, name, value)

    def routes(self) -> dict[str, Handler]:
        model = {"id": MODEL, "object": "model", "owned_by": "vllm", "max_model_len": self.length}
        said = "<middle>by chat</middle>"
        chat = {"choices": [{"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}]}
        return {
            "GET /version": says({"version": self.version}),
            "GET /v1/models": says({"object": "list", "data": [model]}),
            "POST /tokenize": lambda asked: JSONResponse(
                {"count": 0, "max_model_len": self.length, "tokens": encode(asked.body["prompt"])}
            ),
            "POST /detokenize": lambda asked: JSONResponse({"prompt": decode(asked.body["tokens"])}),
            "POST /v1/completions": self.completions,
            "POST /v1/chat/completions": says(chat),
        }

    def completions(self, asked: Asked) -> JSONResponse:
        body = asked.body
        if body["model"] != MODEL:
            return error(f"The model `{body['model']}` does not exist.", 404)
        if not self.pins:
            return JSONResponse({"choices": [{"index": 0, "text": "x", "token_ids": [200], "finish_reason": "length"}]})
        if refusal := self.refusal(body["vllm_xargs"]):
            return error(refusal)
        return JSONResponse({"id": "cmpl-1", "choices": [self.choice(body)]})

    def refusal(self, xargs: dict[str, Any]) -> str:
        width = xargs.get("diffusion_canvas_length")
        seed, pins, steps = (xargs.get(f"diffusion_{name}") for name in ("seed_canvas", "pinned", "max_steps"))
        if width is not None and not 0 < width <= self.canvas:
            return "diffusion_canvas_length must be a positive integer no larger than the served canvas."
        expected = width or self.canvas
        if not all(0 <= i < self.vocabulary for i in seed or ()):
            return f"diffusion_seed_canvas ids must be in [0, {self.vocabulary})."
        if seed is not None and len(seed) != expected:
            return f"diffusion_seed_canvas must hold exactly {expected} ids, got {len(seed)}."
        if pins is not None and seed is None:
            return "diffusion_pinned needs a diffusion_seed_canvas to hold."
        if not all(0 <= p < expected for p in pins or ()):
            return "diffusion_pinned positions must lie inside the canvas."
        if steps is not None and (type(steps) is not int or steps < 1):
            return "diffusion_max_steps must be a positive integer."
        if xargs.get("diffusion_read_only") not in (None, 0, 1):
            return "diffusion_read_only must be a boolean (or 0/1)."
        if width not in (None, self.canvas) and not self.narrow:
            return "A diffusion_canvas_length smaller than the served canvas requires --async-scheduling."
        return ""

    def choice(self, body: dict[str, Any]) -> dict[str, Any]:
        xargs = body["vllm_xargs"]
        seed, pinned = xargs["diffusion_seed_canvas"], set(xargs.get("diffusion_pinned", ()))
        start = next((at for at in range(len(seed)) if at not in pinned), 0)
        closing = "```" if self.suffix.endswith("\n") else "\n```"
        truth = [*seed[:start], *encode(self.middle + self.suffix + closing), TURN_END, *[EOS] * len(seed)][: len(seed)]
        fits = all(seed[at] == truth[at] for at in pinned) and (self.floats or len(seed) - 1 in pinned)
        written = start + len(self.middle)
        ids, scores = [], []
        for at in range(len(seed)):
            right = fits or (at < written and self.floats)
            ids.append(truth[at] if right else _id("~"))
            scores.append(SURE if right and fits else UNSURE)
            if at in pinned:
                ids[-1] = seed[at] if self.echo else _id("?")
        logprobs = {"tokens": [], "token_logprobs": scores, "top_logprobs": [], "text_offset": []}
        return {
            "index": 0, "text": "", "finish_reason": "length", "token_ids": ids,
            "logprobs": logprobs if self.logprobs else None,
        }  # fmt: skip


def error(message: str, status: int = 400) -> JSONResponse:
    said = {"message": message, "type": "BadRequestError", "param": "extra_args", "code": status}
    return JSONResponse({"error": said}, status)


def canvases(server: LocalServer) -> list[dict[str, Any]]:
    """The xargs of the canvases that were denoised for fills, in their order; those of the probe are left out."""
    return [body["vllm_xargs"] for body in server.bodies("/v1/completions") if len(body["prompt"]) > 1]
