"""Fits the weights of copies (diffusion/copying.py; [copying] of a profile) by expectation maximisation.

    midfill eval heldout --corpus CORPUS --list calibration --kind "rest of line" --limit 450 --requests FILE
    python -m tests.training.fit_copying FILE

In every hole the true middle is read. At each of its ids the model says a probability and the copies say one; the
weight of an agreement is the share of such ids that the copies explain.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from diffusion.copying import Copies
from diffusion.denoise import Rules
from diffusion.engine import ResidentEngine, load
from diffusion.ranking import read
from diffusion.training.calibrate import Hole, holes
from diffusion.training.trainer import use_threads

LONGEST = 8
ROUNDS = 60


def seen(engine: ResidentEngine, hole: Hole) -> Iterator[tuple[int, float, float]]:
    """Per id of the true middle: so many ids before it agree with a place elsewhere, the probability by the model, and
    that of the copies."""
    prompt = engine.tasks.task(hole.request).prompt
    cache = engine._model.new_cache()
    engine._model.encode(prompt.encoder, cache)
    middle = engine.tasks.ids(prompt, hole.middle)
    free = torch.zeros(engine._model.vocabulary_size, dtype=torch.bool)
    (own,) = read(engine._model, cache, [middle], (), Rules.banning(free, free))
    copies = Copies(prompt.before, prompt.after, (0.0,) * (LONGEST + 1))
    for place, (token, log_p) in enumerate(zip(middle, own.log_p, strict=True)):
        copied = copies.after(middle[:place])
        yield copied.agree, math.exp(log_p), copied.p.get(token, 0.0)


def fit(pairs: Sequence[tuple[float, float]]) -> float:
    """The weight w that maximises the sum of log((1 - w) p + w q) over (p, q)."""
    weight = 0.3
    for _ in range(ROUNDS):
        weight = sum(weight * q / ((1 - weight) * p + weight * q) for p, q in pairs) / len(pairs)
    return weight


def main() -> None:
    use_threads(1)
    engine = load("embedded")
    by_agreement: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for hole in holes(Path(sys.argv[1])):
        for agree, p, q in seen(engine, hole):
            by_agreement[agree].append((p, q))
    weights = [fit(by_agreement[agree]) if by_agreement[agree] else 0.0 for agree in range(LONGEST + 1)]
    every = [(agree, *pair) for agree, pairs in by_agreement.items() for pair in pairs]
    before = -sum(math.log(p) for _, p, _ in every) / len(every)
    after = -sum(math.log((1 - weights[agree]) * p + weights[agree] * q) for agree, p, q in every) / len(every)
    print(f"weights = [{', '.join(f'{weight:.2f}' for weight in weights)}]")
    print(f"{len(every)} ids: {before:.2f} -> {after:.2f} nats")


if __name__ == "__main__":
    main()
