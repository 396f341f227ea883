"""The encoder decoding by itself: the library's forward over the whole text, one id after the other, is the oracle."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from diffusion import blocks, layouts, left_to_right
from diffusion.api import Candidate, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.left_to_right import BEGINNINGS, BEHIND, LINE_BEGINNINGS, LINE_BREAKS, MAX_IDS, Line, beginnings, lines
from diffusion.opening import Desk, Task, opened
from diffusion.profiles import FEATURES, Calibration
from diffusion.samplers import BANNED
from diffusion.stopping import Limits

from .conftest import Tiny, prepared
from .test_copying import naive


@pytest.fixture(scope="module")
def engine(tiny: Tiny) -> ResidentEngine:
    # Weights of the confidence that nobody would take for a probability.
    calibration = Calibration(confidence_weights=(3.0,) * FEATURES, confidence_bias=1.0)
    return ResidentEngine(replace(tiny.profile, calibration=calibration), tiny.vocabulary, tiny.model)


def request(marked: str, **more) -> FillRequest:  # type: ignore[no-untyped-def]
    prefix, suffix = marked.split("│")
    given = {"language": "python", "decoding": "left-to-right", **more}
    return FillRequest(id="1", prefix=prefix, suffix=suffix, **given)


def answer(engine: ResidentEngine, asked: FillRequest) -> Result:
    (last,) = engine.fill(asked)
    assert isinstance(last, Result)
    return last


def with_copies(
    log_p: torch.Tensor, texts: list[tuple[int, ...]], behind: tuple[int, ...], weights: tuple[float, ...]
) -> torch.Tensor:
    """log_p (V,) of the model behind the ids `behind` -> (V,) with what stood behind the same ones in `texts`."""
    copied, agree = naive(texts, behind, len(weights) - 1)
    p = (1 - weights[agree]) * log_p.exp()
    for token, share in copied.items():
        p[token] += weights[agree] * share
    return p.log()


def greedy(tiny: Tiny, asked: FillRequest) -> tuple[str, float, bool]:
    """The text, its log probability with that of its end, and whether it came to one."""
    prompt = layouts.native(asked, tiny.vocabulary, tiny.profile)
    ids, newlines, score = [*prompt.encoder, *prompt.typed], tiny.vocabulary.newline_ids, 0.0
    written = list(prompt.typed)
    blanks = blocks.indentations(asked.prefix, asked.suffix, asked.language)
    starts = {tiny.vocabulary.encode_line(f"\n{indent}x")[0] for indent in blanks} if blanks else newlines
    while len(written) < MAX_IDS:
        with torch.no_grad():
            hidden = tiny.library.model.encoder.language_model(input_ids=torch.tensor([ids])).last_hidden_state
            log_p = tiny.model.logits(hidden[0, -1]).log_softmax(-1)
        log_p = with_copies(log_p, [prompt.before], (*prompt.before, *written), tiny.profile.copying)
        first = prompt.starts_line and not written
        may = [
            token
            for token in range(len(tiny.vocabulary))
            if token == tiny.profile.tokens["eof"]
            or (token >= tiny.profile.specials and (token in starts if first else True))
        ]
        token = max(may, key=lambda one: float(log_p[one]))
        score += float(log_p[token])
        if token == tiny.profile.tokens["eof"] or (token in newlines and not first):
            return tiny.vocabulary.decode(written), score, True
        written.append(token)
        ids.append(token)
    return tiny.vocabulary.decode(written), score, False


@pytest.mark.parametrize(
    "marked", ["def f(a):\n    return │\n", "import os\n\nx│ = 1\n", "def f():\n    │", "│", "for a in b:\n│\nx = 1\n"]
)
def test_it_writes_what_the_library_writes_greedily(engine: ResidentEngine, tiny: Tiny, marked: str) -> None:
    asked = request(marked)
    found, (text, score, ended) = answer(engine, asked), greedy(tiny, asked)
    assert found.finish == ("stop" if ended else "length")
    assert found.cost.forwards == 0 and found.cost.encodes > 0
    prompt = layouts.native(asked, tiny.vocabulary, tiny.profile)
    if prompt.starts_line:
        blanks = prompt.held_back.removeprefix("\n")
        text = text.removeprefix("\n")
        kept = text.startswith(blanks)
        text, before = (text[len(blanks) :], 0) if kept else (text, len(blanks))
    else:
        text, before = text.removeprefix(prompt.forced), 0
    if not text.strip():
        assert found.candidates == ()
        return
    (candidate,) = found.candidates
    assert candidate == Candidate(text=text, replace_before=before, confidence=candidate.confidence)
    assert candidate.confidence == pytest.approx(math.exp(score), rel=1e-2)


def test_neither_suffix_nor_starts_change_it(engine: ResidentEngine) -> None:
    def text(asked: FillRequest) -> list[str]:
        return [candidate.text for candidate in answer(engine, asked).candidates]

    plain = text(request("def f(a):\n    return │\n"))
    assert plain and text(request("def f(a):\n    return │\n\nclass B:\n", starts=("a + 1",))) == plain
    assert answer(engine, request("def f(a):\n    return │\n", decoding="diffusion")).cost.forwards > 0


def test_a_deadline_gives_what_there_is_and_a_cancelled_one_nothing(engine: ResidentEngine) -> None:
    late = answer(engine, request("def f(a):\n    return │\n", deadline_ms=1e-6))
    assert late.finish == "deadline" and late.cost.encodes == 0
    assert list(engine.fill(request("x = │\n"), cancelled=lambda: True)) == []


def desk_and_task(engine: ResidentEngine, tiny: Tiny, marked: str) -> tuple[Desk, Task]:
    task, desk = prepared(engine, tiny, request(marked, decoding="diffusion"))
    return desk, task


@pytest.mark.parametrize("marked", ["def f(a):\n    return │\n", "def f():\n    │\n    return a\n"])
def test_lines_of_a_batch_are_what_each_is_by_itself(
    engine: ResidentEngine, tiny: Tiny, marked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_to_right, "BEHIND", math.inf)
    desk, task = desk_and_task(engine, tiny, marked)
    starts = [Line(ids=(token, token + 1)) for token in (40, 90, 300)]
    together = lines(task, desk, Limits(), starts, 12)
    for start, line in zip(starts, together, strict=True):
        (alone,) = lines(task, desk, Limits(), [start], 12)
        assert line.ids[:2] == start.ids and (line.ids, line.finish) == (alone.ids, alone.finish)
        assert line.log_p == pytest.approx(alone.log_p, abs=1e-3)
    assert desk.cache.ids == list(task.prompt.encoder)


@pytest.mark.parametrize(
    "marked",
    [
        "def f(a):\n    return │\n",
        "x = fo│)\n",
        "x =  │)\n",
        "def f():\n    │\n    return a\n",
        "for a in b:\n│\nx = 1\n",
    ],
)
def test_lines_begin_with_what_both_sides_find_likely(engine: ResidentEngine, tiny: Tiny, marked: str) -> None:
    """A naive loop over all that may stand there is the oracle."""
    desk, task = desk_and_task(engine, tiny, marked)
    first_step = opened(task, desk)
    seen, begun, at_first = first_step.seen, first_step.spelled.ids, first_step.rules.at_first
    encoder = tiny.library.model.encoder.language_model

    def log_p(ids: tuple[int, ...]) -> torch.Tensor:
        tokens = torch.tensor([[*task.prompt.encoder, *ids]])
        with torch.no_grad():
            own = tiny.model.logits(encoder(input_ids=tokens).last_hidden_state[0, -1])
        rule = at_first if ids == begun else task.rules.elsewhere
        both = (own + rule).log_softmax(-1) / 2 + seen[len(ids)] / 2
        before, after = task.prompt.before, task.prompt.after
        return with_copies(both.log_softmax(-1), [before, after], (*before, *ids), tiny.profile.copying) + rule

    chances = {(*begun, token): float(p) for token, p in enumerate(log_p(begun)) if p > BANNED / 2}
    if task.prompt.starts_line:
        breaks = sorted(chances, key=lambda ids: -chances[ids])[:LINE_BREAKS]
        chances = {(*ids, token): chances[ids] + float(more) for ids in breaks for token, more in enumerate(log_p(ids))}
    found = {line.ids: line.log_p for line in beginnings(task, desk, first_step)}
    assert list(found) == sorted(chances, key=lambda ids: -chances[ids])[: len(found)]
    assert len(found) == (LINE_BEGINNINGS if task.prompt.starts_line else min(BEGINNINGS, len(chances)))
    assert all(log_p == pytest.approx(chances[ids], abs=1e-3) for ids, log_p in found.items())


def test_a_line_far_behind_another_is_given_up(engine: ResidentEngine, tiny: Tiny) -> None:
    desk, task = desk_and_task(engine, tiny, "def f(a):\n    return │\n")
    ended = next(
        line for token in range(32, 512) for line in lines(task, desk, Limits(), [Line(ids=(token,))], 12)
        if line.finish == "stop"
    )  # fmt: skip
    going = next(
        token for token in range(32, 512)
        if len(lines(task, desk, Limits(), [Line(ids=(token,))], 12)[0].ids) > len(ended.ids) + 2
    )  # fmt: skip
    starts = [Line(ids=ended.ids[:1]), Line(ids=(going,), log_p=ended.log_p - 10 * BEHIND)]
    first, second = lines(task, desk, Limits(), starts, 12)
    assert first.ids == ended.ids and second.finish == "length" and len(second.ids) <= len(ended.ids) + 1


def test_a_line_ends_where_the_cursors_line_goes_on(engine: ResidentEngine, tiny: Tiny) -> None:
    texts = tiny.vocabulary.texts

    def ends(asked: FillRequest) -> set[str]:
        task = engine.tasks.task(asked)
        return {texts[token] for token in task.ends.nonzero()[:, 0].tolist()}

    lines_and_file = {texts[token] for token in tiny.vocabulary.newline_ids} | {""}
    behind = ends(request("x = f(│)\n", decoding="diffusion")) - lines_and_file
    assert ")" in behind and all(text.startswith(")") for text in behind)
    assert ends(request("x = f(│  \n", decoding="diffusion")) == ends(request("x = f(│)\n")) == lines_and_file

    _, task = desk_and_task(engine, tiny, "x = f(a, │)\n")
    (closing,) = tiny.vocabulary.encode(")")
    logits = torch.zeros(len(texts))
    logits[closing] = 9.0
    task = replace(task, copies=None)
    written = (*task.prompt.typed, *tiny.vocabulary.encode("b"))
    assert left_to_right._next(task, logits, written)[::2] == (closing, True)
    open_inside = (*task.prompt.typed, *tiny.vocabulary.encode("b("))
    assert left_to_right._next(task, logits, open_inside)[::2] == (closing, False)
