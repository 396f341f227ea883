"""Fits what a profile's numbers mean on held-out holes, and writes them down as its [calibration] table.

    midfill eval heldout --corpus CORPUS --limit 400 --requests FILE    # the holes, as an editor would ask
    python -m diffusion.training.calibrate FILE --write --svg PICTURE

`end`: the probability of end-of-middle at position i against whether the middle is over there. `confidence`: the
features of the best candidate (ranking.features) against whether it is exactly what the author wrote. Both are logistic
regressions. `gate`: the confidence from which on answers are right often enough to be shown (reliability.gate). The
gate is put by, and what is printed and pictured are, confidences that were fitted on other holes (in five folds), since
right answers are few; the table's weights are fitted on all of them.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from diffusion import infill, model, opening, ranking
from diffusion.api import EngineError, FillRequest, parse_request
from diffusion.engine import ResidentEngine
from diffusion.opening import Desk, Tally, Task
from diffusion.profiles import Calibration, load_profile, profile_file
from diffusion.ranking import Outcome
from diffusion.stopping import Limits
from diffusion.training import reliability
from diffusion.training.trainer import use_threads
from diffusion.vocabulary import Vocabulary

LEAST = 20
"""Holes from which on there is something to fit."""


@dataclass(frozen=True, kw_only=True)
class Hole:
    """A request and what stood there."""

    request: FillRequest
    middle: str


ENDS = 100
"""Holes that the end-of-middle is fitted on, each at every position of its slot: plenty for two numbers."""

RIDGE = 3e-3
"""For the confidence: there are a few hundred to fit on, of which few are right."""
FOLDS = 5


def holes(path: Path) -> list[Hole]:
    """Read what `midfill eval heldout --requests` wrote. Raises EngineError."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        found = [Hole(request=parse_request(body["request"]), middle=str(body["middle"])) for body in lines]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(f"{path} holds no requests: {error}", "write it: midfill eval heldout --requests") from error
    if len(found) < LEAST:
        raise EngineError(f"{path} holds {len(found)} requests, too few to fit on", "write more of them: --limit 400")
    return found


