"""FillRequest in, events out: the only place that knows profile, layout, model and cache together.

Ids become text here, and the rules of a request (one line, so many lines) become bans on ids. Synchronous and for one
thread. Knows no queue, no HTTP, and no client beyond the name under which its caches are kept.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain, repeat

import torch

from diffusion import blocks, infill, layouts, left_to_right, model, native_memory, ranking
from diffusion.api import (
    Candidate,
    Cell,
    CellState,
    Cost,
    Draft,
    EditRequest,
    EngineError,
    Event,
    FillRequest,
    Progress,
    Result,
    Trace,
)
from diffusion.cache_pool import CachePool
from diffusion.chat import Answer, Begun, ChatModel
from diffusion.copying import Copies
from diffusion.denoise import Rules
from diffusion.layouts import Prompt
from diffusion.model import ResidentModel
from diffusion.model_files import is_lack_of_memory
from diffusion.opening import Desk, Tally, Task
from diffusion.profiles import ModelProfile, chat_profiles, load_profile
from diffusion.ranking import Outcome
from diffusion.spelling import Typed
from diffusion.stopping import Cancelled, Limits
from diffusion.vocabulary import Vocabulary, normalise
from grammars.brackets import balance, string_at_start

CANVASES = {"line": 2, "block": 4}
"""Slots that may follow one another before a middle counts as endless."""

STARTS = 4
"""Starts of a request that are looked at: each is a row of the batch."""


class ResidentEngine:
    """A model in this process and the caches of its clients. `device` in words, with the reason for it."""

    def __init__(self, profile: ModelProfile, vocabulary: Vocabulary, resident: ResidentModel) -> None:
        self.name, self.device = profile.name, resident.place
        self._profile, self._vocabulary, self._model = profile, vocabulary, resident
        self._caches = CachePool(resident.new_cache, round(profile.cache_mb * 1e6))
        self._chat = ChatModel(profile, vocabulary, resident) if profile.chat else None
        self._typed = None if profile.chat else Typed(vocabulary.texts, resident.vocabulary_size, resident.device)
        self._every = ids = torch.arange(resident.vocabulary_size, device=resident.device)
        self._special = (ids < profile.specials) | (ids >= len(vocabulary))
        self._newline = torch.isin(ids, torch.tensor(sorted(vocabulary.newline_ids), device=resident.device))

    def fill(
        self,
        request: FillRequest | EditRequest,
        *,
        arrived: float | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> Iterator[Event]:
        """Drafts if asked for, then one result; nothing more once `cancelled` says so.

        `arrived` is time.monotonic() at the request's arrival (now, if not given). Raises EngineError; after one for
        lack of memory the caches are empty and the engine goes on.
        """
        arrived = time.monotonic() if arrived is None else arrived
        try:
            yield from self._events(
                request, Limits(arrived=arrived, deadline_ms=request.deadline_ms, cancelled=cancelled)
            )
            return
        except Cancelled:
            return
        except (MemoryError, RuntimeError) as error:
            if not is_lack_of_memory(error):
                raise
        finally:
            self._caches.settle()
        # Only here, for the error's traceback holds the tensors of the step that failed.
        self._caches.clear()
        if self._model.device.type == "cuda":
            torch.cuda.empty_cache()
        hint = "close other programs, or take a smaller model: `midfill model list`"
        raise EngineError("there was not enough memory for this request", hint, "model")

    def forget(self, client: str) -> None:
        """Give up what is kept for a client that has gone."""
        self._caches.forget(client)

    def rest(self) -> None:
        """Nothing to do for a while: memory that is only kept for the next request goes back to the system."""
        native_memory.give_back()

    def _events(self, request: FillRequest | EditRequest, limits: Limits) -> Iterator[Event]:
        queued_ms = (time.monotonic() - limits.arrived) * 1000
        tally = Tally()
        # An edit's prompt has little in common with a fill's, so that it has a cache of its own.
        cache = self._caches.take((request.client, request.path, type(request).__name__))
        desk = Desk(model=self._model, cache=cache, profile=self._profile, tally=tally)
        work = self._begin(request, desk, limits)
        for event in work.events:
            if isinstance(event, Outcome):
                cost = Cost(
                    encoded=tally.encoded,
                    cached=tally.cached,
                    forwards=tally.forwards,
                    encodes=tally.encodes,
                    ms=(time.monotonic() - limits.arrived) * 1000,
                    queued_ms=queued_ms,
                )
                yield self._result(request, work, event, cost, tally)
            elif request.drafts and (answer := work.text(event.ids)):
                cells = self._cells(event) if isinstance(request, FillRequest) and request.cells else None
                yield Draft(step=tally.forwards, text=answer[0], cells=cells)

    def _begin(self, request: FillRequest | EditRequest, desk: Desk, limits: Limits) -> Begun:
        """Lay out a request as the profile's layout has it."""
        if self._chat is not None:
            chat = self._chat
            return (
                chat.fill(request, desk, limits)
                if isinstance(request, FillRequest)
                else chat.edit(request, desk, limits)
            )
        if isinstance(request, EditRequest):
            message = f"the model {self.name} completes code and takes no instructions, so it cannot edit"
            hint = f"choose a chat model: {', '.join(chat_profiles())}, or a server; see `midfill model list`"
            raise EngineError(message, hint, "unsupported")
        prompt = self._prompt(request)
        task = self._task(request, prompt)
        events: Iterator[infill.Draft | Outcome] = infill.fill(task, desk, limits)
        if request.decoding == "left-to-right":
            events = left_to_right.fill(task, desk, limits)
        return Begun(events=events, text=lambda ids: self._text(request, prompt, ids))

    def _prompt(self, request: FillRequest) -> Prompt:
        assert self._typed is not None
        return layouts.native(request, self._vocabulary, self._profile, self._typed.can_spell)

    def _task(self, request: FillRequest, prompt: Prompt) -> Task:
        one_line = request.mode == "line"
        banned = self._special | self._newline if one_line else self._special
        width = self._profile.layout.line_width if one_line else self._profile.layout.block_width
        hints = self._hints(request, prompt, width)
        at_first = self._no_start(request, prompt) if prompt.starts_line else banned
        if self._typed is not None and prompt.forced:
            at_first = self._typed.banned_at_first(prompt.forced)
        return Task(
            prompt=prompt,
            rules=Rules.banning(banned, at_first),
            width=width,
            one_line=one_line,
            newline=self._newline,
            candidates=request.n,
            steps=request.steps or self._profile.sampler.steps,
            canvases=CANVASES[request.mode],
            corrections=self._profile.sampler.corrections if request.corrections is None else request.corrections,
            seed=request.seed,
            hints=tuple(hints),
            known=hints,
            drafted=self._profile.sampler.drafted,
            copies=self._copies(request, prompt),
            whole=self._whole(request, prompt) if one_line else Task.whole,
            speller=self._typed,
            length=None if request.length_of is None else len(self._ids(prompt, request.length_of)),
        )

    def _no_start(self, request: FillRequest, prompt: Prompt) -> torch.Tensor:
        """(V,) bool: ids that no line at this place begins with."""
        blanks: frozenset[str] | None = frozenset({prompt.held_back.removeprefix("\n")})
        if not request.keep_indent:
            blanks = blocks.indentations(normalise(request.prefix), normalise(request.suffix), request.language)
        if blanks is None:
            return self._special | ~self._newline
        lines = [f"\n{indent}x" for indent in blanks] + ["\n"] * (request.mode == "block")
        starts = [self._vocabulary.encode_line(line)[0] for line in lines]
        return ~torch.isin(self._every, torch.tensor(starts, device=self._every.device))

    def _whole(self, request: FillRequest, prompt: Prompt) -> Callable[[tuple[int, ...]], bool]:
        prefix, suffix = normalise(request.prefix), normalise(request.suffix)
        line = prefix.rfind("\n") + 1
        rewritten = prompt.held_back and not prompt.forced
        typed = "" if rewritten else prefix[line:].removesuffix(prompt.forced)
        quote = string_at_start(prefix)

        @cache
        def defects(written: str) -> int:
            text = prefix[:line] + typed + written + suffix
            return balance(text, request.language, quote=quote, typed=line).defects

        @cache
        def whole(ids: tuple[int, ...]) -> bool:
            written = self._vocabulary.decode(ids).removeprefix("\n")
            return blocks.whole(typed + written, prefix[:line], suffix, request.language) and (
                defects(written) <= defects(prompt.forced)
            )

        return whole

    def _copies(self, request: FillRequest, prompt: Prompt) -> Copies | None:
        if not self._profile.copying:
            return None
        after = () if request.decoding == "left-to-right" else prompt.after
        return Copies(prompt.before, after, self._profile.copying)

    def _ids(self, prompt: Prompt, middle: str) -> tuple[int, ...]:
        """The ids of a middle at this place, with what the prompt holds back in front."""
        return tuple(self._vocabulary.encode(prompt.held_back + normalise(middle)))

    def _hints(self, request: FillRequest, prompt: Prompt, width: int) -> dict[tuple[int, ...], float]:
        """The ids of the first starts that can be an answer, not empty, within the slot and the request's lines; and
        how likely they are."""
        lines = request.max_lines if request.mode == "block" else 1
        fitting: dict[tuple[int, ...], float] = {}
        for start, likely in zip(request.starts, chain(request.likely, repeat(0.0)), strict=False):
            text = normalise(start)
            ids = self._ids(prompt, text) if text.strip() and text.count("\n") < lines else ()
            if 0 < len(ids) < width and (len(fitting) < STARTS or ids in fitting):
                fitting[ids] = max(likely, fitting.get(ids, 0.0))
        return fitting

    def _result(
        self, request: FillRequest | EditRequest, work: Begun, outcome: Outcome, cost: Cost, tally: Tally
    ) -> Result:
        calibration = self._profile.calibration
        distinct: dict[str, Candidate] = {}
        answers = [work.text(middle.ids) for middle in outcome.middles]
        by_itself = isinstance(request, FillRequest) and request.decoding == "left-to-right"
        for answer, evidence in zip(answers, ranking.features(outcome.middles), strict=True):
            if answer and (answer[0].strip() or isinstance(request, EditRequest)):
                text, replace_before = answer
                sure = self._confidence(evidence, by_itself=by_itself)
                candidate = Candidate(text=text, replace_before=replace_before, confidence=sure)
                distinct.setdefault(text, candidate)
        if isinstance(request, EditRequest):
            # Half of an edit would lose the other half of the selection.
            candidates = tuple(distinct.values())[: outcome.finish == "stop"]
        else:
            # Where the likeliest middle is empty there is nothing to add. But who asks for several wants to see some,
            # and where there is a confidence, it tells what the others are worth.
            best = answers[0] and answers[0][0].strip()
            candidates = tuple(distinct.values())[: request.n] if best or request.n > 1 or calibration else ()
        return Result(
            candidates=candidates,
            finish=outcome.finish,
            cost=cost,
            model=self.name,
            gate=None if calibration is None else calibration.gate,
            trace=_trace(work, outcome, answers, tally) if isinstance(request, FillRequest) and request.trace else None,
        )

    def _confidence(self, evidence: Sequence[float], *, by_itself: bool) -> float | None:
        """The probability that a candidate is exactly what the author wrote, where the profile has a calibration. That
        is not for what the encoder writes `by_itself`: there it is the candidate's probability as it stands."""
        calibration = self._profile.calibration
        if calibration is None or not calibration.confidence_weights:
            return None
        if by_itself:
            return math.exp(evidence[0])
        weighted = sum(w * x for w, x in zip(calibration.confidence_weights, evidence, strict=True))
        return 1 / (1 + math.exp(-max(-30.0, weighted + calibration.confidence_bias)))

    def _text(self, request: FillRequest, prompt: Prompt, ids: tuple[int, ...]) -> tuple[str, int] | None:
        """The text of a middle and how many blanks before the cursor it replaces: as few as can be. None where it does
        not begin as it has to."""
        text = self._vocabulary.decode(ids)
        if not text.startswith(prompt.forced):
            return None
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


