"""Calibration: the fit finds what was planted, and the engine's confidences follow from it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from diffusion.api import EngineError, FillRequest, Result, to_json
from diffusion.engine import ResidentEngine
from diffusion.profiles import FEATURES, Calibration, parse_profile
from diffusion.training import calibrate, reliability
from diffusion.training.calibrate import Calibrator, Hole, fit

from .conftest import Tiny


def test_the_fit_finds_planted_weights() -> None:
    random = np.random.default_rng(0)
    inputs = random.normal(size=(20_000, 2)) * [1.0, 30.0]
    logits = inputs @ [1.5, -0.05] + 0.5
    hits = random.random(20_000) < 1 / (1 + np.exp(-logits))
    weights, bias = fit(inputs, hits)
    assert weights == pytest.approx([1.5, -0.05], rel=0.15)
    assert bias == pytest.approx(0.5, abs=0.1)


def test_confidences_for_a_report_are_fitted_on_others() -> None:
    random = np.random.default_rng(0)
    noise = random.normal(size=(60, 50))
    hits = random.random(60) < 0.5
    weights, bias = fit(noise, hits)
    flattered = ((noise @ np.array(weights) + bias > 0) == hits).mean()
    honest = ((calibrate.crossed(noise, hits) > 0.5) == hits).mean()
    assert flattered > 0.95 and honest < 0.75  # there is nothing to be learnt
    signal = np.where(hits, 1.0, -1.0)[:, None]
    assert ((calibrate.crossed(signal, hits) > 0.5) == hits).all()


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
        assert isinstance(result, Result) and result.gate == (calibration and calibration.gate)
        return [candidate.confidence for candidate in result.candidates]

    assert set(confidences(None)) == {None}
    assert set(confidences(Calibration(end_scale=2.0))) == {None}
    sure = confidences(Calibration(confidence_weights=(0.0,) * FEATURES, confidence_bias=2.0, gate=0.4))
    assert sure == [pytest.approx(0.8808, abs=1e-3)] * len(sure) and sure
    unsure = confidences(Calibration(confidence_weights=(9.0,) * FEATURES, confidence_bias=-900.0))
    assert all(0 <= value < 1e-9 for value in unsure if value is not None)


def test_the_calibrator_sees_what_the_engine_does(tiny: Tiny) -> None:
    calibrator = Calibrator(tiny.profile, tiny.vocabulary, tiny.model)
    request = FillRequest(id="1", language="python", path="a.py", prefix="x = ", suffix="\ny = 2\n", starts=("12",))
    hole = Hole(request=request, middle="alpha + beta")
    ends, over = calibrator.ends(hole)
    length = len(tiny.vocabulary.encode(" " + hole.middle))  # the blank before the cursor is held back
    assert len(ends) == len(over) == tiny.profile.layout.line_width
    assert over == [position >= length for position in range(len(over))]
    assert all(0 <= end <= 1 + 1e-6 for end in ends)
    evidence = calibrator.evidence(hole)
    assert evidence is None or (len(evidence[0]) == FEATURES and not evidence[1])
    sure = calibrator.evidence(Hole(request=replace(request, likely=(1.0,)), middle="12"))
    assert sure is not None and sure[1]


def test_what_the_language_server_writes_is_read(tmp_path: Path) -> None:
    request = FillRequest(id="1", prefix="x = ", suffix="\n", starts=("1",), likely=(0.5,))
    path = tmp_path / "requests.jsonl"
    path.write_text((json.dumps({"request": to_json(request), "middle": "1"}) + "\n") * calibrate.LEAST)
    assert calibrate.holes(path) == [Hole(request=request, middle="1")] * calibrate.LEAST


@pytest.mark.parametrize("text", ["", "{}\n", "nonsense", '{"request": {}, "middle": ""}', "[]\n"])
def test_files_that_hold_no_requests(tmp_path: Path, text: str) -> None:
    (tmp_path / "requests.jsonl").write_text(text)
    with pytest.raises(EngineError):
        calibrate.holes(tmp_path / "requests.jsonl")
    assert calibrate.main([str(tmp_path / "requests.jsonl")]) == 1
    assert calibrate.main([str(tmp_path / "nowhere")]) == 1


@pytest.mark.parametrize(
    "before", ["", "[calibration]\nend_scale = 3.0\n", "[calibration]\ngate = 0.1\n\n[other]\na = 1\n"]
)
def test_the_table_is_put_into_a_profile(tmp_path: Path, tiny: Tiny, before: str) -> None:
    embedded = calibrate.written(calibrate.profile_file("embedded").read_text(), "").rstrip()
    calibration = Calibration(end_scale=0.5, end_bias=-1.0, confidence_weights=(0.25,) * FEATURES, gate=0.75)
    path = tmp_path / "own.toml"
    path.write_text(calibrate.written(f"{embedded}\n\n{before}", calibrate.toml(calibration)))
    assert parse_profile(path).calibration == calibration
    assert path.read_text().count("[calibration]") == 1
    assert ("[other]" in path.read_text()) == ("[other]" in before)


def test_a_profile_with_weights_for_other_features_is_named(tmp_path: Path) -> None:
    embedded = calibrate.profile_file("embedded").read_text()
    path = tmp_path / "old.toml"
    path.write_text(calibrate.written(embedded, "[calibration]\nconfidence_weights = [1.0, 2.0, 3.0]\n"))
    with pytest.raises(EngineError, match=r"old\.toml.*3 confidence_weights"):
        parse_profile(path)


def test_the_gate_is_where_enough_is_right() -> None:
    sure = [number / 100 for number in range(100)]
    hits = [number % 5 < 3 if number >= 50 else False for number in range(100)]
    assert reliability.gate(sure, hits) == 0.5
    assert reliability.gate(sure, [False] * 89 + [True] * 2 + [False] * 9) in (0.89, 0.9)  # the best there is
    assert reliability.gate(sure[:5], [True] * 5) == 1.0  # too few to tell
    assert reliability.gate([0.4] * 30, [True] * 10 + [False] * 20) == 0.4


def test_bins_table_and_picture_tell_the_same() -> None:
    bins = reliability.bins([0.05, 0.07, 0.95, 1.0], [False, False, True, False])
    assert [(one.n, one.right) for one in bins] == [(2, 0.0), (2, 0.5)]
    assert reliability.table(bins).splitlines()[2:] == ["| 6 | 0 | 2 |", "| 98 | 50 | 2 |"]
    assert reliability.svg(bins).count("<circle") == 2
