"""Tokenizer, corpus reader, trainer: what goes in, what comes out, and what survives an interruption."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import EngineError, FillRequest
from diffusion.training.dataset import Corpus
from diffusion.training.evaluate import Cut, evaluate, heldout
from diffusion.training.export import export, read, resident
from diffusion.training.network import Size
from diffusion.training.trainer import Settings, Trainer

from .conftest import TEXTS, Tiny

SMALL = Size(vocabulary=512, hidden=32, inner=48, layers=2, heads=2, head_dim=16)


def trainer(tiny: Tiny, corpus: Path, folder: Path, **settings) -> Trainer:  # type: ignore[no-untyped-def]
    return Trainer(
        folder=folder,
        corpus=corpus,
        profile=tiny.profile,
        vocabulary=tiny.vocabulary,
        size=SMALL,
        settings=Settings(**{"batch": 1, "warm_start_tokens": 600, "loss_rows": 256, "warmup": 2, **settings}),
        device="cpu",
    )


def run(it: Trainer, steps: int) -> list[dict[str, float]]:
    return [it.step(rate=1.0) for _ in range(steps)]


@given(st.text(max_size=200))
def test_the_tokenizer_gives_back_what_it_got(tiny: Tiny, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()
    assert tiny.vocabulary.decode(tiny.vocabulary.encode(text)) == text.replace("\r\n", "\n").replace("\r", "\n")


def test_a_line_start_is_one_token_and_digits_are_single(tiny: Tiny) -> None:
    encode = tiny.vocabulary.encode
    assert len(encode("\n    ")) == len(encode("\n        ")) == len(encode("\n")) == 1
    assert len(encode("2026")) == 4
    assert all(tiny.vocabulary.texts[i].startswith("\n") for i in tiny.vocabulary.newline_ids)
    assert "<|mask|>" not in [tiny.vocabulary.texts[i] for i in encode("<|mask|>")]
    assert all(i >= tiny.vocabulary.specials for i in encode("<|mask|><|end|>"))


def test_files_are_drawn_and_read_whole(corpus: Path) -> None:
    rng = random.Random(0)
    drawn = {Corpus(corpus, "train").draw(rng).text for _ in range(300)}
    assert drawn <= set(TEXTS[:-2]) and len(drawn) > 10
    assert Corpus(corpus, "heldout").draw(rng, "python").text in TEXTS[-2:]


def test_an_empty_corpus_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="holds no train files"):
        Corpus(tmp_path, "train")


def test_training_learns_first_the_next_token_then_the_slot(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    it = trainer(tiny, corpus, tmp_path)
    losses = run(it, 30)
    assert "slot" not in losses[0] and sum("slot" in loss for loss in losses) > 10
    early, late = (sum(loss["next_token"] for loss in part) / 5 for part in (losses[:5], losses[-5:]))
    assert late < early - 0.5
    assert it.heldout_losses(batches=1) == it.heldout_losses(batches=1)


def test_an_interrupted_run_goes_on_as_if_it_had_not_been(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    whole, first = trainer(tiny, corpus, tmp_path / "a"), trainer(tiny, corpus, tmp_path / "b")
    expected = run(whole, 6)
    before = run(first, 3)
    first.save("state.pt")
    second = trainer(tiny, corpus, tmp_path / "b", seed=99)
    assert second.load("state.pt")
    assert before + run(second, 3) == expected
    for name, weight in whole.average.items():
        torch.testing.assert_close(weight, second.average[name], atol=0, rtol=0)


def test_a_damaged_checkpoint_is_a_clear_error(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    it = trainer(tiny, corpus, tmp_path)
    assert not it.load("state.pt")
    (tmp_path / "state.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(EngineError, match=r"state\.pt cannot be read"):
        it.load("state.pt")


def test_a_full_disk_keeps_the_last_good_checkpoint(
    tiny: Tiny, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = trainer(tiny, corpus, tmp_path)
    it.save("state.pt")
    good = (tmp_path / "state.pt").read_bytes()

    def full(_: object, path: Path) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(EngineError, match="No space left"):
        it.save("state.pt")
    assert (tmp_path / "state.pt").read_bytes() == good
    assert not list(tmp_path.glob("*.partial"))


def test_a_cooldown_leaves_the_state_to_be_continued(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    it = trainer(tiny, corpus, tmp_path)
    rates: list[float] = []

    def watched(progress, report):  # type: ignore[no-untyped-def]
        rates.append(it.adam.param_groups[0]["lr"])

    it.run(minutes=0.05, cooldown=0.03, on_step=watched, evaluate=dict)
    assert (tmp_path / "state.pt").is_file() and (tmp_path / "cooled.pt").is_file()
    assert rates[-1] < rates[2]
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == list(range(1, len(lines) + 1))
    stable = torch.load(tmp_path / "state.pt", weights_only=True)["progress"]["step"]
    assert 0 < stable < lines[-1]["step"]


def test_exported_weights_answer_like_those_in_memory(tiny: Tiny, corpus: Path, tmp_path: Path) -> None:
    from diffusion import model
    from diffusion.engine import ResidentEngine

    it = trainer(tiny, corpus, tmp_path)
    run(it, 3)
    stored = {name: weight.half().float() for name, weight in it.average.items()}
    memory = resident(stored, SMALL, tiny.profile, tiny.vocabulary)
    it.save("state.pt")
    profile = replace(tiny.profile, weights=tmp_path / "model")
    export(tmp_path / "state.pt", tiny.profile.weights / "tokenizer.json", profile.weights, profile, SMALL)
    disk = ResidentEngine(profile, tiny.vocabulary, model.load(profile))
    request = FillRequest(id="1", prefix="def f(a):\n    return ", suffix="\n", language="python", n=3)
    (one,), (other,) = memory.fill(request), disk.fill(request)
    assert [c.text for c in one.candidates] == [c.text for c in other.candidates]


def test_without_a_checkpoint_training_goes_on_from_the_exported_weights(
    tiny: Tiny, corpus: Path, tmp_path: Path
) -> None:
    it = trainer(tiny, corpus, tmp_path / "a")
    run(it, 3)
    it.save("state.pt")
    export(tmp_path / "a/state.pt", tiny.profile.weights / "tokenizer.json", tmp_path / "m", tiny.profile, SMALL)
    other = trainer(tiny, corpus, tmp_path / "b", seed=5)
    other.continue_from(*read(tmp_path / "m", SMALL))
    assert (other.progress.step, other.progress.text_tokens) == (3, it.progress.text_tokens)
    for name, weight in other.network.named_weights().items():
        torch.testing.assert_close(weight, it.average[name], atol=1e-3, rtol=1e-3)
    with pytest.raises(EngineError, match="another shape"):
        read(tmp_path / "m", Size(vocabulary=512, hidden=32, inner=40, layers=2, heads=2, head_dim=16))
    with pytest.raises(EngineError, match="cannot be continued from"):
        read(tmp_path / "nowhere", SMALL)


def test_exact_match_counts_what_a_user_would_see(tiny: Tiny, corpus: Path) -> None:
    from diffusion.engine import ResidentEngine

    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    cuts = list(heldout_python(corpus))
    score = evaluate(engine, cuts)
    assert score.n == len(cuts) and score.forwards >= 1
    # What an untrained model gets right it has copied.
    nothing_to_copy = [replace(cut, prefix="", suffix="") for cut in cuts]
    assert evaluate(engine, nothing_to_copy).exact_match == 0.0
    # A middle that the engine really answers is a hit, trailing blanks apart.
    request = FillRequest(id="1", prefix="x = ", suffix="\n", language="python", path="a.py")
    (answer,) = engine.fill(replace(request, length_of="777"))
    known = Cut(language="python", path="a.py", prefix="x = ", middle=answer.candidates[0].text + "  ", suffix="\n")
    if len(tiny.vocabulary.encode(known.middle)) == 3:
        assert evaluate(engine, [known], oracle_length=True).exact_match == 100.0


def heldout_python(corpus: Path) -> list[Cut]:
    """Languages without held-out files are left out."""
    cuts = list(heldout(corpus, 6))
    assert {cut.language for cut in cuts} == {"python"}
    return cuts
