"""Calibration: the fit finds what was planted, and the engine's confidences follow from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diffusion.api import FillRequest
from diffusion.engine import ResidentEngine
from diffusion.profiles import Calibration
from diffusion.training.calibrate import Calibrator, fit
from diffusion.training.evaluate import Cut

from .conftest import Tiny


def test_the_fit_finds_planted_weights() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(20_000, 2)) * [1.0, 30.0]
    logits = inputs @ [1.5, -0.05] + 0.5
    hits = random.random(20_000) < 1 / (1 + np.exp(-logits))
    weights, bias = fit(inputs, hits)
    assert weights == pytest.approx([1.5, -0.05], rel=0.15)
    assert bias == pytest.approx(0.5, abs=0.1)


def test_a_feature_without_spread_does_no_harm() -> None:
    weights, bias = fit(np.ones((50, 1)), np.arange(50) < 25)
    assert np.isfinite([*weights, bias]).all()


def test_confidence_is_null_without_a_calibration_and_a_probability_with_one(tiny: Tiny) -> None:
    request = FillRequest(
        id="1", prefix="def f(a):\n    return ", suffix="\n", language="python", n=3, length_of="7" * 5
    )

    def confidences(calibration: Calibration | None) -> list[float | None]:
        profile = replace(tiny.profile, calibration=calibration)
        (result,) = ResidentEngine(profile, tiny.vocabulary, tiny.model).fill(request)
        return [candidate.confidence for candidate in result.candidates]

    assert set(confidences(None)) == {None}
    assert set(confidences(Calibration(end_scale=2.0))) == {None}
    sure = confidences(Calibration(confidence_weights=(0.0, 0.0, 0.0), confidence_bias=2.0))
    assert sure == [pytest.approx(0.8808, abs=1e-3)] * len(sure) and sure
    unsure = confidences(Calibration(confidence_weights=(9.0, 9.0, 9.0), confidence_bias=-500.0))
    assert all(0 <= value < 1e-9 for value in unsure if value is not None)


def test_the_calibrator_sees_what_the_engine_does(tiny: Tiny) -> None:
    calibrator = Calibrator(tiny.profile, tiny.vocabulary, tiny.model)
    cut = Cut(language="python", path="a.py", prefix="x = ", middle="alpha + beta", suffix="\ny = 2\n")
    ends, over = calibrator.ends(cut)
    length = len(tiny.vocabulary.encode(cut.middle))  # nothing is held back: the line is not blank
    assert len(ends) == len(over) == tiny.profile.layout.line_width
    assert over == [position >= length for position in range(len(over))]
    assert all(0 <= end <= 1 + 1e-6 for end in ends)
    evidence = calibrator.evidence(cut)
    assert evidence is None or (len(evidence[0]) == 3 and not evidence[1])
