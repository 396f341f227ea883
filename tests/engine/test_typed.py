"""Cursors inside of a token: what is typed already stays, and the model is asked for whole tokens."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from diffusion import infill, opening
from diffusion.api import FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.opening import Desk, Task
from diffusion.ranking import Outcome
from diffusion.spelling import SPELLED, Typed
from diffusion.stopping import Limits

from .conftest import Tiny, prepared


@pytest.fixture(scope="module")
def engine(tiny: Tiny) -> ResidentEngine:
    return ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)


def at_cursor(engine: ResidentEngine, tiny: Tiny, marked: str, **more) -> tuple[Task, Desk]:  # type: ignore[no-untyped-def]
    prefix, suffix = marked.split("│")
    asked = FillRequest(id="1", prefix=prefix, suffix=suffix, **{"language": "python", **more})
    return prepared(engine, tiny, asked)


@settings(max_examples=40)
@given(
    typed=st.text(st.sampled_from("ab_zE1.([=\"' "), min_size=1, max_size=12),
    mode=st.sampled_from(["line", "block"]),
    starts=st.lists(st.sampled_from(["x", "elf", "(a)", "1"]), max_size=2),
)
def test_every_middle_begins_with_what_is_typed(
    engine: ResidentEngine, tiny: Tiny, typed: str, mode: str, starts: list[str]
) -> None:
    task, desk = at_cursor(
        engine, tiny, f"def f(a):\n    b = a{typed}│\n    return b\n", mode=mode, n=3, starts=tuple(starts)
    )
    (last,) = (event for event in infill.fill(task, desk, Limits()) if isinstance(event, Outcome))
    assert last.middles
    for middle in last.middles:
        assert tiny.vocabulary.decode(middle.ids).startswith(task.prompt.forced)


@pytest.mark.parametrize("marked", ["x = se│\n", "f(│)\n", "self.zqj│\n", "x = 1.│\n", "import os\nimpo│\n"])
def test_what_is_typed_is_spelled_as_the_encoder_likes_best(engine: ResidentEngine, tiny: Tiny, marked: str) -> None:
    """The library's forward over the whole text is the oracle, and a loop over all ids."""
    task, desk = at_cursor(engine, tiny, marked)
    task = replace(task, copies=None)
    spelled, texts = opening.opened(task, desk).spelled, tiny.vocabulary.texts
    left, ids, log_p = task.prompt.forced, list[int](), 0.0
    while True:
        with torch.no_grad():
            encoder = tiny.library.model.encoder.language_model
            hidden = encoder(input_ids=torch.tensor([[*task.prompt.encoder, *ids]])).last_hidden_state
        logits = tiny.model.logits(hidden[0, -1])
        p = logits.softmax(-1).tolist()
        whole = sum(p[token] for token, text in enumerate(texts) if text.startswith(left))
        pieces = [token for token, text in enumerate(texts) if text and left.startswith(text) and text != left]
        best = max(pieces, key=p.__getitem__, default=None)
        if best is None or p[best] <= whole:
            break
        ids.append(best)
        log_p += math.log(p[best])
        left = left[len(texts[best]) :]
    assert (spelled.ids, spelled.rest) == (tuple(ids), left)
    assert spelled.log_p == pytest.approx(log_p + math.log(whole), abs=1e-3)
    torch.testing.assert_close(spelled.ahead, logits, atol=1e-3, rtol=1e-3)


def test_the_cursor_may_be_anywhere_in_a_word_and_the_prompt_stays(engine: ResidentEngine, tiny: Tiny) -> None:
    prompts = [at_cursor(engine, tiny, f"import os\nx = {typed}│\n")[0].prompt for typed in ("", "p", "pa", "path")]
    assert len({prompt.encoder for prompt in prompts}) == 1


def test_answers_begin_at_the_cursor(engine: ResidentEngine) -> None:
    for typed in ("retu", "x = fo", "a.b.", "print("):
        asked = FillRequest(id="1", prefix=f"def f(a):\n    {typed}", suffix="\n", language="python", n=4)
        (result,) = (event for event in engine.fill(asked) if isinstance(event, Result))
        assert result.candidates and all(candidate.replace_before == 0 for candidate in result.candidates)


def test_a_text_takes_a_few_ids_or_is_not_spelled(tiny: Tiny) -> None:
    typed = Typed([text if i >= 32 else "" for i, text in enumerate(tiny.vocabulary.texts)], 512, torch.device("cpu"))
    assert typed.can_spell("self") and typed.can_spell("(")
    assert not typed.can_spell("\u00e9") and not typed.can_spell("zq" * SPELLED)
    ids = tiny.vocabulary.encode("self.self")
    assert typed.covering(ids, "self") == len(tiny.vocabulary.encode("self"))
    banned = typed.banned_at_first("sel")
    allowed = {tiny.vocabulary.texts[i] for i in (~banned).nonzero()[:, 0].tolist()}
    assert all(text.startswith("sel") or "sel".startswith(text) for text in allowed) and {"s", "self"} <= allowed
