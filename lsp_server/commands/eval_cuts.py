"""Where holes are cut: kinds of cuts as they come up in an editor, and seeded lists of them that never change.

Knows texts; nothing of where they come from, of engines and of figures. The middle of a cut is what the author wrote.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Literal

from diffusion.api import Mode

Kind = Literal["rest of line", "whole line", "argument", "block", "single-line", "random-span"]

BLOCK_LINES = (2, 6)
"""Lines of a block that is cut out, from and to."""
MAX_LINES = 12
"""Lines that an answer to a block may have: as many as an editor asks for by default."""
LONGEST_LINE = 400
LONGEST_TEXT = 100_000
SHORTEST_TEXT = 200
"""In characters. Longer lines are data or minified; in shorter files there is nothing to learn from."""
TRIES = 50
"""Random files that are looked at for one cut before a kind counts as not to be found."""

CLOSERS = {"(": ")", "[": "]"}


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A hole and what stood there. `group`: cuts with the same one are not independent of each other. The task is set
    by the kind of cut (`mode`, `max_lines`), never by the middle itself."""

    kind: Kind
    language: str
    path: str
    prefix: str
    middle: str
    suffix: str
    group: str
    mode: Mode = "line"
    max_lines: int = 1


@dataclass(frozen=True, kw_only=True)
class Text:
    """A source file, line ends LF. `language`: an LSP language id."""

    language: str
    path: str
    text: str


def usable(text: str) -> bool:
    """Whether holes are cut into a text: source code that somebody wrote, as far as its shape shows that."""
    return (
        SHORTEST_TEXT <= len(text) <= LONGEST_TEXT
        and "\0" not in text
        and max(map(len, text.split("\n"))) <= LONGEST_LINE
    )


def cut_list(texts: Sequence[Text], seed: str) -> Iterator[Cut]:
    """Cuts in `texts`, the kinds in turn, as long as places are found: the same ones for the same texts and seed. No
    place is cut twice."""
    rngs = {kind: random.Random(f"{seed}/{kind}") for kind in KINDS}
    taken: set[tuple[str, str, int, int]] = set()
    missing: set[str] = set()
    for kind in cycle(KINDS):
        if len(missing) == len(KINDS):
            return
        found = _draw(texts, kind, rngs[kind], taken) if texts and kind not in missing else None
        if found:
            yield found
        else:
            missing.add(kind)


def _draw(texts: Sequence[Text], kind: Kind, rng: random.Random, taken: set[tuple[str, str, int, int]]) -> Cut | None:
    for _ in range(TRIES):
        source = rng.choice(texts)
        span = KINDS[kind](source.text, rng)
        if span is None or (kind, source.path, *span) in taken:
            continue
        start, end = span
        taken.add((kind, source.path, start, end))
        return Cut(
            kind=kind,
            language=source.language,
            path=source.path,
            prefix=source.text[:start],
            middle=source.text[start:end],
            suffix=source.text[end:],
            group=source.path,
            mode="block" if kind == "block" else "line",
            max_lines=MAX_LINES if kind == "block" else 1,
        )
    return None


Span = tuple[int, int]
"""Characters [start, end) of a text."""


def _whole_line(text: str, rng: random.Random) -> Span | None:
    """A line that is not blank, with its indentation, without its newline."""
    place = rng.randrange(len(text))
    start = text.rfind("\n", 0, place) + 1
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return (start, end) if text[start:end].strip() else None


def _rest_of_line(text: str, rng: random.Random) -> Span | None:
    """From a column behind the indentation to the end of the line; every second time from where a word begins."""
    line = _whole_line(text, rng)
    if line is None:
        return None
    start, end = line
    first = end - len(text[start:end].lstrip())
    words = [found.start() for found in re.compile(r"\b(?=\w)").finditer(text, first, end)]
    column = rng.choice(words) if words and rng.random() < 0.5 else rng.randrange(first, end)
    return (column, end) if text[column:end].strip() else None


def _argument(text: str, rng: random.Random) -> Span | None:
    """All that stands between two brackets of a line."""
    line = _whole_line(text, rng)
    openers = [at for at in range(*line) if text[at] in CLOSERS] if line else []
    if not line or not openers:
        return None
    start, depth = rng.choice(openers), 0
    for at in range(start, line[1]):
        depth += (text[at] == text[start]) - (text[at] == CLOSERS[text[start]])
        if depth == 0:
            return (start + 1, at) if text[start + 1 : at].strip() else None
    return None


def _block(text: str, rng: random.Random) -> Span | None:
    """A few whole lines, of which the first and the last are not blank, without the last newline."""
    line = _whole_line(text, rng)
    if line is None:
        return None
    start, end = line
    for _ in range(rng.randint(*BLOCK_LINES) - 1):
        if end == len(text):
            return None
        following = text.find("\n", end + 1)
        end = len(text) if following < 0 else following
    return (start, end) if text[text.rfind("\n", 0, end) + 1 : end].strip() else None


KINDS: dict[Kind, Callable[[str, random.Random], Span | None]] = {
    "rest of line": _rest_of_line,
    "whole line": _whole_line,
    "argument": _argument,
    "block": _block,
}
