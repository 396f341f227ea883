"""The whole engine with a chat profile on a tiny random model of the real class: what fills and edits obey whatever the
model says, what typing costs, and a checkpoint that a user brings along."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import platformdirs
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, normalizers
from transformers import DiffusionGemmaConfig, DiffusionGemmaForBlockDiffusion

from diffusion import profiles
from diffusion.api import BadRequest, Draft, EditRequest, EngineError, FillRequest, Result
from diffusion.engine import ResidentEngine, load
from diffusion.vocabulary import Vocabulary
from tests.chat_models import SOURCES, SPECIALS, TOKENS, UNUSED, train_tokenizer

from . import small_moe
from .chat_tiny import make_chat_tiny
from .conftest import Tiny


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> ResidentEngine:
    chat = make_chat_tiny(tmp_path_factory.mktemp("chat"))
    return ResidentEngine(chat.profile, chat.vocabulary, chat.model)


def fill(marked: str = "def f(a):\n    x = fo│)\n    return x\n", **more: Any) -> FillRequest:
    prefix, suffix = marked.split("│")
    return FillRequest(id="1", prefix=prefix, suffix=suffix, **{"language": "python", "steps": 3, **more})


def edit(selected: str = "b = 2\n", **more: Any) -> EditRequest:
    asked = {"before": "a = 1\n", "after": "c = 3\n", "instruction": "rename b", "steps": 2, **more}
    return EditRequest(id="1", selected=selected, **asked)


def result(engine: ResidentEngine, asked: FillRequest | EditRequest, **more: Any) -> Result:
    *drafts, last = engine.fill(asked, **more)
    assert all(isinstance(event, Draft) for event in drafts) and isinstance(last, Result)
    return last


@settings(max_examples=30)
@given(
    before=st.text(alphabet="ab_( \n\t.=é`", max_size=60),
    after=st.text(alphabet="ab_) \n\t:", max_size=60),
    mode=st.sampled_from(["line", "block"]),
    n=st.integers(1, 4),
    starts=st.lists(st.text(alphabet="ab(\n", max_size=8), max_size=3),
)
def test_any_text_gets_an_answer_that_obeys_its_mode(
    engine: ResidentEngine, before: str, after: str, mode: str, n: int, starts: list[str]
) -> None:
    asked = fill(before + "│" + after, mode=mode, max_lines=3, n=n, drafts=True, cells=True, starts=tuple(starts))
    *drafts, last = engine.fill(asked)
    assert isinstance(last, Result) and all(isinstance(draft, Draft) and draft.cells for draft in drafts)
    texts = [candidate.text for candidate in last.candidates]
    assert len(set(texts)) == len(texts) <= n
    for candidate in last.candidates:
        assert candidate.text.count("\n") <= (0 if mode == "line" else 2) and candidate.confidence is None
        assert not before[len(before) - candidate.replace_before :].strip(" \t")
        assert not re.search(r"<\|?\w+\|?>", candidate.text)


def test_the_same_seed_gives_the_same_text_warm_or_cold(engine: ResidentEngine) -> None:
    asked = fill(seed=4, n=3)
    first = result(engine, asked)
    warm = result(engine, asked)
    assert warm.candidates == first.candidates == result(engine, fill(seed=4, n=3, client="cold")).candidates
    assert warm.cost.encoded == 0 and warm.cost.cached > 0
    assert [draft.step for draft in engine.fill(fill(drafts=True)) if isinstance(draft, Draft)]


def test_typing_encodes_a_few_ids_only(engine: ResidentEngine) -> None:
    start, source = min((text.find("\n\n\n", 1500), text) for text in SOURCES if "\n\n\n" in text[1500:-350])
    encoded = []
    for at in range(start, start + 150):
        outcome = result(engine, fill(source[:at] + "│\n" + source[start + 200 :], client="typist", length_of="1"))
        encoded.append(outcome.cost.encoded)
    moved, typed = [n for n in encoded if n > 100], [n for n in encoded if n <= 100]
    # The first request, and the window may move once in so short a while.
    assert encoded[0] == moved[0] > 200 and len(moved) <= 2
    assert sum(typed) / len(typed) < 3


def test_a_known_length_is_counted_with_what_healing_took(engine: ResidentEngine) -> None:
    length = len(engine._vocabulary.encode(" fo12345"))
    drafts = [e for e in engine.fill(fill(length_of="12345", drafts=True, cells=True)) if isinstance(e, Draft)]
    assert drafts and all(draft.cells is not None and len(draft.cells) == length > 5 for draft in drafts)


def test_a_deadline_gives_the_best_draft_and_after_a_cancel_no_event_follows(engine: ResidentEngine) -> None:
    late = result(engine, fill(deadline_ms=1.0), arrived=time.monotonic() - 10)
    assert late.finish == "deadline" and late.cost.forwards == 1
    assert list(engine.fill(fill(drafts=True), cancelled=lambda: True)) == []
    seen: list[object] = []
    for event in engine.fill(fill(drafts=True), cancelled=lambda: len(seen) >= 2):
        seen.append(event)  # noqa: PERF402
    assert len(seen) == 2 and all(isinstance(event, Draft) for event in seen)


def test_an_edit_streams_drafts_and_is_whole_or_nothing(engine: ResidentEngine) -> None:
    """A random model finds the end of its text by chance: half of a selection is never an answer."""
    finishes = set()
    for seed in range(6):
        for selected, after in (("b = 2\n", "c = 3\n"), ("b = 2\n" * 12, "c = 3\n"), ("b", " = 2\n"), ("b = 2\n", "")):
            *drafts, last = engine.fill(edit(selected, after=after, drafts=True, seed=seed))
            assert drafts and isinstance(last, Result)
            # An empty answer is none: nobody asked for the selection to be deleted.
            assert len(last.candidates) <= (last.finish == "stop")
            assert all(candidate.replace_before == 0 for candidate in last.candidates)
            if after == "":
                assert all(candidate.text.endswith("\n") for candidate in last.candidates)
            finishes.add(last.finish)
    assert finishes == {"stop", "length"}
    assert result(engine, edit(deadline_ms=1.0), arrived=time.monotonic() - 10).candidates == ()


def test_an_edit_too_long_for_the_model_is_refused(engine: ResidentEngine) -> None:
    with pytest.raises(BadRequest, match="the selection is too long"):
        list(engine.fill(edit("x = 1\n" * 3000)))


def test_a_tokenizer_that_changes_code_is_refused(engine: ResidentEngine, tmp_path: Path) -> None:
    """Here one that takes two blanks for one."""
    tokenizer = Tokenizer.from_file(str(engine._profile.weights / "tokenizer.json"))
    tokenizer.normalizer = normalizers.Replace("  ", " ")
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vocabulary = Vocabulary(tmp_path / "tokenizer.json", engine._profile.specials)
    with pytest.raises(EngineError, match="does not give code back"):
        ResidentEngine(engine._profile, vocabulary, engine._model)


def test_a_model_that_takes_no_instructions_says_so(tiny: Tiny) -> None:
    native = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    with pytest.raises(EngineError, match="takes no instructions") as caught:
        list(native.fill(edit()))
    assert "diffusiongemma-26b-a4b-it" in caught.value.hint and "embedded" not in caught.value.hint


def test_the_shipped_architecture_is_the_26b_checkpoint_s() -> None:
    """25.2 billion parameters, as its card says, 22.8 of them in experts; built without memory."""
    architecture = profiles.load_profile("diffusiongemma").architecture
    body = small_moe.config() | {"text_config": architecture}
    with torch.device("meta"):
        decoder = DiffusionGemmaForBlockDiffusion(DiffusionGemmaConfig.from_dict(body)).model.decoder
    sizes = {name: parameter.numel() for name, parameter in decoder.named_parameters()}
    assert round(sum(sizes.values()) / 1e9, 1) in (25.2, 25.3)
    assert round(sum(size for name, size in sizes.items() if ".experts." in name) / 1e9, 1) == 22.8
    full = [number for number, kind in enumerate(decoder.config.text_config.layer_types) if kind == "full_attention"]
    assert full == [5, 11, 17, 23, 29]


@pytest.fixture
def precision() -> Iterator[None]:
    """Loading sets it for the whole process."""
    before, threads = torch.get_float32_matmul_precision(), torch.get_num_threads()
    yield
    torch.set_float32_matmul_precision(before)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("quantised", [False, True])
def test_a_user_s_own_checkpoint_of_the_class_works(
    quantised: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: None
) -> None:
    """As the shipped profile tells: a copy of it with another name, weights, ids and sizes."""
    size = 640
    weights = tmp_path / "weights"
    weights.mkdir()
    body = small_moe.config(vocab_size=size, sliding_window=64)
    small_moe.save(small_moe.library_model(body), weights)
    (weights / "config.json").write_text(json.dumps(body))
    train_tokenizer(size, weights / "tokenizer.json")
    text = (Path(profiles.__file__).parent / "profiles/diffusiongemma-26b-a4b-it.toml").read_text()
    text = text[: text.index("\n[architecture]")]
    changes = {"name": '"mine"', "aliases": "[]", "weights": json.dumps(str(weights)), "first_text": str(len(SPECIALS))}
    changes |= {"last_text": str(size - UNUSED - 1)} | {name: str(token) for name, token in TOKENS.items()}
    for name, value in changes.items():
        text, found = re.subn(rf"(?m)^{name} = [^#\n]*", f"{name} = {value} ", text)
        assert found == 1, name
    if not quantised:
        text = re.sub(r"\[quantisation\]\n(.+\n)+", "", text)
    monkeypatch.setattr(platformdirs, "user_config_path", lambda _: tmp_path)
    (tmp_path / "profiles").mkdir()
    (tmp_path / "profiles/mine.toml").write_text(text)
    engine = load("mine")
    assert engine.name == "mine"
    outcome = result(engine, fill(n=3))
    assert outcome.cost.forwards > 2 and outcome.model == "mine"
    assert list(engine.fill(edit(drafts=True)))
