"""Figures of an evaluation: what is exact, intervals against known cases, the gate and the reliability table."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import Candidate, Cost, Result, Trace
from lsp_server.commands import eval_figures as figures
from lsp_server.commands.eval_cuts import Cut


def cut(marked: str = "x = «f(1)»\n", group: str = "g") -> Cut:
    prefix, _, rest = marked.partition("«")
    middle, _, suffix = rest.partition("»")
    return Cut(
        kind="rest of line", language="python", path="a.py", prefix=prefix, middle=middle, suffix=suffix, group=group
    )


def answer(text: str | None, confidence: float | None = None, replace_before: int = 0) -> Result:
    best = Candidate(text=text or "", confidence=confidence, replace_before=replace_before)
    return Result(candidates=() if text is None else (best,), cost=Cost(forwards=3, ms=20.0))


def trial(exact: bool, confidence: float | None = None, group: str = "g") -> figures.Trial:
    return figures.judge(cut(group=group), answer("f(1)" if exact else "wrong", confidence))


@pytest.mark.parametrize(
    ("marked", "written", "replaced", "exact"),
    [
        ("x = «f(1)»\n", "f(1)", 0, True),
        ("x = «f(1)»\n", "f(1)  ", 0, True),  # blanks at a line's end are nobody's business
        ("x = «f(1)  »\n", "f(1)", 0, True),
        ("x = «f(1)»\n", " f(1)", 0, False),
        ("x = «f(1)»\n", "f(2)", 0, False),
        ("x = «f(1)»\n", None, 0, False),
        ("f(«a, »b)\n", "a,", 0, False),  # something follows on the line
        ("f(«a»)\n", "a", 0, True),
        ("f(«a»)\n", "a ", 0, False),
        ("if a:\n        «b»\n", "    b", 8, False),  # less indented than it was
        ("if a:\n    «b»\n", "    b", 4, True),
        ("«a\n\nb»\n", "a\n\nb\n", 0, True),
        ("«a\n\nb»\n", "a\nb", 0, False),
    ],
)
def test_exact_is_what_the_author_would_not_have_to_change(
    marked: str, written: str | None, replaced: int, exact: bool
) -> None:
    assert figures.judge(cut(marked), answer(written, replace_before=replaced)).exact is exact


def test_a_trial_knows_the_file_up_to_the_end_of_the_middle() -> None:
    judged = figures.judge(cut("if a:\n        «b»\n"), answer("    bcd", replace_before=8))
    assert judged.completed == "if a:\n    bcd"
    assert (judged.length_error, judged.forwards, judged.ms) == (2, 3, 20.0)
    assert judged.similarity == 0.5  # one of 1 + 3 characters, twice
    nothing = figures.judge(cut("x = «f(1)»\n"), answer(None))
    assert (nothing.completed, nothing.length_error, nothing.similarity, nothing.answered) == ("x = ", 4, 0.0, False)


def test_the_interval_of_independent_hits_is_that_of_the_binomial_distribution() -> None:
    hits = [n % 4 == 0 for n in range(400)]
    low, high = figures.interval(hits, [str(n) for n in range(400)])
    half = 1.96 * math.sqrt(0.25 * 0.75 / 400)
    assert low == pytest.approx(0.25 - half, abs=0.01) and high == pytest.approx(0.25 + half, abs=0.01)


def test_hits_that_depend_on_each_other_say_less() -> None:
    hits = [n < 100 for n in range(400)]
    alone = figures.interval(hits, [str(n) for n in range(400)])
    in_groups = figures.interval(hits, [str(n // 20) for n in range(400)])  # 20 groups, all hit or all missed
    assert in_groups[1] - in_groups[0] > 3 * (alone[1] - alone[0])


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), min_size=1, max_size=20))
def test_an_interval_is_repeatable_and_within_what_was_seen(pairs: list[tuple[bool, str]]) -> None:
    hits, groups = [hit for hit, _ in pairs], [group for _, group in pairs]
    low, high = figures.interval(hits, groups)
    assert (low, high) == figures.interval(hits, groups)
    assert min(hits) <= low <= high <= max(hits)
    if len(set(groups)) == 1:
        assert low == high == pytest.approx(statistics.fmean(hits))


def test_the_summary_is_in_percent_and_means() -> None:
    trials = [trial(True, group="a"), trial(False, group="b"), trial(False, group="c"), trial(False, group="d")]
    summary = figures.summary(trials)
    assert (summary["n"], summary["exact_match"], summary["forwards"], summary["ms"]) == (4, 25.0, 3.0, 20.0)
    assert summary["exact_match_95"] == [0.0, 75.0]
    assert summary["answered"] == 100.0


def test_a_difference_is_taken_hole_by_hole() -> None:
    first = [trial(n % 2 == 0, group=str(n)) for n in range(200)]
    better = [trial(n % 2 == 0 or n % 10 == 1, group=str(n)) for n in range(200)]
    gain, low, high = figures.difference(first, better)
    assert gain == 10.0 and 4.0 < low < 10.0 < high < 16.0
    assert figures.difference(first, first) == (0.0, 0.0, 0.0)


def traced(text: str, first: str, uncorrected: str, *batch: str, renoised: int = 0, revised: int = 0) -> figures.Trial:
    one, before, *others = [Candidate(text=other) for other in (first, uncorrected, text, *batch)]
    trace = Trace(first=one, uncorrected=before, batch=tuple(others), renoised=renoised, revised=revised)
    return figures.judge(cut(), Result(candidates=(Candidate(text=text),), trace=trace))


def test_what_the_choice_gains() -> None:
    trials = [
        traced("f(1)", "f(2)", "f(1)"),  # the ranking's merit
        traced("f(1)", "g", "f(3)", renoised=2, revised=1),  # that of self-correction
        traced("f(3)", "f(2)", "f(3)", "f(1)", renoised=1),  # it was there
        traced("f(3)", "f(1)", "f(1)", renoised=1, revised=1),  # made worse
    ]
    found = figures.choices(trials)
    names = ("exact_first", "exact_ranked", "exact_corrected", "exact_best", "renoised", "revised", "revised_ids")
    assert [found[name] for name in names] == [25.0, 50.0, 50.0, 100.0, 75.0, 50.0, 0.5]
    assert found["correction_exact"] == 0.0 == found["correction_similarity"]
    assert figures.choices([trial(True)]) == {}


def test_the_gate_counts_what_would_be_shown() -> None:
    trials = [trial(True, 0.9), trial(False, 0.35), trial(True, 0.34), figures.judge(cut(), answer(None))]
    assert figures.gate(trials, 0.35) == {"shown": 50.0, "exact_of_shown": 50.0}
    assert figures.gate(trials, 0.95) == {"shown": 0.0, "exact_of_shown": None}
    assert figures.gate([trial(True)], 0.35) == {}  # no calibration


def test_reliability_puts_answers_into_tenths() -> None:
    bins = figures.reliability([trial(True, 1.0), trial(True, 0.92), trial(False, 0.9), trial(False, 0.0), trial(True)])
    assert bins == [
        {"from": 0, "to": 10, "n": 1, "confidence": 0.0, "exact": 0.0},
        {"from": 90, "to": 100, "n": 3, "confidence": 94.0, "exact": 66.667},
    ]
