"""From a request to the task of a fill, and from its ids to text, in the native layout.

The rules of a request (one line, so many lines) and what the text around the cursor rules out become bans on ids; lines
found nearby become hints. Knows profile, vocabulary and tensors; knows no model and no cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import chain, repeat

import torch

from diffusion import blocks, layouts
from diffusion.api import FillRequest
from diffusion.copying import Copies
from diffusion.denoise import Rules
from diffusion.layouts import Prompt
from diffusion.opening import Task
from diffusion.profiles import ModelProfile
from diffusion.spelling import Typed
from diffusion.vocabulary import Vocabulary, normalise
from grammars.brackets import balance, string_at_start

CANVASES = {"line": 2, "block": 4}
"""Slots that may follow one another before a middle counts as endless."""

STARTS = 4
"""Starts of a request that are looked at: each is a row of the batch."""


class Tasks:
    """For one model whose vocabulary has `size` ids, some of which its tokenizer may not know."""

    def __init__(self, profile: ModelProfile, vocabulary: Vocabulary, size: int, device: torch.device) -> None:
        self._profile, self._vocabulary = profile, vocabulary
        self._typed = Typed(vocabulary.texts, size, device)
        self._every = ids = torch.arange(size, device=device)
        self._special = (ids < profile.specials) | (ids >= len(vocabulary))
        self._newline = torch.isin(ids, torch.tensor(sorted(vocabulary.newline_ids), device=device))

    def task(self, request: FillRequest) -> Task:
        """What `request` wants to be filled, with its prompt."""
        prompt = layouts.native(request, self._vocabulary, self._profile, self._typed.can_spell)
        one_line = request.mode == "line"
        banned = self._special | self._newline if one_line else self._special
        width = self._profile.layout.line_width if one_line else self._profile.layout.block_width
        hints = self._hints(request, prompt, width)
        at_first = self._no_start(request, prompt) if prompt.starts_line else banned
        if prompt.forced:
            at_first = self._typed.banned_at_first(prompt.forced)
        return Task(
            prompt=prompt,
            rules=Rules.banning(banned, at_first),
            width=width,
            one_line=one_line,
            newline=self._newline,
            ends=self._ends(request),
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
            length=None if request.length_of is None else len(self.ids(prompt, request.length_of)),
        )

    def _ends(self, request: FillRequest) -> torch.Tensor:
        """(V,) bool: newlines, the end of the file, and what the cursor's line goes on with, a closing bracket, say, or
        more behind that."""
        ends = self._newline.clone()
        ends[self._profile.tokens["eof"]] = True
        rest = normalise(request.suffix).partition("\n")[0].rstrip()
        if rest and request.decoding != "left-to-right":
            first = self._vocabulary.encode_line(rest)[0]
            ends[first] = True
            ends[self._typed.completing(self._vocabulary.texts[first])] = True
        return ends

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

    def ids(self, prompt: Prompt, middle: str) -> tuple[int, ...]:
        """The ids of a middle at this place, with what the prompt holds back in front."""
        return tuple(self._vocabulary.encode(prompt.held_back + normalise(middle)))

    def _hints(self, request: FillRequest, prompt: Prompt, width: int) -> dict[tuple[int, ...], float]:
        """The ids of the first starts that can be an answer, not empty, within the slot and the request's lines; and
        how likely they are."""
        lines = request.max_lines if request.mode == "block" else 1
        fitting: dict[tuple[int, ...], float] = {}
        for start, likely in zip(request.starts, chain(request.likely, repeat(0.0)), strict=False):
            text = normalise(start)
            ids = self.ids(prompt, text) if text.strip() and text.count("\n") < lines else ()
            if 0 < len(ids) < width and (len(fitting) < STARTS or ids in fitting):
                fitting[ids] = max(likely, fitting.get(ids, 0.0))
        return fitting

    def text(self, request: FillRequest, prompt: Prompt, ids: tuple[int, ...]) -> tuple[str, int] | None:
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
