"""One budget for the keys and values of all windows: kept at any time, and no answer depends on it. And lack of memory
in the middle of a fill."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diffusion.api import Draft, EngineError, FillRequest, Result
from diffusion.cache_pool import CachePool
from diffusion.engine import ResidentEngine
from diffusion.kv_cache import STEP, KeyValueCache

from .conftest import TEXTS, Tiny

WINDOW = 2 * 3 * 2 * 16 * 4 * STEP
"""Bytes of up to STEP ids in the tiny model: keys and values, layers, heads, head dimension, float32."""


class Watched(CachePool):
    """Notes the most bytes there ever were, just before each growth: with what is about to be taken."""

    most = 0

    def _make_room(self, more: int) -> None:
        super()._make_room(more)
        self.most = max(self.most, self.nbytes + more)


USES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 3 * STEP), st.integers(0, 2)), max_size=12)


@given(uses=USES, windows=st.integers(4, 9))
def test_the_budget_is_kept_at_any_time_and_a_warm_cache_equals_a_cold_one(
    tiny: Tiny, uses: list[tuple[str, int, int]], windows: int
) -> None:
    pool = Watched(tiny.model.new_cache, windows * WINDOW)
    for name, length, kind in uses:
        cache = pool.take((name, "a.py", "fill"))
        ids = [40 + kind, *range(41, 40 + min(length, 400)), *[99] * max(0, length - 400)]
        tiny.model.encode(ids, cache)
        pool.settle()
        cold = tiny.model.new_cache()
        tiny.model.encode(ids, cold)
        torch.testing.assert_close(cache.last_hidden, cold.last_hidden, atol=1e-4, rtol=1e-4)
        assert cache.nbytes >= len(ids) * WINDOW // STEP
    assert pool.most <= pool.budget
    assert pool.nbytes <= pool.budget


def test_bytes_are_counted_as_they_are(tiny: Tiny) -> None:
    cache = tiny.model.new_cache()
    assert cache.nbytes == 0
    tiny.model.encode(list(range(40, 50)), cache)
    assert cache.nbytes == WINDOW
    tiny.model.encode([40] * (STEP + 1), cache)
    assert cache.nbytes == 2 * WINDOW


def test_the_least_recently_used_goes_first_and_who_has_gone_gives_all_back(tiny: Tiny) -> None:
    pool = CachePool(tiny.model.new_cache, 3 * WINDOW)

    def use(*key: str) -> KeyValueCache:
        cache = pool.take((key[0], key[1], "fill"))
        tiny.model.encode([40, 41], cache)
        pool.settle()
        return cache

    a, b = use("me", "a"), use("you", "b")
    use("me", "c")
    assert use("me", "a") is a
    use("me", "d")  # b goes
    assert use("me", "a") is a
    assert use("you", "b") is not b
    pool.forget("me")
    assert (len(pool), pool.nbytes) == (1, WINDOW)


def test_a_window_larger_than_the_budget_is_used_and_not_kept(tiny: Tiny) -> None:
    pool = CachePool(tiny.model.new_cache, WINDOW)
    cache = pool.take(("me", "a", "fill"))
    assert tiny.model.encode([40] * (2 * STEP), cache) == 2 * STEP
    pool.settle()
    assert (len(pool), pool.nbytes) == (0, 0)
    pool.take(("me", "empty", "fill"))
    pool.settle()
    assert len(pool) == 0


# --- through the engine


def ask(client: str, text: str, **more: Any) -> FillRequest:
    cut = len(text) // 2
    return FillRequest(id="1", client=client, path="a.py", prefix=text[:cut], suffix=text[cut:], n=2, **more)


def result(events: Iterator[Any]) -> Result:
    *_, last = events
    assert isinstance(last, Result)
    return last


def test_answers_do_not_depend_on_the_budget(tiny: Tiny) -> None:
    small = ResidentEngine(replace(tiny.profile, cache_mb=2.5 * WINDOW / 1e6), tiny.vocabulary, tiny.model)
    none = ResidentEngine(replace(tiny.profile, cache_mb=0), tiny.vocabulary, tiny.model)
    for client in "abcabba":
        for text in (TEXTS[0][:300], TEXTS[1][:500]):
            asked = ask(client, text, steps=2)
            warm, cold = result(small.fill(asked)), result(none.fill(asked))
            assert [c.text for c in warm.candidates] == [c.text for c in cold.candidates]
            assert [c.confidence for c in warm.candidates] == pytest.approx([c.confidence for c in cold.candidates])
            assert cold.cost.cached == 0
            assert small._caches.nbytes <= 2.5 * WINDOW and none._caches.nbytes == 0


def test_a_client_that_has_gone_starts_anew(tiny: Tiny) -> None:
    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    for client in "ab":
        result(engine.fill(ask(client, TEXTS[0][:200])))
    engine.forget("a")
    assert result(engine.fill(ask("a", TEXTS[0][:200]))).cost.cached == 0
    assert result(engine.fill(ask("b", TEXTS[0][:200]))).cost.encoded == 0


LACKS = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    MemoryError(),
    RuntimeError("std::bad_alloc"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried ..."),
]


@pytest.mark.parametrize("lack", LACKS, ids=["cuda", "python", "c++", "torch"])
@pytest.mark.parametrize("where", ["encode", "decode", "logits"])
def test_lack_of_memory_ends_one_request_and_drops_the_caches(
    lack: BaseException, where: str, tiny: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    asked = ask("me", TEXTS[0][:300])
    before = result(engine.fill(asked))
    with monkeypatch.context() as patch, pytest.raises(EngineError, match="not enough memory") as caught:
        patch.setattr(tiny.model, where, raising(lack))
        list(engine.fill(replace(asked, prefix=asked.prefix + "x", drafts=True)))
    assert caught.value.code == "model" and "midfill model list" in caught.value.hint
    assert caught.value.__context__ is None  # it would keep the tensors of the step that failed
    assert engine._caches.nbytes == 0
    assert result(engine.fill(asked)).candidates == before.candidates


def test_another_error_is_not_taken_for_it(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    monkeypatch.setattr(tiny.model, "decode", raising(RuntimeError("shapes do not match")))
    with pytest.raises(RuntimeError, match="shapes"):
        list(engine.fill(ask("me", "x = 1\n")))


def test_an_encoder_that_fails_leaves_no_stale_state_behind(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, cold = tiny.model.new_cache(), tiny.model.new_cache()
    tiny.model.encode([40, 41, 42, 43], cache)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(tiny.model, "_encoded", raising(RuntimeError("no")))
        tiny.model.encode([40, 41, 50], cache)
    tiny.model.encode([40, 41], cache)
    tiny.model.encode([40, 41], cold)
    torch.testing.assert_close(cache.last_hidden, cold.last_hidden, atol=1e-4, rtol=1e-4)


def raising(error: BaseException) -> Any:
    def call(*_: Any, **__: Any) -> Any:
        raise error

    return call


def test_drafts_that_nobody_reads_any_more_leave_the_engine_usable(tiny: Tiny) -> None:
    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    asked = ask("me", TEXTS[0][:300], drafts=True)
    events = engine.fill(asked)
    assert isinstance(next(events), Draft)
    events.close()  # type: ignore[attr-defined]
    assert result(engine.fill(asked)).candidates == result(engine.fill(asked)).candidates


def test_an_engine_that_has_rested_goes_on(tiny: Tiny) -> None:
    engine = ResidentEngine(tiny.profile, tiny.vocabulary, tiny.model)
    before = result(engine.fill(ask("me", TEXTS[0][:300])))
    engine.rest()
    assert result(engine.fill(ask("me", TEXTS[0][:300]))).candidates == before.candidates
