"""Which canvases a vLLM server is asked to denoise for one fill, and which of its answers is the middle.

    [ forced, pinned ][ free: the middle ][ the first of the suffix, free ][ more of the suffix, pinned ]

The length of the middle is unknown. Several lengths are tried side by side; the first ids of the suffix are left free
in them, and the length is right where the model restores them: they were not to be seen, so nothing leaks. One more
canvas is free to its end: the model writes the middle and goes on into the suffix, where `align` finds it. The best are
denoised again from where they are, with the whole suffix pinned. (Float, align, clamp: chat_layout's other half,
with what a server offers: it bans no ids, and one answer is all that it tells.) Ids and numbers only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from diffusion.profiles import ModelProfile

LEAST_PINS = 8
"""Ids of the suffix that are pinned behind a middle of known length, at least."""

MATCHED = 4
"""Ids behind the middle of a floating canvas whose log probabilities count."""

WRONG = -6.0
"""What an id of the suffix that is not restored counts, as a log probability, at least."""
UNALIGNED = -3.0
"""What the end counts where a special id ends the middle, or nothing of the suffix follows it."""
EMPTY = -1.0
"""What an empty middle counts: it has no ids to count."""


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """A canvas to be sent: `seed` ids, of which those at `pinned` stay. Free are `middle` positions from `start`, then
    `restored` ids of the suffix, which `expected` has all of. A canvas that floats is all middle from `start` on."""

    seed: tuple[int, ...]
    pinned: tuple[int, ...]
    start: int
    middle: int
    expected: tuple[int, ...]
    restored: int = 0

    @property
    def floats(self) -> bool:
        return self.start + self.middle == len(self.seed)


@dataclass(frozen=True, kw_only=True)
class Read:
    """What a canvas has become: an id per position and its log probability, None where the server tells none."""

    ids: tuple[int, ...]
    scores: tuple[float | None, ...]


@dataclass(frozen=True, kw_only=True)
class Middle:
    """A possible middle and how good it is: the mean log probabilities of its own ids and of those behind it."""

    ids: tuple[int, ...]
    own: float
    behind: float

    @property
    def score(self) -> float:
        return self.own + self.behind


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What the canvases of one fill have in common. `forced`: ids that every middle begins with, fewer than the widest
    canvas has; `after`: what follows the middle, as many ids as any canvas needs; `widths`: of canvases that the server
    takes, narrow ones first."""

    profile: ModelProfile
    forced: tuple[int, ...]
    after: tuple[int, ...]
    widths: tuple[int, ...]
    seed: int

    def first(self, lengths: Sequence[int], starts: Sequence[tuple[int, ...]], floating: int) -> list[Canvas]:
        """Canvases for each length, for each possible middle, and one that floats, `floating` wide if it can be."""
        noise = random.Random(self.seed)
        middles = [self._noise(noise, length) for length in lengths] + [tuple(start) for start in starts]
        chat = self.profile.chat
        assert chat is not None
        made = [self._canvas(middle, self._noise(noise, chat.restored)) for middle in middles]
        least = max(floating, len(self.forced) + LEAST_PINS)
        width = next((width for width in self.widths if width >= least), self.widths[-1])
        free = width - len(self.forced)
        floats = Canvas(
            seed=(*self.forced, *self._noise(noise, free)),
            pinned=tuple(range(len(self.forced))),
            start=len(self.forced),
            middle=free,
            expected=self.after,
        )
        return [*filter(None, made), floats]

    def clamped(self, middle: Middle) -> Canvas | None:
        """A canvas that goes on from a middle, the whole suffix pinned; None if there is no room for it."""
        return self._canvas(middle.ids, ())

    def _canvas(self, middle: Sequence[int], restored: Sequence[int]) -> Canvas | None:
        start, end = len(self.forced), len(self.forced) + len(middle)
        least = end + len(restored) + LEAST_PINS
        width = next((width for width in self.widths if width >= least), 0)
        behind = self.after[len(restored) : width - end]
        if not width or end + len(restored) + len(behind) < width:
            return None
        return Canvas(
            seed=(*self.forced, *middle, *restored, *behind),
            pinned=(*range(start), *range(end + len(restored), width)),
            start=start,
            middle=len(middle),
            expected=self.after,
            restored=len(restored),
        )

    def _noise(self, noise: random.Random, count: int) -> tuple[int, ...]:
        return tuple(noise.randrange(vocabulary_size(self.profile)) for _ in range(count))


def middle_of(canvas: Canvas, read: Read, profile: ModelProfile) -> Middle:
    """The middle in a canvas of known length, and its score."""
    end = canvas.start + canvas.middle
    ids = text_ids(read.ids[canvas.start : end], profile)
    wanted = canvas.expected[: canvas.restored]
    behind = _mean([_restored(*each) for each in zip(wanted, read.ids[end:], read.scores[end:], strict=False)])
    behind += UNALIGNED if len(ids) < canvas.middle else 0.0
    return Middle(ids=ids, own=_own(canvas, read, len(ids)), behind=behind)


def floated(canvas: Canvas, read: Read, ids: tuple[int, ...], *, exact: bool) -> Middle:
    """The middle `ids` at the start of a floating canvas, and its score; `exact`: the suffix follows it as it is."""
    end = canvas.start + len(ids)
    behind = _mean(read.scores[end : end + MATCHED]) if exact else UNALIGNED
    return Middle(ids=ids, own=_own(canvas, read, len(ids)), behind=behind)


def text_ids(ids: tuple[int, ...], profile: ModelProfile) -> tuple[int, ...]:
    """`ids` before the first one that is no text."""
    chat = profile.chat
    assert chat is not None
    return ids[: next((at for at, i in enumerate(ids) if not chat.first_text <= i <= chat.last_text), len(ids))]


def vocabulary_size(profile: ModelProfile) -> int:
    """Of the model that the profile describes."""
    assert profile.chat is not None
    return int(profile.architecture.get("vocab_size", profile.chat.last_text + 1))


def _restored(wanted: int, got: int, score: float | None) -> float:
    """The log probability of the wanted id, as far as the likeliest one tells: no more than it leaves to the others."""
    if got == wanted:
        return score or 0.0
    return WRONG if score is None else max(WRONG, min(-1.0, math.log(max(1e-9, 1 - math.exp(score)))))


def _own(canvas: Canvas, read: Read, count: int) -> float:
    return _mean(read.scores[canvas.start : canvas.start + count]) if count else EMPTY


def spread(lengths: Sequence[int], count: int) -> list[int]:
    """`count` of the lengths, evenly, with the first and the last."""
    if count >= len(lengths):
        return list(lengths)
    step = (len(lengths) - 1) / max(1, count - 1)
    return [lengths[round(index * step)] for index in range(count)]


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0
