"""FillRequest in, events out: the only place that knows profile, layout, model and cache together.

Synchronous and for one thread. Knows no queue, no HTTP, and no client beyond the name under which its caches are kept.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence

import torch

from diffusion import infill, left_to_right, model, native_memory, ranking
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
from diffusion.model import ResidentModel
from diffusion.model_files import is_lack_of_memory
from diffusion.opening import Desk, Tally
from diffusion.profiles import ModelProfile, chat_profiles, load_profile
from diffusion.ranking import Outcome
from diffusion.stopping import Cancelled, Limits
from diffusion.tasks import Tasks
from diffusion.vocabulary import Vocabulary


class ResidentEngine:
    """A model in this process and the caches of its clients. `device` in words, with the reason for it."""

    def __init__(self, profile: ModelProfile, vocabulary: Vocabulary, resident: ResidentModel) -> None:
        self.name, self.device = profile.name, resident.place
        self._profile, self._vocabulary, self._model = profile, vocabulary, resident
        self._caches = CachePool(resident.new_cache, round(profile.cache_mb * 1e6))
        self._chat = ChatModel(profile, vocabulary, resident) if profile.chat else None
        size, device = resident.vocabulary_size, resident.device
        self._tasks = None if profile.chat else Tasks(profile, vocabulary, size, device)

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

    @property
    def tasks(self) -> Tasks:
        """Of a model with the native layout: what lays out its requests."""
        assert self._tasks is not None
        return self._tasks

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
        tasks, task = self.tasks, self.tasks.task(request)
        events: Iterator[infill.Draft | Outcome] = infill.fill(task, desk, limits)
        if request.decoding == "left-to-right":
            events = left_to_right.fill(task, desk, limits)
        return Begun(events=events, text=lambda ids: tasks.text(request, task.prompt, ids))

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
