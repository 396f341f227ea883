"""Fills and edits of a chat model: requests become tasks for floating.py, and its ids become text again.

Knows the layout, the vocabulary and the pipeline together; knows no events and no clients.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from diffusion import chat_layout, floating, infill
from diffusion.api import EditRequest, EngineError, FillRequest
from diffusion.chat_layout import ChatPrompt
from diffusion.model import ResidentModel
from diffusion.opening import Desk
from diffusion.profiles import ModelProfile
from diffusion.ranking import Outcome
from diffusion.span_rules import Alphabet
from diffusion.spans import SpanTask, encode
from diffusion.stopping import Limits
from diffusion.vocabulary import Vocabulary, normalise

STARTS = 2
"""Starts of a request that are looked at: each is a row of the batch."""

EDIT_CANVASES = 8
"""Canvases that an edit may fill before it counts as endless."""

GROWTH = 1.25
"""How much longer than the selection what replaces it is expected to be, for the width of the canvas."""

SAMPLE = "def f(x):\n\n    return  x\n\n\n\té = ' <|x|> '\n"
"""A tokenizer that strips, normalises or knows too little shows by it."""

Answer = tuple[str, int]
"""Text, and how many blanks before the cursor it replaces."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A fill or an edit under way. `text`: what the ids of a middle say, None where they say nothing that fits."""

    events: Iterator[infill.Draft | Outcome]
    text: Callable[[tuple[int, ...]], Answer | None]


class ChatModel:
    """A chat model's vocabulary, profile and rules, made once. Raises EngineError where the vocabulary is of no use."""

    def __init__(self, profile: ModelProfile, vocabulary: Vocabulary, resident: ResidentModel) -> None:
        if vocabulary.decode(vocabulary.encode(SAMPLE)) != SAMPLE:
            message = f"the tokenizer in {profile.weights} does not give code back as it was"
            raise EngineError(message, "take the tokenizer.json that came with the weights", "model")
        self._profile, self._vocabulary = profile, vocabulary
        self._alphabet = Alphabet(vocabulary.texts, resident.vocabulary_size, profile, resident.device)

    def fill(self, request: FillRequest, desk: Desk, limits: Limits) -> Begun:
        """Begin a fill; nothing is computed before its events are asked for."""
        prompt = chat_layout.fill_prompt(request, self._vocabulary, self._profile, self._can_spell)
        one_line, layout = request.mode == "line", self._profile.layout
        lines = request.max_lines if request.mode == "block" else 1

        def ids(middle: str) -> tuple[int, ...]:
            return encode(prompt.healed.taken + normalise(middle), self._vocabulary)

        task = SpanTask(
            prompt=prompt,
            texts=self._vocabulary,
            alphabet=self._alphabet,
            width=layout.line_width if one_line else layout.block_width,
            one_line=one_line,
            candidates=request.n,
            steps=request.steps or self._profile.sampler.steps,
            seed=request.seed,
            hints=tuple(ids(start) for start in request.starts if start.strip() and start.count("\n") < lines)[:STARTS],
            length=None if request.length_of is None else len(ids(request.length_of)),
        )
        return Begun(events=floating.fill(task, desk, limits), text=lambda middle: self._text(prompt, middle, lines))

    def edit(self, request: EditRequest, desk: Desk, limits: Limits) -> Begun:
        """Begin an edit. Raises BadRequest where the selection or the instruction is too long for the model."""
        prompt = chat_layout.edit_prompt(request, self._vocabulary, self._profile, self._can_spell)
        selected = normalise(request.selected)
        expected = int(GROWTH * len(encode(selected, self._vocabulary))) + self._profile.layout.pins
        widths = self._profile.layout.widths
        width = next((width for width in widths if width >= expected), widths[-1])
        longer = 1 if width <= self._profile.layout.line_width else 2
        task = SpanTask(
            prompt=prompt,
            texts=self._vocabulary,
            alphabet=self._alphabet,
            width=width,
            one_line=False,
            candidates=1,
            steps=request.steps or longer * self._profile.sampler.steps,
            canvases=EDIT_CANVASES,
            seed=request.seed,
        )
        ends_line = selected.endswith("\n") and prompt.open_end

        def text(middle: tuple[int, ...]) -> Answer | None:
            answer = self._text(prompt, middle, None)
            return (answer[0] + "\n", 0) if answer and ends_line and not answer[0].endswith("\n") else answer

        return Begun(events=floating.fill(task, desk, limits), text=text)

    def _text(self, prompt: ChatPrompt, middle: tuple[int, ...], lines: int | None) -> Answer | None:
        """What to insert for a middle, at most so many lines of it."""
        text, forced = self._vocabulary.decode(middle), prompt.healed.forced
        if not text.startswith(forced):
            return None
        if lines is not None:
            text = forced + "\n".join(text[len(forced) :].split("\n")[:lines])
        return prompt.healed.answer(text)

    def _can_spell(self, text: str) -> bool:
        return self._alphabet.speller.shortest(text) is not None
