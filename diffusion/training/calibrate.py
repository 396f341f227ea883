"""Fits the two calibrations of a profile on held-out cuts, and prints them as its [calibration] table.

    python -m diffusion.training.calibrate --heldout CORPUS --cuts 400

`end`: the probability of end-of-middle at position i against whether the middle is over there. `confidence`: the
evidence of the best candidate against whether it is exactly what the author wrote. Both are logistic regressions.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from diffusion import infill, layouts, model, opening
from diffusion.api import FillRequest
from diffusion.engine import ResidentEngine
from diffusion.infill import Outcome
from diffusion.opening import Desk, Tally, Task
from diffusion.profiles import Calibration, load_profile
from diffusion.stopping import Limits
from diffusion.training.evaluate import Cut, heldout
from diffusion.training.trainer import use_threads
from diffusion.vocabulary import Vocabulary

SEED = 7
"""Other cuts than those that evaluate.py counts by default."""


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

    def ends(self, cut: Cut) -> tuple[list[float], list[bool]]:
        """Per slot position, the raw end probability and whether the true middle is over there."""
        request = _request(cut)
        task, desk, length = self._prepared(request, cut)
        self._model.encode(task.prompt.encoder, desk.cache)
        raw = opening.end_probabilities(task, opening.first_canvas(task, desk), desk)[0]
        return raw.tolist(), [position >= length for position in range(task.width)]

    def evidence(self, cut: Cut) -> tuple[tuple[float, float, float], bool] | None:
        """What the best candidate rests on, and whether it is right; None where it is empty."""
        task, desk, _ = self._prepared(_request(cut), cut)
        (outcome,) = (e for e in infill.fill(task, desk, Limits()) if isinstance(e, Outcome))
        text = self._vocabulary.decode(outcome.middles[0].ids)
        if not text.strip():
            return None
        return infill.features(outcome.middles)[0], text.rstrip() == (task.prompt.held_back + cut.middle).rstrip()

    def _prepared(self, request: FillRequest, cut: Cut) -> tuple[Task, Desk, int]:
        prompt = layouts.native(request, self._vocabulary, self._profile)
        desk = Desk(model=self._model, cache=self._model.new_cache(), profile=self._profile, tally=Tally())
        return self._task(request, prompt), desk, len(self._ids(prompt, cut.middle))


def _request(cut: Cut) -> FillRequest:
    return FillRequest(id="1", language=cut.language, path=cut.path, prefix=cut.prefix, suffix=cut.suffix)


def main(argv: list[str]) -> int:
    """The command line above."""
    parser = argparse.ArgumentParser(prog="python -m diffusion.training.calibrate", description=__doc__.split("\n")[0])
    parser.add_argument("--heldout", type=Path, required=True, metavar="CORPUS", help="folder of the training corpus")
    parser.add_argument("--cuts", type=int, default=400, help="held-out cuts to fit on (default: %(default)s)")
    parser.add_argument("--profile", default="embedded", help="model profile (default: %(default)s)")
    options = parser.parse_args(argv)
    use_threads(1)
    profile = replace(load_profile(options.profile), calibration=None)
    vocabulary = Vocabulary(profile.weights / "tokenizer.json", profile.specials)
    cuts = list(heldout(options.heldout, options.cuts, seed=SEED))
    resident = model.load(profile)
    plain = Calibrator(profile, vocabulary, resident)
    probabilities, over = (np.concatenate(part) for part in zip(*map(plain.ends, cuts), strict=True))
    clipped = np.clip(probabilities, 1e-9, 1 - 1e-9)
    (end_scale,), end_bias = fit(np.log(clipped / (1 - clipped))[:, None], over)
    calibration = Calibration(end_scale=end_scale, end_bias=end_bias)
    calibrated = Calibrator(replace(profile, calibration=calibration), vocabulary, resident)
    pairs = [pair for pair in map(calibrated.evidence, cuts) if pair]
    weights, bias = fit(np.array([x for x, _ in pairs]), np.array([hit for _, hit in pairs]))
    print(f"# fitted on {len(cuts)} held-out rest-of-line cuts, {sum(hit for _, hit in pairs)} of them exact")
    print("[calibration]")
    print(f"end_scale = {end_scale:.4f}\nend_bias = {end_bias:.4f}")
    print(f"confidence_weights = [{', '.join(f'{w:.4f}' for w in weights)}]\nconfidence_bias = {bias:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