def fit(inputs: np.ndarray, hits: np.ndarray, ridge: float = 1e-3) -> tuple[tuple[float, ...], float]:
    """Logistic regression of hits (N,) on inputs (N, F): the weights (F,) and the bias, lightly regularised."""
    x, y = torch.from_numpy(inputs).double(), torch.from_numpy(hits).double()
    scale = x.std(0).clamp(min=1e-6)
    weights, bias = torch.zeros(x.shape[1], dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    parameters = [weights.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.LBFGS(parameters, max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> torch.Tensor:
        optimiser.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x / scale @ weights + bias, y) + ridge * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimiser.step(closure)  # type: ignore[no-untyped-call]
    return tuple((weights.detach() / scale).tolist()), float(bias.detach())


class Calibrator(ResidentEngine):
    """An engine that also shows what its answers rest on."""

    def ends(self, hole: Hole) -> tuple[list[float], list[bool]]:
        """Per slot position, the raw end probability and whether the true middle is over there."""
        task, desk = self._prepared(hole)
        length = len(self.tasks.ids(task.prompt, hole.middle))
        self._model.encode(task.prompt.encoder, desk.cache)
        raw = opening.end_probabilities(task, opening.first_canvas(task, desk), desk)[0]
        return raw.tolist(), [position >= length for position in range(task.width)]

    def evidence(self, hole: Hole) -> tuple[tuple[float, ...], bool] | None:
        """What the best candidate that is not empty rests on, and whether it is right; None where there is none."""
        task, desk = self._prepared(hole)
        (outcome,) = (e for e in infill.fill(task, desk, Limits()) if isinstance(e, Outcome))
        wanted = (task.prompt.held_back + hole.middle).rstrip()
        for middle, evidence in zip(outcome.middles, ranking.features(outcome.middles), strict=True):
            answer = self.tasks.text(hole.request, task.prompt, middle.ids)
            if answer and answer[0].strip():
                return evidence, self._vocabulary.decode(middle.ids).rstrip() == wanted
        return None

    def _prepared(self, hole: Hole) -> tuple[Task, Desk]:
        desk = Desk(model=self._model, cache=self._model.new_cache(), profile=self._profile, tally=Tally())
        return self.tasks.task(hole.request), desk


def calibrate(profile_name: str, found: Sequence[Hole]) -> tuple[Calibration, list[float], list[bool]]:
    """The calibration of a profile; and per answer the confidence by a fit on other holes, and whether it is right."""
    profile = replace(load_profile(profile_name), calibration=None)
    vocabulary = Vocabulary(profile.weights / "tokenizer.json", profile.specials)
    resident = model.load(profile)
    plain = Calibrator(profile, vocabulary, resident)
    probabilities, over = (
        np.concatenate(part) for part in zip(*map(plain.ends, _shown(found[:ENDS], "ends")), strict=True)
    )
    clipped = np.clip(probabilities, 1e-9, 1 - 1e-9)
    (end_scale,), end_bias = fit(np.log(clipped / (1 - clipped))[:, None], over)
    calibration = Calibration(end_scale=end_scale, end_bias=end_bias)
    calibrated = Calibrator(replace(profile, calibration=calibration), vocabulary, resident)
    pairs = [pair for pair in map(calibrated.evidence, _shown(found, "fills")) if pair]
    random.Random(0).shuffle(pairs)
    if len(pairs) < LEAST:
        raise EngineError("the model answers hardly ever: nothing to fit on", "train it for longer")
    inputs, hits = np.array([x for x, _ in pairs]), np.array([hit for _, hit in pairs])
    sure = crossed(inputs, hits).tolist()
    weights, bias = fit(inputs, hits, RIDGE)
    chosen = reliability.gate(sure, hits.tolist())
    return replace(calibration, confidence_weights=weights, confidence_bias=bias, gate=chosen), sure, hits.tolist()


def crossed(inputs: np.ndarray, hits: np.ndarray) -> np.ndarray:
    """Per row of `inputs` (N, F) the probability (N,) of a hit by a fit on the rows of the other folds."""
    folds = np.arange(len(hits)) % FOLDS
    sure = np.zeros(len(hits))
    for fold in range(FOLDS):
        weights, bias = fit(inputs[folds != fold], hits[folds != fold], RIDGE)
        sure[folds == fold] = 1 / (1 + np.exp(-np.clip(inputs[folds == fold] @ np.array(weights) + bias, -30, 30)))
    return sure


def _shown(found: Sequence[Hole], what: str) -> Iterator[Hole]:
    """`found`, with progress on standard error."""
    begun = time.monotonic()
    for done, hole in enumerate(found, 1):
        yield hole
        if done % 20 == 0 or done == len(found):
            print(f"\r{what}: {done} of {len(found)}, {time.monotonic() - begun:.0f} s", end="", file=sys.stderr)
    print(file=sys.stderr)


def toml(calibration: Calibration) -> str:
    """The [calibration] table of a profile."""
    weights = ", ".join(f"{weight:.4f}" for weight in calibration.confidence_weights)
    return (
        f"[calibration]\nend_scale = {calibration.end_scale:.4f}\nend_bias = {calibration.end_bias:.4f}\n"
        f"confidence_weights = [{weights}]\nconfidence_bias = {calibration.confidence_bias:.4f}\n"
        f"gate = {calibration.gate or 0:.4f}\n"
    )


def written(profile: str, table: str) -> str:
    """The text of a profile's file with `table` in place of its [calibration], or at its end."""
    rest = re.sub(r"^\[calibration\].*?(?=^\[|\Z)", "", profile, flags=re.DOTALL | re.MULTILINE)
    return f"{rest.rstrip()}\n\n{table}"


def main(argv: list[str]) -> int:
    """The command line above."""
    parser = argparse.ArgumentParser(prog="python -m diffusion.training.calibrate", description=__doc__.split("\n")[0])
    parser.add_argument("requests", type=Path, metavar="FILE", help="held-out requests to fit on")
    parser.add_argument("--profile", default="embedded", help="model profile (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into the profile's file")
    parser.add_argument("--svg", type=Path, metavar="PICTURE", help="where to put a reliability diagram")
    options = parser.parse_args(argv)
    use_threads(1)
    try:
        found = holes(options.requests)
        calibration, sure, hits = calibrate(options.profile, found)
    except EngineError as error:
        print(f"{error.message}\n{error.hint}", file=sys.stderr)
        return 1
    bins, table = reliability.bins(sure, hits), toml(calibration)
    shown = [hit for confidence, hit in zip(sure, hits, strict=True) if confidence >= (calibration.gate or 0)]
    print(f"{table}\n{len(found)} holes; confidences by fits on others, in percent:\n\n{reliability.table(bins)}\n")
    print(
        f"right {100 * np.mean(hits):.1f} %; above the gate {100 * len(shown) / len(hits):.1f} % of the answers", end=""
    )
    print(f", of which {100 * np.mean(shown):.1f} % are right" if shown else "")
    if options.svg:
        options.svg.write_text(reliability.svg(bins), encoding="utf-8")
    if options.write:
        path = profile_file(options.profile)
        path.write_text(written(path.read_text(encoding="utf-8"), table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
