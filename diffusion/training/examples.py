"""Training examples: a window of a source file, cuts in it, and for every cut a canvas.

A window is tokenised in pieces that end at the cuts, since what follows a cursor may begin inside of a token. The
canvas of a cut has a slot (the middle, then end-of-middle to its end) and the head of the suffix, as layouts.py lays
them out to serve.
Two kinds of canvas: "open", where the length is unknown and the slot's width says nothing about it, and "closed",
where the end is already committed and the slot has shrunk. Knows tokens and numpy; knows no torch and no files.
"""

from __future__ import annotations

import random
import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from diffusion.layouts import context_text, encoder_head, held_back
from diffusion.profiles import ModelProfile
from diffusion.vocabulary import Vocabulary

CHARS_PER_WINDOW = 2400
"""More text than a window's tokens need (about 3.5 characters each), so that late cuts find their middle."""
CANVAS_ROWS = 512
END_WEIGHT = 0.25
"""Weight in the loss of an end-of-middle after the first one, which has weight 1."""

IMPORT = re.compile(r"^(?:import\b|from\s+\S+\s+import\b|export\s.*\bfrom\s|(?:const|let|var)\s.*\brequire\().*", re.M)
HEADER = re.compile(
    r"^[ \t]*(?:async\s+def|def|class|(?:export\s+)?(?:default\s+)?(?:abstract\s+)?"
    r"(?:async\s+)?(?:function|class|interface|enum)|(?:public|private|protected|static)\b.*\().*",
    re.M,
)


@dataclass(frozen=True, kw_only=True)
class Source:
    """One file of the corpus, line ends LF."""

    language: str
    path: str
    text: str


