"""Lines written left to right: the encoder is a causal language model, so it can go on by itself.

Drafts among the candidates of a fill (infill.py), since at this size the encoder is the better copyist; and one by
itself, for comparison (`midfill bench replay`). Greedy. What follows the cursor the encoder does not see, so in a fill
the decoder has a say in what a line begins with. Knows ids and tensors; knows no text.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.copying import mixed
from diffusion.opening import Desk, Opened, Task
from diffusion.ranking import Middle, Outcome
from diffusion.samplers import BANNED
from diffusion.stopping import Limits

MAX_IDS = 64
"""As many as the widest slot of the embedded model has."""

DRAFT_IDS = 16
"""Drafts that have not ended by then are given up: longer ones gained nothing in 650 holes and took the most time."""

BEGINNINGS = 3
LINE_BEGINNINGS = 6
"""Drafts of a fill, and where it begins with a line break. More found no more that was ranked first (600 and 172
holes)."""

BEHIND = 3.0
"""Nats. A draft that is so much less likely than one that is at its end is given up."""

LINE_BREAKS = 2
"""Line breaks, with the blanks behind them, that drafts of a fill may begin with."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Ids of a middle, the log probability in nats of those that were written, with that of its end, and how it ended:
    "stop" if it did, None where it goes on."""

    ids: tuple[int, ...]
    log_p: float = 0.0
    finish: Finish | None = None


def fill(task: Task, desk: Desk, limits: Limits) -> Iterator[Outcome]:
    """Yield one Outcome, whose decoder score is the line's. Raises Cancelled between calls."""
    if limits.late():
        yield Outcome(middles=(Middle(),), finish="deadline")
        return
    desk.encode(task.prompt.encoder)
    (found,) = lines(task, desk, limits, [Line(ids=task.prompt.typed)], MAX_IDS)
    middle = Middle(ids=found.ids, ended=found.finish == "stop", decoder_score=found.log_p)
    yield Outcome(middles=(middle,), finish=found.finish or "length")


@torch.inference_mode()
def beginnings(task: Task, desk: Desk, opened: Opened) -> list[Line]:
    """The likeliest beginnings of a line, in ids: the first one that nothing forces, and the second where the first one
    is a newline. By encoder and decoder together, a product of experts (Hinton 2002): what the decoder has seen on a
    canvas that shows nothing knows what follows the cursor."""
    spelled, seen = opened.spelled, opened.seen
    chances = _both(spelled.ahead, opened.rules.at_first, seen[len(spelled.ids)], task, spelled.ids)
    if not task.prompt.starts_line:
        top = chances.topk(BEGINNINGS)
        pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
        return [Line(ids=(*spelled.ids, token), log_p=log_p) for token, log_p in pairs if log_p > BANNED / 2]
    breaks = chances.topk(LINE_BREAKS)
    desk.tally.encodes += 1
    hidden = desk.model.continuations(breaks.indices[:, None], desk.cache)[:, -1]
    rows = [
        chance + _both(logits, task.rules.elsewhere, seen[1], task, (int(token),))
        for token, chance, logits in zip(breaks.indices, breaks.values, desk.model.logits(hidden), strict=True)
    ]
    top, width = torch.stack(rows).flatten().topk(LINE_BEGINNINGS), len(rows[0])
    return [
        Line(ids=(int(breaks.indices[place // width]), place % width), log_p=log_p)
        for place, log_p in zip(top.indices.tolist(), top.values.tolist(), strict=True)
    ]


def _both(logits: Tensor, rule: Tensor, seen: Tensor, task: Task, ids: tuple[int, ...]) -> Tensor:
    """Log probabilities (V,) behind `ids` by the encoder's logits (V,) and the decoder's log probabilities (V,), with
    the bans of `rule` (V,), which hold for copies, too."""
    both = ((logits + rule).log_softmax(-1) + seen) / 2
    return mixed(both.log_softmax(-1), task.copies, ids) + rule


@torch.inference_mode()
def lines(task: Task, desk: Desk, limits: Limits, starts: Sequence[Line], most: int) -> list[Line]:
    """The `starts`, all of a length and in one batch, with the likeliest id after the other, `most` at most, up to one
    of the ids that end a line. The cache holds the prompt, before and afterwards. Raises Cancelled between calls."""
    model, ahead = desk.model, desk.cache.last_hidden
    assert ahead is not None
    found = list(starts)
    hidden = ahead.expand(len(starts), -1)  # (B, H), behind the ids that are there
    with desk.cache.branch(len(starts)) as branch:
        new = model.tensor([line.ids for line in found])
        while True:
            if new.shape[1]:
                desk.tally.encodes += 1
                hidden = model.go_on(new, branch)[:, -1]
            logits = model.logits(hidden)
            found = [
                _longer(line, row, task, most) if line.finish is None else line
                for line, row in zip(found, logits, strict=True)
            ]
            least = max((line.log_p for line in found if line.finish == "stop"), default=-math.inf) - BEHIND
            found = [
                replace(line, finish="length") if line.finish is None and line.log_p < least else line for line in found
            ]
            if all(line.finish for line in found):
                return found
            if limits.late():
                return [replace(line, finish=line.finish or "deadline") for line in found]
            new = model.tensor([line.ids[-1:] or (0,) for line in found])  # whatever, where a line is at its end


def _longer(line: Line, logits: Tensor, task: Task, most: int) -> Line:
    """`line` with the likeliest id or its end; logits (V,) behind it."""
    token, log_p, ends = _next(task, logits, line.ids)
    if ends:
        return replace(line, log_p=line.log_p + log_p, finish="stop")
    ids = (*line.ids, token)
    return Line(ids=ids, log_p=line.log_p + log_p, finish="length" if len(ids) == most else None)


def _next(task: Task, logits: Tensor, ids: tuple[int, ...]) -> tuple[int, float, bool]:
    """logits (V,) behind `ids` -> the likeliest id that may stand there, its log probability, and whether it is an
    end. A newline is none where the middle begins with it."""
    log_p = mixed(logits.log_softmax(-1), task.copies, ids)
    ending = task.ends if ids or not task.prompt.starts_line else task.ends & ~task.newline
    rule = task.rules.elsewhere if ids else task.rules.at_first
    token = int((log_p + torch.where(ending, 0.0, rule)).argmax())
    if ending[token] and not task.whole(ids):
        ending = torch.zeros_like(ending)
        token = int((log_p + rule).argmax())
    return token, float(log_p[token]), bool(ending[token])
