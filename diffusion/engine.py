"""FillRequest in, events out: the only place that knows profile, layout, model and cache together.

Ids become text here, and the rules of a request (one line, so many lines) become bans on ids. Synchronous and for one
thread. Knows no queue, no HTTP, and no client beyond the name under which its caches are kept.
"""

from __future__ import annotations

import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

import torch

from diffusion import infill, layouts, model
from diffusion.api import Candidate, Cell, CellState, Cost, Draft, Event, FillRequest, Progress, Result
from diffusion.denoise import Rules
from diffusion.infill import Desk, Outcome, Tally, Task
from diffusion.kv_cache import KeyValueCache
from diffusion.layouts import Prompt
from diffusion.model import ResidentModel
from diffusion.profiles import ModelProfile, load_profile
from diffusion.stopping import Cancelled, Limits
from diffusion.vocabulary import Vocabulary, normalise

CACHES = 16
"""Document windows whose keys and values are kept: about 6 MB each with the embedded model."""

CANVASES = {"line": 2, "block": 4}
"""Slots that may follow one another before a middle counts as endless."""


class ResidentEngine:
    """A model in this process and the caches of its clients. `device` as torch names it."""

    def __init__(self, profile: ModelProfile, vocabulary: Vocabulary, resident: ResidentModel) -> None:
        self.name, self.device = profile.name, str(resident.device)
        self._profile, self._vocabulary, self._model = profile, vocabulary, resident
        self._caches: OrderedDict[tuple[str, str], KeyValueCache] = OrderedDict()
        ids = torch.arange(resident.vocabulary_size, device=resident.device)
        self._special = (ids < profile.specials) | (ids >= len(vocabulary))
        self._newline = torch.isin(ids, torch.tensor(sorted(vocabulary.newline_ids), device=resident.device))

    def fill(
        self,
        request: FillRequest,
        *,
        arrived: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """Drafts if asked for, then one result; nothing more once `cancelled` says so.

        `arrived` is time.monotonic() at the request's arrival (now, if not given). Raises EngineError.
        """
        begun = time.monotonic() if arrived is None else arrived
        prompt = layouts.native(request, self._vocabulary, self._profile)
        tally = Tally()
        desk = Desk(model=self._model, cache=self._cache(request), profile=self._profile, tally=tally)
        limits = Limits(arrived=begun, deadline_ms=request.deadline_ms, cancelled=cancelled)
        try:
            for event in infill.fill(self._task(request, prompt), desk, limits):
                if isinstance(event, Outcome):
                    yield self._result(request, prompt, event, tally, begun)
                elif request.drafts:
                    text, _ = self._text(request, prompt, event.ids)
                    yield Draft(step=tally.forwards, text=text, cells=self._cells(event) if request.cells else None)
        except Cancelled:
            return

    def _task(self, request: FillRequest, prompt: Prompt) -> Task:
        one_line = request.mode == "line"
        banned = self._special | self._newline if one_line else self._special
        layout = self._profile.layout
        return Task(
            prompt=prompt,
            rules=Rules.banning(banned, self._special | ~self._newline if prompt.starts_line else banned),
            width=layout.line_width if one_line else layout.block_width,
            one_line=one_line,
            newline=self._newline,
            candidates=request.n,
            steps=request.steps or self._profile.sampler.steps,
            canvases=CANVASES[request.mode],
            seed=request.seed,
            hints=tuple(self._ids(prompt, start) for start in request.starts),
            length=None if request.length_of is None else len(self._ids(prompt, request.length_of)),
        )

    def _ids(self, prompt: Prompt, middle: str) -> tuple[int, ...]:
        """The ids of a middle at this place, with what the prompt holds back in front."""
        return tuple(self._vocabulary.encode(prompt.held_back + normalise(middle)))

    def _cache(self, request: FillRequest) -> KeyValueCache:
        """The cache of the client's document; the least recently used one makes room."""
        key = (request.client, request.path)
        cache = self._caches.pop(key, None) or self._model.new_cache()
        self._caches[key] = cache
        while len(self._caches) > CACHES:
            self._caches.popitem(last=False)
        return cache

    def _result(self, request: FillRequest, prompt: Prompt, outcome: Outcome, tally: Tally, begun: float) -> Result:
        distinct: dict[str, Candidate] = {}
        for middle, evidence in zip(outcome.middles, infill.features(outcome.middles), strict=True):
            text, replace_before = self._text(request, prompt, middle.ids)
            if text.strip():
                candidate = Candidate(text=text, replace_before=replace_before, confidence=self._confidence(evidence))
                distinct.setdefault(text, candidate)
        cost = Cost(
            encoded=tally.encoded,
            cached=tally.cached,
            forwards=tally.forwards,
            encodes=tally.encodes,
            ms=(time.monotonic() - begun) * 1000,
        )
        # Where the likeliest middle is empty there is nothing to add; but who asks for several wants to see some.
        best, _ = self._text(request, prompt, outcome.middles[0].ids)
        candidates = tuple(distinct.values())[: request.n] if best.strip() or request.n > 1 else ()
        return Result(candidates=candidates, finish=outcome.finish, cost=cost, model=self.name)

    def _confidence(self, evidence: Sequence[float]) -> float | None:
        """The probability that a candidate is exactly what the author wrote, where the profile has a calibration."""
        calibration = self._profile.calibration
        if calibration is None or not calibration.confidence_weights:
            return None
        weighted = sum(w * x for w, x in zip(calibration.confidence_weights, evidence, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, weighted + calibration.confidence_bias)))

    def _text(self, request: FillRequest, prompt: Prompt, ids: tuple[int, ...]) -> tuple[str, int]:
        """The text of a middle and how many blanks before the cursor it replaces: as few as can be."""
        text = self._vocabulary.decode(ids)
        if request.mode == "block":
            breaks = request.max_lines + prompt.starts_line
            text = "\n".join(text.split("\n")[:breaks])
        blanks = prompt.held_back.removeprefix("\n")
        text = text.removeprefix("\n") if prompt.starts_line else text
        return (text[len(blanks) :], 0) if text.startswith(blanks) else (text, len(blanks))

    def _cells(self, draft: infill.Draft) -> tuple[Cell, ...]:
        """The slot as a client may show it: proposals where it is still masked."""
        end = draft.canvas.end
        states: list[CellState] = [
            "masked" if free else "end" if token == end else "accepted"
            for token, free in zip(draft.slot, draft.canvas.free, strict=True)
        ]
        return tuple(
            Cell(text=self._vocabulary.decode([token]), state=state)
            for token, state in zip(draft.slot, states, strict=True)
        )


def load(profile: str, on_progress: Callable[[Progress], None] = lambda _: None) -> ResidentEngine:
    """The engine for the profile of that name. Takes seconds. Raises EngineError with what to do."""
    chosen = load_profile(profile)
    # A second thread that has to wait for a busy core costs more than it gives, and the editor wants cores too.
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))
    # float32 products through bfloat16 units where the CPU has them, as in training: nearly three times as fast.
    torch.set_float32_matmul_precision("medium")
    vocabulary = Vocabulary(chosen.weights / "tokenizer.json", chosen.specials)
    return ResidentEngine(chosen, vocabulary, model.load(chosen, on_progress))
