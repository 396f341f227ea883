"""Lines of this and other texts that continue the cursor's line: guesses that cost nothing, for the engine to judge.

How likely a guess is to be right follows from how it was found; the engine weighs it against what the model says. Knows
texts and no model. Work is bounded: a text is searched at the speed of C, and few places in it are looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MIN_TYPED = 3
"""So many characters behind the indentation make a line's beginning; below, the line before has to agree as well."""
MIN_BEFORE = 4
MAX_HITS = 64
"""Places that are looked at in one text."""
MAX_CHARS = 200
MIN_CHARS = 2

AGREES = 1_000
"""Votes of a line whose neighbour above agrees, against one of another line."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """How a guess was found. `typed` and `length`: characters of the line before it, and of it. `found`: lines that
    continue the cursor's, `guesses`: how many different guesses they make; `share` of them make this one. `first`: none
    has more votes. `agrees`: the line above one of them is the one above the cursor's."""

    typed: int
    length: int
    found: int
    guesses: int
    share: float
    first: bool
    agrees: bool

    @property
    def likely(self) -> float:
        """The probability that the author goes on like this: a logistic regression on 24,000 guesses in rest-of-line
        holes of the training corpus (tests/training/fit_guesses.py), right to within 0.08 on packages held out."""
        odds = (
            -3.89
            + 0.34 * math.log1p(self.typed)
            - 1.16 * math.log(self.guesses)
            + 1.12 * self.first
            + 1.41 * self.agrees
            + 2.35 * self.share
            - 0.63 * math.log1p(self.length)
            + 1.36 * math.log1p(self.found)
        )
        return 1 / (1 + math.exp(-odds))


def continuations(text: str, offset: int, others: Sequence[str], count: int) -> dict[str, Evidence]:
    """At most `count` texts that could stand at `offset`, the likeliest first, each without a line end.

    A line counts if it begins like the cursor's line, indentation apart, and ends with what follows there; where little
    has been typed, the line before it has to be the one before the cursor's. Lines whose neighbour above agrees come
    first, then those that occur more often, then the nearest.
    """
    start = text.rfind("\n", 0, offset) + 1
    typed = text[start:offset].lstrip()
    blanks = text[start : offset - len(typed)]
    end = text.find("\n", offset)
    rest = text[offset : end if end >= 0 else len(text)].rstrip()
    above = _line_above(text, start)
    votes: Counter[str] = Counter()
    order: dict[str, int] = {}
    for source, place in ((text, offset), *((other, 0) for other in others)):
        for line, agrees in _like(source, place, typed, blanks, above):
            if source is text and line[1] == start:
                continue
            guess = line[0][len(typed) :].rstrip()
            if rest and not guess.endswith(rest):
                continue
            guess = guess[: len(guess) - len(rest)]
            if len(guess.strip()) >= MIN_CHARS and len(guess) <= MAX_CHARS:
                votes[guess] += AGREES if agrees else 1
                order.setdefault(guess, len(order))
    below = text[end + 1 :].partition("\n")[0].strip() if end >= 0 else ""
    ranked = sorted(votes, key=lambda guess: (-votes[guess], order[guess]))
    chosen = [guess for guess in ranked if not below or (typed + guess).strip() != below][:count]
    found = {guess: sum(divmod(votes[guess], AGREES)) for guess in votes}
    return {
        guess: Evidence(
            typed=len(typed),
            length=len(guess),
            found=sum(found.values()),
            guesses=len(votes),
            share=found[guess] / sum(found.values()),
            first=index == 0,
            agrees=votes[guess] >= AGREES,
        )
        for index, guess in enumerate(chosen)
    }


def _like(source: str, place: int, typed: str, blanks: str, above: str) -> Iterator[tuple[tuple[str, int], bool]]:
    """Lines of `source` that begin like `typed`, without indentation unless the cursor has none, and with their start,
    the nearest to `place` first; and whether `above` stands above them too."""
    if len(typed) >= MIN_TYPED:
        for at in _places(source, typed, place):
            start = source.rfind("\n", 0, at) + 1
            if not source[start:at].strip():
                same = bool(above) and _line_above(source, start).lstrip() == above.lstrip()
                yield (_to_end(source, at), start), same
    elif len(above.lstrip()) >= MIN_BEFORE:
        for at in _places(source, above.lstrip(), place):
            begin, end = source.rfind("\n", 0, at) + 1, source.find("\n", at)
            if end < 0 or source[begin:end].strip() != above.lstrip():
                continue
            start = end + 1
            line = _to_end(source, start)
            if line.lstrip().startswith(typed):
                lead = "" if typed or blanks else _indentation(above, source[begin:end], line)
                yield (lead + line.lstrip(), start), True


def _indentation(above: str, their_above: str, their_line: str) -> str:
    """What makes a line as deep under `above` as theirs is under their line. Only at the start of a line: where blanks
    stand before the cursor, somebody has decided."""
    ours, theirs, line = (text[: len(text) - len(text.lstrip())] for text in (above, their_above, their_line))
    if line.startswith(theirs):
        return ours + line[len(theirs) :]
    return ours[: max(0, len(ours) - (len(theirs) - len(line)))]


def _places(source: str, needle: str, place: int) -> Iterator[int]:
    """Where `needle` stands in `source`: backwards from `place`, then forwards, so many at most in each direction."""
    at = place
    for _ in range(MAX_HITS):
        at = source.rfind(needle, 0, at)
        if at < 0:
            break
        yield at
    at = place
    for _ in range(MAX_HITS):
        at = source.find(needle, at)
        if at < 0:
            break
        yield at
        at += len(needle)


def _to_end(source: str, at: int) -> str:
    """What stands from `at` to the end of its line, at most a little more than a guess may be long."""
    end = source.find("\n", at, at + 4 * MAX_CHARS)
    return source[at : end if end >= 0 else at + 4 * MAX_CHARS].rstrip()


def _line_above(source: str, start: int) -> str:
    """The last line before `start` that is not blank, if it is near, without blanks at its end."""
    near = source[max(0, start - 4 * MAX_CHARS) : start].split("\n")
    return next((line.rstrip() for line in reversed(near) if line.strip()), "")