def _trace(work: Begun, outcome: Outcome, answers: Sequence[Answer | None], tally: Tally) -> Trace:
    """`answers`: what the middles of the outcome say."""

    def said(answer: Answer | None) -> Candidate:
        text, before = answer or ("", 0)
        return Candidate(text=text, replace_before=before)

    batch = tuple(map(said, answers))
    # An empty middle is no answer where there is another.
    best = next((candidate for candidate in batch if candidate.text.strip()), batch[0])
    first, uncorrected = (
        said(work.text(middle.ids)) if middle else best for middle in (outcome.first, outcome.uncorrected)
    )
    return Trace(
        first=first,
        uncorrected=uncorrected if uncorrected.text.strip() else best,
        batch=batch,
        renoised=tally.renoised,
        revised=tally.revised,
    )


def load(profile: str, on_progress: Callable[[Progress], None] = lambda _: None) -> ResidentEngine:
    """The engine for the profile of that name. Takes seconds. Raises EngineError with what to do."""
    chosen = load_profile(profile)
    model.require_weights(chosen)
    native_memory.bound_products()
    # A second thread that has to wait for a busy core costs more than it gives, and the editor wants cores too.
    torch.set_num_threads(max(1, min(4, (os.cpu_count() or 1) // 2)))
    # float32 products through bfloat16 units where the CPU has them, as in training: nearly three times as fast.
    torch.set_float32_matmul_precision("medium")
    vocabulary = Vocabulary(chosen.weights / "tokenizer.json", chosen.specials)
    return ResidentEngine(chosen, vocabulary, model.load(chosen, on_progress))
