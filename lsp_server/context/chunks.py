"""Chunks of other files that resemble the cursor's neighbourhood.

Resemblance is the Jaccard index of the identifiers, each weighted by how rare it is among all chunks: sum of weights in
both over sum of weights in either. Knows texts; no syntax, no request.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lsp_server.documents import Document

LINES = 10
STEP = 5
"""A chunk has so many lines and the next one begins so many lines later."""
MAX_LINE = 200
"""A longer line is cut off: it is data."""
MIN_RESEMBLANCE = 0.05
BEFORE, AFTER = 1_500, 500
"""Code points around the cursor's line that count as its neighbourhood."""

_WORD = re.compile(r"[^\W\d]\w{2,}")
COMMON = frozenset(
    _WORD.findall("""
    False None True and any assert async await bool break case catch class const continue def default del elif
    else end enum except export extends false final finally float for from func function global impl implements
    import instanceof int interface lambda let match mod module mut namespace new nil none not null number object
    override package pass private protected pub public raise require return self static str string struct super
    switch then this throw throws trait true try type typeof undefined union unless unsafe use using val var void
    when where while with yield
    """)
)
"""Words of languages, not of programs."""


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Lines of a document from `first` on, and the identifiers in them."""

    first: int
    text: str
    words: frozenset[str]


def words(text: str) -> frozenset[str]:
    """The identifiers of three letters or more, without the words of the language."""
    return frozenset(_WORD.findall(text)) - COMMON


def chunks_of(document: Document) -> tuple[Chunk, ...]:
    """The chunks of a document; blank ones are none. Costs time in proportion to its length."""
    made = []
    for first in range(0, max(1, len(document.lines) - STEP), STEP):
        lines = [line.rstrip()[:MAX_LINE] for line in document.lines[first : first + LINES]]
        text = "\n".join(lines).strip("\n")
        if found := words(text):
            made.append(Chunk(first=first, text=text, words=found))
    return tuple(made)


def neighbourhood(before: str, after: str) -> frozenset[str]:
    """The identifiers around a line, of which `before` and `after` are the text on both sides. The line itself does not
    count, so that typing on it changes nothing."""
    return words(before[-BEFORE:]) | words(after[:AFTER])


def resembling(
    wanted: frozenset[str], files: Sequence[Sequence[Chunk]], chars: int, shown: Iterable[str] = ()
) -> list[tuple[int, Chunk]]:
    """The chunks most like `wanted` that fit into `chars` code points, each with the number of its file, in the order
    of the files and of their lines: the same set is always sent in the same order.

    None overlaps another one; one that stands in `shown` as it is tells nothing new.
    """
    frequency = Counter(word for chunks in files for chunk in chunks for word in chunk.words)
    total = 1 + sum(map(len, files))
    weight = {word: math.log(total / count) for word, count in frequency.items()}
    unseen = math.log(total)
    of_wanted = sum(weight.get(word, unseen) for word in wanted)
    ranked = []
    for number, chunks in enumerate(files):
        for chunk in chunks:
            both = sum(weight[word] for word in chunk.words & wanted)
            either = of_wanted + sum(weight[word] for word in chunk.words) - both
            if both > MIN_RESEMBLANCE * either:
                ranked.append((-both / either, number, chunk.first, chunk))
    ranked.sort(key=lambda entry: entry[:3])
    chosen: list[tuple[int, Chunk]] = []
    taken: set[tuple[int, int]] = set()
    known = tuple(shown)
    for _, number, first, chunk in ranked:
        if len(chunk.text) > chars or {(number, first - STEP), (number, first), (number, first + STEP)} & taken:
            continue
        if any(chunk.text in text for text in known):
            continue
        taken.add((number, first))
        chosen.append((number, chunk))
        chars -= len(chunk.text)
    return sorted(chosen, key=lambda entry: (entry[0], entry[1].first))
