"""The key/value cache: warm equals cold, also past the sliding window; branches leave it alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from .conftest import Tiny

IDS = st.lists(st.integers(32, 511), min_size=1, max_size=60)
EDITS = st.lists(st.tuples(st.integers(0, 60), IDS), min_size=1, max_size=4)


def decoded(tiny: Tiny, ids: list[int], cache) -> torch.Tensor:  # type: ignore[no-untyped-def]
    tiny.model.encode(ids, cache)
    canvas = torch.arange(40, 52)[None].expand(2, -1)
    positions = torch.arange(len(ids), len(ids) + 12)[None].expand(2, -1)
    return tiny.model.logits(tiny.model.decode(canvas, positions, cache))


@pytest.mark.parametrize("which", ["tiny", "narrow"])
@settings(max_examples=25)
@given(edits=EDITS)
def test_warm_equals_cold(which: str, edits: list[tuple[int, list[int]]], request: pytest.FixtureRequest) -> None:
    tiny: Tiny = request.getfixturevalue(which)
    warm = tiny.model.new_cache()
    ids: list[int] = []
    for keep, new in edits:
        ids = ids[:keep] + new
        cold = tiny.model.new_cache()
        torch.testing.assert_close(decoded(tiny, ids, warm), decoded(tiny, ids, cold), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(warm.last_hidden, cold.last_hidden, atol=1e-4, rtol=1e-4)
        assert warm.ids == ids


def test_past_the_window_the_encoder_equals_one_pass_over_everything(narrow: Tiny) -> None:
    ids = list(range(40, 140))
    stepwise, whole = narrow.model.new_cache(), narrow.model.new_cache()
    for end in (7, 30, 31, 64, 100):
        narrow.model.encode(ids[:end], stepwise)
    narrow.model.encode(ids, whole)
    torch.testing.assert_close(stepwise.last_hidden, whole.last_hidden, atol=1e-4, rtol=1e-4)


def test_only_the_new_ids_are_encoded(tiny: Tiny) -> None:
    cache = tiny.model.new_cache()
    assert tiny.model.encode(list(range(40, 60)), cache) == 20
    assert tiny.model.encode(list(range(40, 60)), cache) == 0
    assert tiny.model.encode(list(range(40, 63)), cache) == 3
    # Shortened: the last id is encoded again, since its hidden state predicts the next one.
    assert tiny.model.encode(list(range(40, 50)), cache) == 1
    assert tiny.model.encode([40, 41, 99], cache) == 1


def test_branches_do_not_change_the_history(tiny: Tiny) -> None:
    cache = tiny.model.new_cache()
    before = decoded(tiny, list(range(40, 70)), cache)
    tiny.model.continuations(torch.tensor([[50, 51, 52], [60, 61, 62]]), cache)
    torch.testing.assert_close(decoded(tiny, list(range(40, 70)), cache), before, atol=0, rtol=0)


def test_continuations_equal_encoding_them(tiny: Tiny) -> None:
    cache, longer = tiny.model.new_cache(), tiny.model.new_cache()
    tiny.model.encode([40, 41, 42], cache)
    hidden = tiny.model.continuations(torch.tensor([[50, 51, 52], [60, 61, 62]]), cache)
    tiny.model.encode([40, 41, 42, 60, 61, 62], longer)
    torch.testing.assert_close(hidden[1, -1:], longer.last_hidden, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("which", ["tiny", "narrow"])
def test_logits_equal_the_librarys_own_forward_pass(which: str, request: pytest.FixtureRequest) -> None:
    """The stock cache, the stock positions, lm_head on everything, with and without self-conditioning."""
    tiny: Tiny = request.getfixturevalue(which)
    prompt, canvas = torch.arange(40, 75)[None], torch.arange(200, 224)[None]
    cache = tiny.model.new_cache()
    tiny.model.encode(prompt[0].tolist(), cache)
    positions = torch.arange(35, 59)[None]
    first = tiny.library(input_ids=prompt, decoder_input_ids=canvas).logits
    ours = tiny.model.logits(tiny.model.decode(canvas, positions, cache))
    torch.testing.assert_close(ours, first, atol=1e-4, rtol=1e-4)
    second = tiny.library(input_ids=prompt, decoder_input_ids=canvas, self_conditioning_logits=first).logits
    ours = tiny.model.logits(tiny.model.decode(canvas, positions, cache, first))
    torch.testing.assert_close(ours, second, atol=1e-4, rtol=1e-4)
    # A signal that is masked everywhere is no signal.
    nowhere = torch.zeros(canvas.shape)
    ours = tiny.model.logits(tiny.model.decode(canvas, positions, cache, first, nowhere))
    torch.testing.assert_close(ours, tiny.model.logits(tiny.model.decode(canvas, positions, cache)))


class Allocations(TorchDispatchMode):
    """Notes the largest tensor (elements) with memory of its own that any operation makes."""

    largest = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        given = {leaf.untyped_storage().data_ptr() for leaf in tree_leaves((args, kwargs)) if torch.is_tensor(leaf)}
        for leaf in tree_leaves(made):
            if torch.is_tensor(leaf) and leaf.untyped_storage().data_ptr() not in given:
                self.largest = max(self.largest, leaf.numel())
        return made


@pytest.mark.parametrize("call", ["decode", "continuations"])
def test_a_batch_attends_to_the_history_without_a_copy(call: str, tiny: Tiny) -> None:
    cache = tiny.model.new_cache()
    tiny.model.encode([40] * 900, cache)
    ids = torch.full((4, 2), 50)
    with Allocations() as watched:
        if call == "decode":
            tiny.model.decode(ids, torch.arange(900, 902).expand(4, -1), cache)
        else:
            tiny.model.continuations(ids, cache)
    history = cache.layers[0].keys.numel()
    assert 0 < watched.largest < history  # not even one copy, which would serve all four
    with Allocations() as watched:
        cache.layers[0].keys.expand(4, -1, -1, -1).clone()
    assert watched.largest == 4 * history  # it would have been seen
