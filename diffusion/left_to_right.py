"""The same weights decoded left to right: the encoder is a causal language model, so it can go on by itself.

For comparison only (`midfill bench replay`): greedy, one id per encoder call, up to the end of the line. It does not
see the suffix. Knows ids and tensors; knows no text.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from diffusion.api import Finish
from diffusion.infill import Outcome
from diffusion.opening import Desk, Task
from diffusion.ranking import Middle
from diffusion.stopping import Limits

MAX_IDS = 64
"""As many as the widest slot of the embedded model has."""


def fill(task: Task, end: int, desk: Desk, limits: Limits) -> Iterator[Outcome]:
    """Yield one Outcome. `end`: the id that ends a file. The decoder's score of the middle is its log probability and
    that of its end, in nats. Raises Cancelled between ids."""
    model, cache, tally = desk.model, desk.cache, desk.tally
    encoder = task.prompt.encoder
    finish: Finish = "length"
    middle: list[int] = []
    score = 0.0
    while len(middle) < MAX_IDS:
        if limits.late():
            finish = "deadline"
            break
        encoded = model.encode((*encoder, *middle), cache)
        tally.encodes += 1
        tally.encoded += encoded
        tally.cached += len(encoder) + len(middle) - encoded
        assert cache.last_hidden is not None
        log_p = torch.log_softmax(model.logits(cache.last_hidden)[0], -1)  # (V,)
        rule = task.rules.at_first if not middle else task.rules.elsewhere
        ending = _ending(task, end, first=not middle)
        token = int((log_p + torch.where(ending, 0.0, rule)).argmax())
        score += float(log_p[token])
        if ending[token]:
            finish = "stop"
            break
        middle.append(token)
    ended = finish == "stop"
    yield Outcome(middles=(Middle(ids=tuple(middle), ended=ended, decoder_score=score),), finish=finish)


def _ending(task: Task, end: int, *, first: bool) -> torch.Tensor:
    """(V,) bool: the ids that end the middle: those with a newline, unless the middle begins with one, and `end`."""
    ending = torch.zeros_like(task.newline) if first and task.prompt.starts_line else task.newline.clone()
    ending[end] = True
    return ending