@dataclass(frozen=True)
class Span:
    """A middle, in characters of the window's text: [start, end)."""

    start: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One packed sequence of S rows; see network.Packed. targets and weights: (S,), weight 0 where nothing is learned.
    Window rows carry the next token, slot rows their own; `slot` marks the latter."""

    ids: NDArray[np.int64]
    positions: NDArray[np.int64]
    segment: NDArray[np.int64]
    cut: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: NDArray[np.float32]
    slot: NDArray[np.bool_]
    text_tokens: int


def make(source: Source, rng: random.Random, vocabulary: Vocabulary, profile: ModelProfile, canvases: bool) -> Rows:
    """One random example of `source`: a window, and canvases beside it if asked for."""
    start = _window_start(source.text, rng)
    text = source.text[start : start + CHARS_PER_WINDOW]
    ends_file = start + len(text) >= len(source.text)
    spans = [span for span in (random_span(text, rng) for _ in range(20)) if span] if canvases else []
    ids, at = _tokenise(text, spans, vocabulary)
    if ends_file:
        ids.append(profile.tokens["eof"])
    head = encoder_head(profile, source.language, _context(source, start, rng, vocabulary, profile), start == 0)
    return _pack(head, ids, [(at[span.start], at[span.end]) for span in spans], rng, profile, canvases)


def random_span(text: str, rng: random.Random) -> Span | None:
    """A middle as an editor or a benchmark would cut it, with what a prompt holds back; None where the text has no such
    place."""
    (kind,) = rng.choices(list(SPAN_KINDS), weights=[share for share, _ in SPAN_KINDS.values()])
    span = SPAN_KINDS[kind][1](text, rng)
    return span and Span(span.start - len(held_back(text[: span.start])), span.end)


def rest_of_line(text: str, rng: random.Random) -> Span | None:
    """From a column of a line to its end, half the time from where a word or an argument begins."""
    line = _random_line(text, rng)
    if line is None:
        return None
    body = text[line.start : line.end]
    indent = len(body) - len(body.lstrip())
    borders = [m.start() for m in re.finditer(r"\b|(?<=[(\[{.,= ])", body) if m.start() >= indent]
    column = rng.choice(borders) if borders and rng.random() < 0.5 else rng.randint(indent, len(body))
    return Span(line.start + column, line.end)


def _whole_line(text: str, rng: random.Random) -> Span | None:
    return _random_line(text, rng)


def _lines(text: str, rng: random.Random) -> Span | None:
    first = _random_line(text, rng)
    if first is None:
        return None
    end = first.end
    for _ in range(rng.randint(1, 5)):
        following = text.find("\n", end + 1)
        end = following if following >= 0 else len(text)
    return Span(first.start, max(first.end, first.start + len(text[first.start : end].rstrip())))


def _brackets(text: str, rng: random.Random) -> Span | None:
    closers = {"(": ")", "[": "]", "{": "}"}
    opens = [m.start() for m in re.finditer(r"[(\[{]", text)]
    if not opens:
        return None
    start = rng.choice(opens)
    opener, closer, depth = text[start], closers[text[start]], 0
    for index in range(start, min(len(text), start + 300)):
        depth += (text[index] == opener) - (text[index] == closer)
        if depth == 0:
            return Span(start + 1, index)
    return None


def _word(text: str, rng: random.Random) -> Span | None:
    words = list(re.finditer(r"\w+(?:\.\w+)*", text))
    if not words:
        return None
    word = rng.choice(words)
    return Span(rng.randint(word.start(), word.end() - 1) if rng.random() < 0.5 else word.start(), word.end())


def _characters(text: str, rng: random.Random) -> Span | None:
    start = rng.randint(0, len(text))
    return Span(start, min(len(text), start + int(2 ** rng.uniform(0, 6.5))))


def _nothing(text: str, rng: random.Random) -> Span | None:
    line = _random_line(text, rng)
    place = line.end if line is not None and rng.random() < 0.7 else rng.randint(0, len(text))
    return Span(place, place)


SPAN_KINDS = {
    "rest of line": (0.33, rest_of_line),
    "whole line": (0.20, _whole_line),
    "lines": (0.14, _lines),
    "brackets": (0.12, _brackets),
    "word": (0.07, _word),
    "characters": (0.10, _characters),
    "nothing": (0.04, _nothing),
}


def _random_line(text: str, rng: random.Random) -> Span | None:
    """A line that is not blank, without its newline."""
    for _ in range(8):
        place = rng.randint(0, len(text))
        start = text.rfind("\n", 0, place) + 1
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        if text[start:end].strip():
            return Span(start, end)
    return None


def _window_start(text: str, rng: random.Random) -> int:
    """A line start such that windows cover the file evenly; often the file's own start."""
    place = rng.randint(0, max(0, len(text) - 200))
    if place < CHARS_PER_WINDOW // 3 or rng.random() < 0.1:
        return 0
    return text.rfind("\n", 0, place) + 1


def _context(
    source: Source, start: int, rng: random.Random, vocabulary: Vocabulary, profile: ModelProfile
) -> list[int]:
    """Ids of the path, and of imports and signatures before the window; nothing in four of ten windows."""
    if rng.random() < 0.4:
        return []
    before = source.text[:start]
    imports = [m.group() for m in IMPORT.finditer(before)][: rng.randint(0, 16)]
    headers = [m.group().rstrip() for m in HEADER.finditer(before)][-rng.randint(1, 8) :]
    path = source.path if rng.random() < 0.85 else ""
    return vocabulary.encode(context_text(path, imports + headers))[: profile.layout.context]


def _tokenise(text: str, spans: list[Span], vocabulary: Vocabulary) -> tuple[list[int], dict[int, int]]:
    """Ids of the text cut at all borders of spans, and the index of the token that starts at each border."""
    borders = sorted({0, len(text), *(place for span in spans for place in (span.start, span.end))})
    pieces = vocabulary.encode_pieces([text[a:b] for a, b in pairwise(borders)])
    ids: list[int] = []
    at = {0: 0}
    for border, piece in zip(borders[1:], pieces, strict=True):
        ids += piece
        at[border] = len(ids)
    return ids, at


