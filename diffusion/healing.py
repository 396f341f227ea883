"""Token healing: where the prefix ends inside of a token, its last characters are taken out of it, and the middle has
to begin with them. So the model sees whole tokens only and chooses the one that the author is typing.

Also which ids may stand where, so that the first ids of a slot spell those characters: all ways to spell them, and the
likeliest of them. Text and numbers only; knows no layout and no torch.
(Token healing: Lundberg 2023, "The art of prompt design". The search over spellings is the Viterbi algorithm.)
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

LIMIT = 48
"""Characters that are taken out at most."""

_UNFINISHED = re.compile(r"(?:(?<![ \t]) )?(?:(?<![\w$])[\w$]{1,40}|(?<![^\w\s])[^\w\s]{1,4})\Z|(?<=[^\s]) \Z")
"""An identifier or some punctuation, with one blank before it: such a blank belongs to the token behind it, a longer
run of blanks does not. Or that blank alone."""


@dataclass(frozen=True, kw_only=True)
class Healed:
    """A prefix without its last characters: `kept` + `taken`. Every middle begins with `forced`, which is the start of
    `taken`: all of it, or on a blank line what ends the line before. Blanks on a blank line may be written anew."""

    kept: str
    taken: str
    forced: str

    def answer(self, middle: str) -> tuple[str, int]:
        """What to insert at the cursor for a middle that begins with `forced`, and how many blanks before the cursor it
        replaces: as few as can be."""
        if middle.startswith(self.taken):
            return middle[len(self.taken) :], 0
        return middle[len(self.forced) :], len(self.taken) - len(self.forced)


def heal(prefix: str) -> Healed:
    """Take an unfinished token out of `prefix` (line ends LF); on a blank line, all blanks and newlines at its end."""
    kept = prefix.rstrip(" \t\n")
    taken = prefix[max(len(kept), len(prefix) - LIMIT) :]
    if "\n" in taken or not kept:
        return Healed(kept=prefix[: len(prefix) - len(taken)], taken=taken, forced=taken[: taken.rfind("\n") + 1])
    found = _UNFINISHED.search(prefix[-LIMIT:])
    taken = found.group() if found else ""
    return Healed(kept=prefix[: len(prefix) - len(taken)], taken=taken, forced=taken)


def unhealed(prefix: str) -> Healed:
    """The whole of `prefix`, for text that no ids can spell."""
    return Healed(kept=prefix, taken="", forced="")


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """The first ids of a slot: `exact` ones, then one that begins with `rest`, which is not empty."""

    exact: tuple[int, ...]
    rest: str


class Speller:
    """`texts`: what each id says by itself; "" for an id that may not be written. Ids that are half a character say
    U+FFFD and take no part."""

    def __init__(self, texts: Sequence[str]) -> None:
        useful = [(text, i) for i, text in enumerate(texts) if text and "�" not in text]
        self._sorted = sorted(useful)
        self._keys = [text for text, _ in self._sorted]
        self._ids: Mapping[str, int] = dict(reversed(useful))
        self._longest = max(map(len, self._keys), default=0)
        self.beginning = lru_cache(maxsize=4096)(self._beginning)

    def _beginning(self, start: str) -> tuple[int, ...]:
        """Ids whose text begins with `start`, which is not empty. Also as `beginning`, remembered."""
        first = bisect_left(self._keys, start)
        last = bisect_left(self._keys, start[:-1] + chr(ord(start[-1]) + 1)) if ord(start[-1]) < 0x10FFFF else None
        return tuple(i for _, i in self._sorted[first:last])

    def pieces(self, text: str) -> list[tuple[int, int]]:
        """(id, length) of ids whose text is a beginning of `text`, one per length; not all of `text`."""
        lengths = range(1, min(len(text), self._longest + 1))
        return [(self._ids[text[:n]], n) for n in lengths if text[:n] in self._ids]

    def shortest(self, text: str) -> int | None:
        """The fewest ids that begin with `text`, None if no ids do."""
        fewest: list[int | None] = [None] * len(text) + [0]
        for at in reversed(range(len(text))):
            if self.beginning(text[at:]):
                fewest[at] = 1
                continue
            behind = [fewest[at + n] for _, n in self.pieces(text[at:])]
            fewest[at] = min((n + 1 for n in behind if n is not None), default=None)
        return fewest[0]

    def likeliest(
        self,
        text: str,
        positions: int,
        piece: Callable[[int, int], float],
        end: Callable[[int, int], float],
    ) -> Spelling | None:
        """The spelling of `text` with the highest product of probabilities, within `positions` ids; None if there is
        none.

        piece(position, id): the log probability of an id there. end(position, at): that of the best id there whose text
        begins with text[at:], -inf if there is none.
        """
        reached: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
        best: tuple[float, Spelling] | None = None
        for position in range(positions):
            further: dict[int, tuple[float, tuple[int, ...]]] = {}
            for at, (score, exact) in reached.items():
                total = score + end(position, at)
                if total > (best[0] if best else -math.inf):
                    best = total, Spelling(exact=exact, rest=text[at:])
                for i, n in self.pieces(text[at:]):
                    longer = score + piece(position, i)
                    if at + n not in further or further[at + n][0] < longer:
                        further[at + n] = longer, (*exact, i)
            reached = further
        return best[1] if best else None
