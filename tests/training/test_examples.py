"""Examples say to the model what layouts.py will ask of it."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import FillRequest
from diffusion.layouts import native
from diffusion.training.examples import SPAN_KINDS, Source, make, random_span

from .conftest import TEXTS, Tiny


@given(text=st.sampled_from(TEXTS), seed=st.integers(0, 10_000))
def test_every_canvas_continues_its_window(tiny: Tiny, text: str, seed: int) -> None:
    rows = make(
        Source(language="python", path="a/b.py", text=text),
        random.Random(seed),
        tiny.vocabulary,
        tiny.profile,
        canvases=True,
    )
    tokens = tiny.profile.tokens
    window = rows.ids[rows.segment == 0].tolist()
    assert window[0] == tokens["bos"] and len(window) <= tiny.profile.layout.encoder
    assert rows.positions[rows.segment == 0].tolist() == list(range(len(window)))
    # Next token: each weighted window row predicts the row behind it.
    for row in range(len(window) - 1):
        if rows.weights[row]:
            assert rows.targets[row] == window[row + 1]
    for number in range(1, rows.segment.max() + 1):
        here = rows.segment == number
        cut = int(rows.cut[here][0])
        slot = here & (rows.positions < cut + tiny.profile.layout.gap)
        width = int(slot.sum())
        assert width in tiny.profile.layout.widths
        assert rows.positions[slot].tolist() == list(range(cut, cut + width))
        true, noisy, weights = (getattr(rows, name)[slot].tolist() for name in ("targets", "ids", "weights"))
        middle = true[: true.index(tokens["end"])] if tokens["end"] in true else true
        assert set(true[len(middle) :]) <= {tokens["end"]}
        # What the window shows behind the cut is what the slot has to say.
        seen = window[cut : cut + len(middle)]
        assert middle[: len(seen)] == seen
        for target, shown, weight in zip(true, noisy, weights, strict=True):
            assert (shown == tokens["mask"]) == (weight > 0)
            assert shown in (target, tokens["mask"])
        pins = rows.ids[here & ~slot].tolist()
        assert tokens["mask"] not in pins and len(pins) <= tiny.profile.layout.pins


@given(text=st.text(alphabet="ab ():\n\t.=", max_size=300), seed=st.integers(0, 1000))
def test_spans_lie_in_the_text_and_take_what_a_prompt_holds_back(tiny: Tiny, text: str, seed: int) -> None:
    span = random_span(text, random.Random(seed))
    if span is None:
        return
    assert 0 <= span.start <= span.end <= len(text)
    prompts = [
        native(FillRequest(id="1", prefix=text[:cursor], suffix=text[cursor:]), tiny.vocabulary, tiny.profile)
        for cursor in range(span.start, span.end + 1)
    ]
    assert any(len(prompt.held_back) == place for place, prompt in enumerate(prompts))


def test_all_kinds_of_spans_come_up() -> None:
    for name, (_, draw) in SPAN_KINDS.items():
        rng = random.Random(1)
        assert any(draw(TEXTS[2], rng) for _ in range(20)), name


def test_a_served_request_has_the_ids_of_training(tiny: Tiny) -> None:
    """Window and suffix head of an example are exactly what the engine makes of the same place."""
    text = TEXTS[0][:900]
    seen = Counter[str]()
    for seed in range(60):
        rng = random.Random(seed)
        rows = make(Source(language="python", path="", text=text), rng, tiny.vocabulary, tiny.profile, canvases=True)
        window = rows.ids[rows.segment == 0].tolist()
        if tiny.profile.tokens["file"] not in window[:3]:
            continue
        for number in range(1, rows.segment.max() + 1):
            here = rows.segment == number
            cut = int(rows.cut[here][0])
            prefix = tiny.vocabulary.decode(window[:cut])
            slot = here & (rows.positions < cut + tiny.profile.layout.gap)
            middle = tiny.vocabulary.decode(rows.targets[slot].tolist())
            if not text.startswith(prefix + middle) or cut > tiny.profile.layout.encoder // 2:
                continue
            held_back = middle if middle.strip("\n \t") == "" else ""
            suffix = text[len(prefix + middle) :]
            request = FillRequest(id="1", language="python", prefix=prefix + held_back, suffix=suffix)
            prompt = native(request, tiny.vocabulary, tiny.profile)
            pins = rows.ids[here & ~slot].tolist()
            end_known = tiny.profile.tokens["end"] in rows.targets[slot]
            if end_known and len(pins) == tiny.profile.layout.pins:
                seen["pins"] += list(prompt.pins)[:8] == pins[:8]
                seen["all"] += 1
    # Pieces of the window end at other cuts too, so a few suffix heads are cut differently.
    assert seen["all"] > 20
    assert seen["pins"] / seen["all"] > 0.7


@pytest.mark.parametrize("text", ["", "\n", "x", "x = 1", "\n\n\n   \n", "é" * 500, "if a:\n\tb\n" * 400])
def test_odd_files_make_examples(tiny: Tiny, text: str) -> None:
    for seed in range(20):
        rows = make(
            Source(language="typescript", path="x", text=text),
            random.Random(seed),
            tiny.vocabulary,
            tiny.profile,
            canvases=True,
        )
        assert rows.segment[0] == 0
