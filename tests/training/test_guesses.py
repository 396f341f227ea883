"""How likely lines found nearby are to be right, on texts that nothing was fitted on: Python's own library."""

from __future__ import annotations

import random
import statistics
import sysconfig
from pathlib import Path

from .fit_guesses import guesses


def test_what_is_said_of_guesses_is_about_true() -> None:
    paths = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    texts = [path.read_text(encoding="utf-8") for path in paths if 2_000 < path.stat().st_size < 100_000]
    rng = random.Random(0)
    found = list(guesses((rng.choice(texts) for _ in range(1_500)), rng))

    def right(low: float, high: float) -> float:
        return statistics.fmean(hit for one, hit in found if low <= one.likely < high)

    assert right(0, 0.1) < 0.08 < right(0.1, 0.4) < 0.45 < right(0.6, 0.8) < right(0.8, 1)
    assert right(0.8, 1) > 0.75
