"""One line written left to right: the encoder is a causal language model, so it can go on by itself.

A draft among the candidates of a fill (infill.py), since at this size the encoder is the better copyist; and by itself,
for comparison (`midfill bench replay`). Greedy. It does not see the suffix. What the text has said before is guessed
ahead and checked in one call (speculative decoding; Saxena 2023, "Prompt Lookup Decoding"), which changes nothing but
the number of calls. Knows ids and tensors; knows no text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from diffusion.api import Finish
from diffusion.copying import Copies
from diffusion.opening import Desk, Task
from diffusion.ranking import Middle, Outcome
from diffusion.stopping import Limits

MAX_IDS = 64
"""As many as the widest slot of the embedded model has."""

AHEAD = 8
"""Ids that are guessed at a time."""

DRAFT_CALLS = 8
"""A draft that needs more encoder calls is given up: such ones gained nothing in 650 holes and took the most time."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Ids of a middle, its log probability in nats with that of its end, and how it ended: "stop" if it did."""

    ids: tuple[int, ...]
    log_p: float
    finish: Finish


def fill(task: Task, desk: Desk, limits: Limits) -> Iterator[Outcome]:
    """Yield one Outcome, whose decoder score is the line's. Raises Cancelled between calls."""
    if limits.late():
        yield Outcome(middles=(Middle(),), finish="deadline")
        return
    desk.encode(task.prompt.encoder)
    found = line(task, desk, limits, MAX_IDS)
    middle = Middle(ids=found.ids, ended=found.finish == "stop", decoder_score=found.log_p)
    yield Outcome(middles=(middle,), finish=found.finish)


@torch.inference_mode()
def line(task: Task, desk: Desk, limits: Limits, most: int, calls: int | None = None) -> Line:
    """The likeliest id after the other, `most` at most, up to the end of the line or the file, in so many `calls` at
    most. The cache holds the prompt, before and afterwards. Raises Cancelled between calls."""
    model, ahead = desk.model, desk.cache.last_hidden
    assert ahead is not None
    ids: tuple[int, ...] = ()
    score = 0.0
    made = 0
    guessed = task.copies.guess((), AHEAD) if task.copies else ()
    while True:
        tried = (*ids, *guessed)
        hidden = ahead
        if tried:
            desk.tally.encodes += 1
            made += 1
            hidden = torch.cat((ahead, model.continuations(model.tensor([tried]), desk.cache)[0]))
        for row in model.logits(hidden[len(ids) :]):
            token, log_p, ends = _next(task, desk, row, ids)
            score += log_p
            if ends:
                return Line(ids=ids, log_p=score, finish="stop")
            ids += (token,)
            if len(ids) == most:
                return Line(ids=ids, log_p=score, finish="length")
            if ids != tried[: len(ids)]:
                break
        if made == calls:
            return Line(ids=ids, log_p=score, finish="length")
        if limits.late():
            return Line(ids=ids, log_p=score, finish="deadline")
        guessed = task.copies.guess(ids, AHEAD) if task.copies else ()


def _next(task: Task, desk: Desk, logits: Tensor, ids: tuple[int, ...]) -> tuple[int, float, bool]:
    """logits (V,) behind `ids` -> the likeliest id that may stand there, its log probability, and whether it is an
    end: a newline, unless the middle begins with one, or the end of the file."""
    log_p = _mixed(logits.log_softmax(-1), task.copies, ids)
    ending = torch.zeros_like(task.newline) if not ids and task.prompt.starts_line else task.newline.clone()
    ending[desk.profile.tokens["eof"]] = True
    rule = task.rules.elsewhere if ids else task.rules.at_first
    token = int((log_p + torch.where(ending, 0.0, rule)).argmax())
    if ending[token] and not task.whole(ids):
        ending = torch.zeros_like(ending)
        token = int((log_p + rule).argmax())
    return token, float(log_p[token]), bool(ending[token])


def _mixed(log_p: Tensor, copies: Copies | None, ids: tuple[int, ...]) -> Tensor:
    """log_p (V,) of the model behind `ids` -> (V,) with the copies in it."""
    copied = copies and copies.after(ids)
    if not copied or not copied.weight:
        return log_p
    p = log_p.exp() * (1 - copied.weight)
    places = torch.tensor(list(copied.p), device=p.device)
    shares = torch.tensor(list(copied.p.values()), dtype=p.dtype, device=p.device)
    return p.index_add(0, places, copied.weight * shares).log()