def _pack(
    head: list[int],
    ids: list[int],
    middles: list[tuple[int, int]],
    rng: random.Random,
    profile: ModelProfile,
    canvases: bool,
) -> Rows:
    layout = profile.layout
    total = layout.encoder + (CANVAS_ROWS if canvases else 0)
    out_ids = np.full(total, profile.tokens["pad"], dtype=np.int64)
    positions, segment = np.zeros(total, dtype=np.int64), np.full(total, -1, dtype=np.int64)
    cut, targets = np.zeros(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    weights, slot = np.zeros(total, dtype=np.float32), np.zeros(total, dtype=np.bool_)

    window = [*head, *ids][: layout.encoder]
    n = len(window)
    out_ids[:n], positions[:n], segment[:n], cut[:n] = window, np.arange(n), 0, np.arange(n) + 1
    following = [*head, *ids][len(head) : n + 1]  # the head itself is given, never predicted
    targets[len(head) - 1 : len(head) - 1 + len(following)] = following
    weights[len(head) - 1 : min(len(head) - 1 + len(following), n)] = 1.0

    row, number = layout.encoder, 0
    for start, end in middles:
        place = len(head) + start
        if place > layout.encoder:
            continue
        slot_ids, noisy, slot_weights = _slot(ids[start:end], rng, profile)
        pins = _pins(ids[end : end + layout.pins], rng)
        width, rows = len(slot_ids), len(slot_ids) + len(pins)
        if row + rows > total:
            continue
        number += 1
        here, there = slice(row, row + width), slice(row + width, row + rows)
        out_ids[here], out_ids[there] = noisy, pins
        positions[here] = place + np.arange(width)
        positions[there] = place + layout.gap + np.arange(len(pins))
        segment[row : row + rows], cut[row : row + rows] = number, place
        targets[here], weights[here], slot[here] = slot_ids, slot_weights, True
        row += rows
    return Rows(
        ids=out_ids,
        positions=positions,
        segment=segment,
        cut=cut,
        targets=targets,
        weights=weights,
        slot=slot,
        text_tokens=n - len(head),
    )


def _slot(middle: list[int], rng: random.Random, profile: ModelProfile) -> tuple[list[int], list[int], list[float]]:
    """The slot's true ids, its noisy ids and the weights of its positions in the loss."""
    widths, end, mask = profile.layout.widths, profile.tokens["end"], profile.tokens["mask"]
    closed = 0 < len(middle) < widths[-1] and rng.random() < 0.4
    if closed:
        fitting = widths[bisect_right(widths, len(middle)) :]
        width = rng.choice(fitting) if rng.random() < 0.15 else fitting[0]
        level = 1.0 if rng.random() < 0.4 else 1.0 - rng.random() ** 2
    else:
        (width,) = rng.choices(widths, weights=(0.10, 0.25, 0.45, 0.20))
        level = 1.0 if rng.random() < 0.7 else 1.0 - rng.random() ** 2
    true = (middle + [end] * width)[:width]
    text = min(len(middle), width)
    # Denoising mostly goes from left to right, so half of the closed slots are written up to some place.
    written = rng.randrange(text) if closed and rng.random() < 0.5 else 0
    if written:
        level = 1.0
    masked = [written <= index < text and rng.random() < level for index in range(width)]
    if text and not any(masked):
        masked[rng.randrange(text)] = True
    if not closed:
        masked[text:] = [True] * (width - text)
    noisy = [mask if hidden else token for token, hidden in zip(true, masked, strict=True)]
    weights = [0.0 if not hidden else END_WEIGHT if index > text else 1.0 for index, hidden in enumerate(masked)]
    return true, noisy, weights


def _pins(head: list[int], rng: random.Random) -> list[int]:
    """The suffix head as an editor would have it: mostly whole, sometimes short, sometimes not there."""
    chance = rng.random()
    return [] if chance < 0.08 else head[: rng.randint(1, len(head))] if head and chance < 0.25 else head
