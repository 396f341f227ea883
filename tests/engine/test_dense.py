"""The short passes of models without experts, held equal to the library's."""

from __future__ import annotations

import pytest
import torch

from diffusion import dense
from diffusion.kv_cache import KeyValueCache

from . import small_moe
from .conftest import Tiny


@pytest.fixture(params=["tiny", "narrow"])
def model(request: pytest.FixtureRequest) -> Tiny:
    found: Tiny = request.getfixturevalue(request.param)
    return found


def filled(model: Tiny, count: int) -> KeyValueCache:
    cache = model.model.new_cache()
    model.model.encode([32 + 7 * place % 480 for place in range(count)], cache)
    return cache


@pytest.mark.parametrize("past", [1, 15, 16, 17, 90])
@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 1), (3, 20)])
@torch.inference_mode()
def test_continuations_are_the_library_s(past: int, shape: tuple[int, int], model: Tiny) -> None:
    cache = filled(model, past)
    ids = torch.arange(shape[0] * shape[1]).view(shape) + 40
    with cache.branch(shape[0]) as branch:
        library = model.model._encoder(input_ids=ids, cache=branch).last_hidden_state
    torch.testing.assert_close(model.model.continuations(ids, cache), library, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("past", [1, 8, 15, 16, 90])
@pytest.mark.parametrize("steps", [(1,) * 20, (2, 1, 1, 5, 11)])
@torch.inference_mode()
def test_going_on_step_by_step_is_going_on_at_once(past: int, steps: tuple[int, ...], model: Tiny) -> None:
    """Past the sliding window, too."""
    cache = filled(model, past)
    ids = torch.arange(60).view(3, 20) + 40
    with cache.branch(3) as branch:
        stepwise = torch.cat([model.model.go_on(part, branch) for part in ids.split(steps, 1)], 1)
    torch.testing.assert_close(stepwise, model.model.continuations(ids, cache), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("past", [1, 16, 90])
@torch.inference_mode()
def test_canvases_are_the_library_s(past: int, model: Tiny) -> None:
    cache = filled(model, past)
    ids, positions = torch.arange(36).view(3, 12) + 40, torch.arange(past, past + 12).expand(3, -1)
    with cache.branch(3) as branch:
        library = model.model._decoder(decoder_input_ids=ids, decoder_position_ids=positions, cache=branch)
    ours = model.model.decode(ids, positions, cache)
    torch.testing.assert_close(ours, library.last_hidden_state, atol=1e-5, rtol=1e-5)


def test_what_it_computes_in_one_product_is_no_copy(tiny: Tiny) -> None:
    assert tiny.model._dense
    for mine, theirs in zip(tiny.model._dense._layers, tiny.model._decoder.layers, strict=True):
        assert mine.qkv.untyped_storage().data_ptr() == theirs.self_attn.k_proj.weight.untyped_storage().data_ptr()
        assert mine.gate_up.untyped_storage().data_ptr() == theirs.mlp.up_proj.weight.untyped_storage().data_ptr()


def test_models_with_experts_are_not_for_it(tiny: Tiny) -> None:
    assert dense.fits(tiny.library.model)
    assert not dense.fits(small_moe.library_model(small_moe.config()).model)
