"""Lengths without training, on models whose logits are planted, so that the right answer is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from diffusion import floating
from diffusion.api import FillRequest
from diffusion.chat_layout import fill_prompt
from diffusion.clamping import BEST_LENGTHS
from diffusion.infill import Draft
from diffusion.opening import Desk, Tally
from diffusion.profiles import ModelProfile
from diffusion.ranking import Outcome
from diffusion.span_rules import Alphabet
from diffusion.spans import POSITIONS, SpanTask, encode
from diffusion.stopping import Cancelled, Limits
from diffusion.vocabulary import Vocabulary
from tests.chat_models import TOKENS, small_profile, train_tokenizer

SIZE = 900
SUFFIX = "\n    return total\n\n\nprint(mean([1, 2]))\n"
PREFIX = "def mean(values):\n    total = 0.0\n    for value in values:\n        total"


class Planted:
    """Wants to write `ids` behind the encoder's ids, whatever the canvas holds, with a logit of `sure`; `also` may
    change the logits (B, S, V) of canvases (B, S). Remembers what it is asked for."""

    device, dtype, vocabulary_size = torch.device("cpu"), torch.float32, SIZE

    def __init__(self, ids: Sequence[int], also: Callable[[Tensor, Tensor], None] | None = None, sure: float = 12.0):
        self.ids, self.also, self.sure = [*ids, *[TOKENS["turn_end"]], *[TOKENS["eos"]] * 300], also, sure
        self.prompts: list[tuple[int, ...]] = []
        self.canvases: list[Tensor] = []

    def encode(self, ids: Sequence[int], cache: object) -> int:
        self.prompts.append(tuple(ids))
        return len(ids)

    def decode(self, ids: Tensor, positions: Tensor, cache: object, *signal: Tensor | None) -> Tensor:
        self.canvases.append(ids)
        logits = torch.zeros(*ids.shape, SIZE)
        wanted = torch.tensor(self.ids)[positions - len(self.prompts[0])]
        logits.scatter_(-1, wanted[..., None], self.sure)
        if self.also:
            self.also(logits, ids)
        return logits

    def logits(self, hidden: Tensor) -> Tensor:
        return hidden

    def tensor(self, rows: Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(rows, dtype=torch.long)


class Bench:
    """A profile, its tokenizer, and fills on planted models."""

    def __init__(self, profile: ModelProfile) -> None:
        self.profile = profile
        self.texts = Vocabulary(profile.weights / "tokenizer.json", profile.specials)
        self.alphabet = Alphabet(self.texts.texts, SIZE, profile, torch.device("cpu"))

    def ids(self, text: str) -> tuple[int, ...]:
        return encode(text, self.texts)

    def task(self, prefix: str = PREFIX, suffix: str = SUFFIX, **more) -> SpanTask:  # type: ignore[no-untyped-def]
        prompt = fill_prompt(
            FillRequest(id="1", prefix=prefix, suffix=suffix, language="python"), self.texts, self.profile
        )
        arguments = {"width": 48, "one_line": False, "candidates": 1, "steps": 8, **more}
        return SpanTask(prompt=prompt, texts=self.texts, alphabet=self.alphabet, **arguments)

    def run(self, model: Planted, task: SpanTask, limits: Limits | None = None) -> tuple[list[Draft], Outcome, Tally]:
        tally = Tally()
        desk = Desk(model=model, cache=None, profile=self.profile, tally=tally)  # type: ignore[arg-type]
        *drafts, outcome = floating.fill(task, desk, limits or Limits())
        assert isinstance(outcome, Outcome) and all(isinstance(draft, Draft) for draft in drafts)
        return drafts, outcome, tally  # type: ignore[return-value]

    def best(self, model: Planted, task: SpanTask) -> str:
        return self.texts.decode(self.run(model, task)[1].middles[0].ids)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    folder = tmp_path_factory.mktemp("planted")
    train_tokenizer(SIZE, folder / "tokenizer.json")
    return Bench(small_profile(folder, SIZE))


@pytest.mark.parametrize(
    ("middle", "one_line"),
    [(" += value", True), (" += value\n    total /= len(values)", False), (" = value or total", True), ("", False)],
)
def test_a_floating_canvas_finds_the_length(bench: Bench, middle: str, one_line: bool) -> None:
    """What healing took out comes first: " total" is what the model has to begin with."""
    planted = bench.ids(" total" + middle + SUFFIX)
    model = Planted(planted)
    drafts, outcome, tally = bench.run(model, bench.task(one_line=one_line))
    assert bench.texts.decode(outcome.middles[0].ids) == "total" + middle
    assert outcome.finish == "stop" and outcome.middles[0].ended
    # Two steps find the same middle twice, two more settle the clamped canvases; then one renoises the suffix heads.
    assert tally.forwards <= 6 and len(drafts) in (tally.forwards, tally.forwards - 1)


def test_of_the_lengths_around_the_one_that_leads_over_to_the_suffix_wins(bench: Bench) -> None:
    """Behind a slot that is too short or too long the planted text goes over a suffix that stands elsewhere."""
    middle = "total += value"
    ids = bench.ids(middle + SUFFIX)
    model = Planted(ids)
    _, outcome, _ = bench.run(model, bench.task(length=None))
    scores = {len(m.ids): m.suffix_score for m in outcome.middles}
    right = len(bench.ids(middle))
    assert scores.keys() == {right + shift for shift in (-2, -1, 0, 1, 2)}
    assert max(scores, key=lambda n: scores[n]) == right
    assert all(scores[right] > scores[n] + 1 for n in scores if n != right)


def test_a_length_that_is_known_is_not_searched(bench: Bench) -> None:
    model = Planted(bench.ids("total += value" + SUFFIX))
    task = bench.task(length=len(bench.ids("total += value")))
    drafts, outcome, _ = bench.run(model, task)
    assert bench.texts.decode(outcome.middles[0].ids) == "total += value"
    assert {len(draft.slot) for draft in drafts} == {task.length}


def sure_at(bench: Bench, right: int) -> Callable[[Tensor, Tensor], None]:
    """The model never writes the suffix, but it is sure of itself where the suffix is pinned right behind the right
    length."""
    head = torch.tensor(bench.ids(SUFFIX)[:4])

    def change(logits: Tensor, ids: Tensor) -> None:
        for row in range(len(ids)):
            pinned = ids.shape[1] >= right + 4 and bool((ids[row, right : right + 4] == head).all())
            logits[row] *= 1.0 if pinned else 0.3

    return change


@pytest.mark.parametrize("right", [4, 8, 16, 24])
def test_where_the_suffix_is_not_found_the_surest_length_wins(bench: Bench, right: int) -> None:
    """Alignment fails: the model goes on with something else for ever."""
    endless = "total" + " = sum(values) +" * 20
    model = Planted(bench.ids(endless), also=sure_at(bench, right), sure=20.0)
    _, outcome, _ = bench.run(model, bench.task())
    assert len(outcome.middles) == BEST_LENGTHS
    assert right in {len(middle.ids) for middle in outcome.middles}
    best = max(outcome.middles, key=lambda middle: middle.decoder_score)
    assert len(best.ids) == right
    assert bench.texts.decode(best.ids) == bench.texts.decode(bench.ids(endless)[:right])


def test_pins_are_on_every_clamped_canvas_and_on_no_floating_one(bench: Bench) -> None:
    model = Planted(bench.ids("total += value" + SUFFIX))
    bench.run(model, bench.task())
    head = list(bench.ids(SUFFIX)[:8])
    lengths = {len(bench.ids("total += value")) + shift for shift in (-2, -1, 0, 1, 2)}
    clamped = [canvas for canvas in model.canvases if len(canvas) > 1]
    for canvas in clamped[:-1]:  # in the last one heads are renoised
        for row in canvas.tolist():
            assert any(row[n : n + 8] == head for n in lengths)
    assert all(canvas.shape[1] == 48 for canvas in model.canvases if len(canvas) == 1 and canvas is model.canvases[0])


def test_a_stem_is_spelled_even_where_the_model_wants_something_else(bench: Bench) -> None:
    """The author has typed "total"; the model would write "count"."""
    model = Planted(bench.ids("count += value" + SUFFIX))
    drafts, outcome, _ = bench.run(model, bench.task(one_line=True))
    for draft in drafts:
        assert bench.texts.decode(draft.slot).startswith("total")
    assert all(bench.texts.decode(middle.ids).startswith("total") for middle in outcome.middles)


def test_fences_turns_and_channels_are_never_written(bench: Bench) -> None:
    """The model wants to close its fence, to open a channel, to end its turn; all the time."""
    bad = [TOKENS["channel"], TOKENS["turn_end"], TOKENS["turn"], *bench.alphabet.closing, SIZE - 1]

    def change(logits: Tensor, _: Tensor) -> None:
        logits[..., bad] += 30.0

    model = Planted(bench.ids("total += value" + SUFFIX), also=change)
    for length in (None, 5):
        _, outcome, _ = bench.run(model, bench.task(length=length))
        assert not set(bad) & {token for middle in outcome.middles for token in middle.ids}


def test_where_nothing_follows_the_model_says_where_its_text_ends(bench: Bench) -> None:
    text = "total += value\n    return total"
    closing = bench.ids("\n```")
    model = Planted([*bench.ids(text), *closing])
    for one_line, expected in ((False, text), (True, "total += value")):
        _, outcome, tally = bench.run(model, bench.task(suffix="\n\n", one_line=one_line))
        assert bench.texts.decode(outcome.middles[0].ids) == expected
        assert outcome.finish == "stop" and tally.forwards <= 3
    endless = Planted(bench.ids("total" + " + total" * 90))
    _, outcome, _ = bench.run(endless, bench.task(suffix=""))
    assert outcome.finish == "length" and len(outcome.middles[0].ids) == 48


def test_where_nothing_follows_several_canvases_float(bench: Bench) -> None:
    """By chance one is unlike the other: half sure of two middles, the model writes now this one and now that one."""
    closing = bench.ids("\n```")
    one, other = ([*bench.ids("total" + more), *closing, TOKENS["turn_end"]] for more in (" += value", " -= value"))
    assert len(one) == len(other)
    differs = next(at for at, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)

    def change(logits: Tensor, ids: Tensor) -> None:
        for row in range(len(ids)):
            logits[row, differs, other[differs]] = 14.0 if ids[row, 0] % 2 else 0.0

    _, outcome, _ = bench.run(Planted(one, also=change), bench.task(suffix="", candidates=6, steps=1))
    texts = {bench.texts.decode(middle.ids) for middle in outcome.middles}
    assert texts == {"total += value", "total -= value"}
    assert all(middle.ended for middle in outcome.middles)


@pytest.mark.parametrize("suffix", [")\n", "\n    return total\n"])
def test_a_model_that_ends_its_text_at_once_says_nothing_of_the_length(bench: Bench, suffix: str) -> None:
    """The suffix is so short that the model may end its text on the canvas; it does so without a word."""
    assert not bench.task(prefix="f(  ", suffix=suffix).prompt.healed.taken
    _, outcome, _ = bench.run(Planted([]), bench.task(prefix="f(  ", suffix=suffix))
    assert all(middle.ids for middle in outcome.middles) and len(outcome.middles) == BEST_LENGTHS
    early = Planted(bench.ids("total += value"))  # ... or behind the middle, without the suffix
    _, outcome, _ = bench.run(early, bench.task(suffix="\n    return total\n"))
    assert len(bench.ids("total += value")) in {len(middle.ids) for middle in outcome.middles}
    _, edited, _ = bench.run(early, bench.task(suffix="\n    return total\n", canvases=4))
    assert bench.texts.decode(edited.middles[0].ids).startswith("total") and edited.finish == "stop"


def test_no_batch_is_larger_than_memory_is_planned_for(bench: Bench) -> None:
    wide = replace(bench.profile, layout=replace(bench.profile.layout, widths=(64, 256)))
    model = Planted(bench.ids("total" + " + value" * 60 + SUFFIX))
    desk = Desk(model=model, cache=None, profile=wide, tally=Tally())  # type: ignore[arg-type]
    *_, outcome = floating.fill(bench.task(width=256), desk, Limits())
    assert isinstance(outcome, Outcome) and len(outcome.middles[0].ids) > 100
    assert max(canvas.numel() for canvas in model.canvases) <= POSITIONS


def test_a_middle_that_is_empty_is_said_to_be_empty(bench: Bench) -> None:
    task = bench.task(prefix="def mean(values):\n    total  ", suffix=SUFFIX)
    assert not task.prompt.healed.taken
    _, outcome, _ = bench.run(Planted(bench.ids(SUFFIX)), task)
    assert [middle.ids for middle in outcome.middles] == [()]


def test_a_long_span_goes_over_several_canvases(bench: Bench) -> None:
    text = "total" + "".join(f"\n    total += values[{i}]" for i in range(12))
    model = Planted(bench.ids(text + SUFFIX))
    drafts, outcome, tally = bench.run(model, bench.task(canvases=8))
    assert bench.texts.decode(outcome.middles[0].ids) == text
    assert tally.encodes > 2 and outcome.finish == "stop"
    for before, after in zip(model.prompts, model.prompts[1:], strict=False):
        assert after[: len(before)] == before
        assert bench.texts.decode(after[len(before) :]).count("\n") >= 1  # whole lines
    assert text.startswith(bench.texts.decode(drafts[-1].ids))
    _, cut, _ = bench.run(Planted(bench.ids(text * 20)), bench.task(canvases=2))
    assert cut.finish == "length" and not cut.middles[0].ended


def test_a_start_is_what_the_canvas_starts_from_and_a_candidate(bench: Bench) -> None:
    hint = bench.ids("total -= value")
    model = Planted(bench.ids("total += value\n    x = 1" + SUFFIX))
    _, outcome, _ = bench.run(model, bench.task(hints=(hint,)))
    assert model.canvases[0][0, : len(hint)].tolist() == list(hint)
    assert len(hint) in {len(middle.ids) for middle in outcome.middles}


def test_a_past_deadline_gives_the_draft_at_hand_and_a_cancel_ends_everything(bench: Bench) -> None:
    model = Planted(bench.ids("total += value" + SUFFIX))
    _, outcome, tally = bench.run(model, bench.task(), Limits(arrived=0.0, deadline_ms=1.0))
    assert outcome.finish == "deadline" and tally.forwards == 1
    assert bench.texts.decode(outcome.middles[0].ids) == "total += value"
    for calls in range(6):
        asked = iter([False] * calls + [True] * 99)
        with pytest.raises(Cancelled):
            bench.run(model, bench.task(), Limits(cancelled=lambda asked=asked: next(asked)))  # type: ignore[misc]


def test_the_same_seed_gives_the_same_middles(bench: Bench) -> None:
    def run(seed: int) -> tuple[Outcome, list[list[int]]]:
        model = Planted(bench.ids("total += value" + SUFFIX), sure=7.0)
        outcome = bench.run(model, bench.task(seed=seed))[1]
        return outcome, [ids for canvas in model.canvases for ids in canvas.tolist()]

    assert run(3) == run(3)
    assert run(3)[1] != run(4)[1]


def test_a_slot_never_outgrows_the_widest_canvas(bench: Bench) -> None:
    model = Planted(bench.ids("total" + " + value" * 100))
    _, outcome, _ = bench.run(model, bench.task(length=5000))
    assert len(outcome.middles[0].ids) == bench.profile.layout.widths[-1] - bench.profile.layout.pins
