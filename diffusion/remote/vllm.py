"""The backend for DiffusionGemma on vLLM (0.32 and later): our chat layout and our canvases, denoised by the server.

A canvas is one request to /v1/completions: the prompt as token ids, and in `vllm_xargs` the seed canvas, its pins, its
width, the denoising steps, and that the canvas is to be read as it is then. Where the server takes none of this, fills
go by chat completion, and the note says so; edits always do. Which canvases, `canvases` knows.

As documented for vLLM 0.32 and as its request validation answers. Never run against a real server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from diffusion import chat_layout
from diffusion.alignment import align
from diffusion.api import Candidate, EngineError, FillRequest, Finish
from diffusion.chat_layout import ChatPrompt
from diffusion.profiles import load_profile
from diffusion.remote import vllm_probe
from diffusion.remote.bridge import Bridge
from diffusion.remote.canvases import Canvas, Middle, Plan, Read, floated, middle_of, spread, text_ids
from diffusion.remote.connection import Connection, nonsense
from diffusion.remote.forms import FORMS
from diffusion.remote.openai import write_candidates
from diffusion.remote.texts import Encodes
from diffusion.remote.vllm_probe import Native, canvas_request
from diffusion.remote.work import Served, Work, cut
from diffusion.vocabulary import normalise

LONGER = (48, 64)
"""Lengths that are tried for blocks, beside those of the profile."""

MORE_LINES = -1.0
"""What it counts for a middle, as a log probability, that lines of it are cut off: no server bans newlines."""

STARTS = 2
"""Possible middles of a request that get a canvas of their own."""


class VllmBackend:
    """Raises EngineError if the profile that `like` names is not there or has no chat layout."""

    def __init__(self, connection: Connection, bridge: Bridge) -> None:
        self._connection = connection
        remote = connection.remote
        self._profile = load_profile(remote.like)
        if self._profile.chat is None:
            message = f"the model profile {remote.where}: {remote.like!r} has no chat layout"
            raise EngineError(message, "name the profile of the served model as `like`", "model")

    async def probe(self) -> Served:
        """Raises EngineError."""
        return await vllm_probe.probe(self._connection, self._profile)

    async def write(self, work: Work, served: Served) -> Finish:
        """Raises EngineError."""
        if isinstance(served, Native) and isinstance(work.request, FillRequest):
            return await _Filling(self._connection, work, work.request, served).run()
        return await write_candidates(self._connection, work, served.model, FORMS["chat"])


@dataclass(frozen=True, kw_only=True)
class _Laid:
    """A fill in ids."""

    prompt: ChatPrompt
    forced: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]


class _Filling:
    """One fill: two rounds of canvases side by side. The best answer so far is shown at once."""

    def __init__(self, connection: Connection, work: Work, request: FillRequest, served: Native) -> None:
        self._connection, self._work, self._request, self._served = connection, work, request, served
        self._ranked: list[tuple[bool, float, Candidate]] = []

    async def run(self) -> Finish:
        request, profile, widths = self._request, self._served.profile, self._served.widths
        assert profile.chat is not None
        laid = await self._served.texts.laid_out(self._lay_out)
        plan = Plan(
            profile=profile, forced=laid.forced, after=laid.prompt.after(widths[-1]), widths=widths, seed=request.seed
        )
        block = request.mode == "block"
        lengths = spread((*profile.chat.lengths, *(LONGER if block else ())), profile.sampler.lengths)
        floating = profile.layout.block_width if block else profile.layout.line_width
        steps = request.steps or profile.sampler.steps
        canvases = plan.first(lengths, laid.starts, floating)
        found = await self._round(laid, canvases, min(steps, profile.chat.float_steps))
        best = sorted(found, key=lambda middle: -middle.score)[: max(2, request.n)]
        clamped = {canvas: middle for middle in best if middle.ids and (canvas := plan.clamped(middle))}
        # The second round makes better what is an answer already: it may fail.
        with contextlib.suppress(EngineError):
            await self._round(laid, list(clamped), steps, clamped)
        return "stop"

    def _lay_out(self, encodes: Encodes) -> _Laid:
        """No server bans ids, as token healing wants it: what is taken out of the prefix is pinned at the start."""
        request = self._request
        # The layout of a fill only encodes.
        texts, widest = cast(chat_layout.Texts, encodes), self._served.widths[-1]
        prompt = chat_layout.fill_prompt(
            request,
            texts,
            self._served.profile,
            can_spell=lambda text: len(_encoded(text, encodes)) <= widest // 4,
        )
        forced = _encoded(prompt.healed.forced, encodes)
        starts = [_encoded(prompt.healed.taken + normalise(text), encodes) for text in request.starts[:STARTS]]
        return _Laid(prompt=prompt, forced=forced, starts=tuple(start[len(forced) :] for start in starts))

    async def _round(
        self, laid: _Laid, canvases: list[Canvas], steps: int, earlier: Mapping[Canvas, Middle] | None = None
    ) -> list[Middle]:
        """Denoise canvases side by side. Raises EngineError if all of them fail."""
        self._work.forwards += steps if canvases else 0
        tasks = [asyncio.create_task(self._middle(laid, canvas, steps, earlier)) for canvas in canvases]
        try:
            done = await asyncio.gather(*tasks, return_exceptions=True)
        finally:
            for task in tasks:
                task.cancel()
        for failure in done:
            if isinstance(failure, BaseException) and (not isinstance(failure, EngineError) or not self._ranked):
                raise failure
        return [middle for middle in done if isinstance(middle, Middle)]

    async def _middle(
        self, laid: _Laid, canvas: Canvas, steps: int, earlier: Mapping[Canvas, Middle] | None
    ) -> Middle | None:
        """The middle in one canvas, once the server has denoised it; it becomes a candidate."""
        read = await self._read(laid, canvas, steps)
        if canvas.floats:
            middle = await self._floated(laid, canvas, read)
        else:
            middle = middle_of(canvas, read, self._served.profile)
        if middle is not None:
            if earlier:
                middle = replace(middle, behind=earlier[canvas].behind)
            candidate, more = self._candidate(laid, await self._served.texts.text(middle.ids))
            self._ranked.append((bool(earlier), middle.score + (MORE_LINES if more else 0.0), candidate))
            self._ranked.sort(key=lambda each: each[:2], reverse=True)
            self._work.answer(*(each[2] for each in self._ranked))
            self._work.candidates = self._work.candidates[: self._request.n]
            self._work.draft(self._ranked[0][2].text)
        return middle

    async def _floated(self, laid: _Laid, canvas: Canvas, read: Read) -> Middle | None:
        """The middle in a canvas that floats, None where the suffix does not come in it."""
        free = read.ids[canvas.start :]
        said = text_ids(free, self._served.profile)
        draft = await self._served.texts.text(said)
        if not laid.prompt.fences:
            draft = draft.partition("```")[0]
        # A newline that is pinned, where the cursor's line is blank, is not the end of a line of the middle.
        one_line = self._request.mode == "line"
        over = len(said) < len(free)
        found = align(draft, laid.prompt.suffix, one_line=one_line, first=0, over=over)
        if found is None:
            return None
        ids = await self._served.texts.laid_out(lambda encodes: _encoded(found.middle, encodes))
        return floated(canvas, read, ids, exact=found.exact)

    async def _read(self, laid: _Laid, canvas: Canvas, steps: int) -> Read:
        """Raises EngineError."""
        width = len(canvas.seed) if len(canvas.seed) < self._served.widths[-1] else None
        body = canvas_request(
            self._served.model, laid.prompt.encoder, canvas.seed, canvas.pinned, steps, width, self._request.seed
        )
        answer = await self._connection.json("POST", "/v1/completions", {**body, **self._connection.remote.extra})
        return read_of(self._connection, answer, len(canvas.seed))

    def _candidate(self, laid: _Laid, text: str) -> tuple[Candidate, bool]:
        """What is to be inserted for a middle, and whether lines are cut off that are not wanted."""
        healed = laid.prompt.healed
        middle = healed.forced + text
        shown, replace_before = healed.answer(middle if laid.prompt.fences else middle.partition("```")[0])
        shown, more = cut(shown, self._request)
        return Candidate(text=shown, replace_before=replace_before), more


def _encoded(text: str, encodes: Encodes) -> tuple[int, ...]:
    return tuple(i for piece in chat_layout.pieces(text) for i in encodes.encode_line(piece))


def read_of(connection: Connection, answer: Any, width: int) -> Read:
    """What vLLM's answer to canvas_request() says. Raises EngineError where that is not `width` ids."""
    try:
        choice = answer["choices"][0]
        ids, logprobs = choice["token_ids"][:width], choice.get("logprobs") or {}
        scores = [*(logprobs.get("token_logprobs") or []), *[None] * width][:width]
        if len(ids) == width and all(type(i) is int for i in ids) and all(s is None or s <= 1e-6 for s in scores):
            return Read(ids=tuple(ids), scores=tuple(scores))
    except (KeyError, IndexError, TypeError, AttributeError):
        pass
    raise nonsense(connection.remote)
