"""Denoising with uniform noise: the library's own loop is the oracle; pins, bans and spellings hold at every step."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import DynamicCache, LogitsProcessorList
from transformers.models.diffusion_gemma.generation_diffusion_gemma import EntropyBoundSamplerConfig

from diffusion.canvas import Canvas, span_canvas
from diffusion.samplers import BANNED
from diffusion.span_rules import Alphabet, SpanRules
from diffusion.stopping import Cancelled, Limits
from diffusion.uniform import SpanStep, denoise, restored

from .chat_tiny import VOCABULARY, ChatTiny, make_chat_tiny

PROMPT = tuple(range(40, 140))
PINS = tuple(range(200, 232))
SLOT = 20


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> ChatTiny:
    return make_chat_tiny(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="module")
def alphabet(chat: ChatTiny) -> Alphabet:
    return Alphabet(chat.vocabulary.texts, VOCABULARY, chat.profile, torch.device("cpu"))


def steps_of(chat: ChatTiny, rules: SpanRules, lengths: tuple[int, ...] = (SLOT,), **more) -> list[SpanStep]:  # type: ignore[no-untyped-def]
    cache = chat.model.new_cache()
    chat.model.encode(PROMPT, cache)
    canvases = [span_canvas(chat.profile, n, len(PROMPT), PINS[: 32 - n]) for n in lengths]
    arguments = {"rules": rules, "sampler": chat.profile.sampler, "steps": 6, **more}
    return list(denoise(chat.model, cache, canvases, **arguments))


def test_a_step_is_the_library_s_step(chat: ChatTiny, alphabet: Alphabet) -> None:
    """Everything is accepted and nothing is left to chance: the same canvas after one, two, three steps. Pins are held
    as the library can hold them: by logits that leave no choice, so that they condition on themselves."""
    rules = alphabet.rules(one_line=True, fences=False)
    sampler = replace(
        chat.profile.sampler, entropy_bound=1e9, temperature=(1e-6, 1e-6), self_conditioning="one_hot_at_pins"
    )
    start = torch.randint(0, VOCABULARY, (32,), generator=torch.Generator().manual_seed(5))
    start[SLOT:] = torch.tensor(PINS[: 32 - SLOT])

    def hold(_: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        held = torch.full_like(scores, BANNED)
        held[:, :SLOT] = scores[:, :SLOT] + rules.banned
        held[:, range(SLOT, 32), PINS[: 32 - SLOT]] = 0.0
        return held

    ours = steps_of(chat, rules, sampler=sampler, starts=[start[:SLOT].tolist()])
    assert len(ours) >= 3
    for count, step in enumerate(ours[:4], 1):
        theirs = chat.library.generate(
            torch.tensor([PROMPT]),
            decoder_input_ids=start[None],
            logits_processor=LogitsProcessorList([hold]),
            max_new_tokens=32,
            max_denoising_steps=count,
            t_min=1e-6,
            t_max=1e-6 + 1e-12,
            sampler_config=EntropyBoundSamplerConfig(entropy_bound=1e9),
            eos_token_id=None,
        )
        assert theirs.sequences[0, len(PROMPT) :].tolist() == [*step.drafts[0], *PINS[: 32 - SLOT]]


@pytest.mark.parametrize("mask", [False, True])
def test_predictions_are_fed_back_as_the_library_does(chat: ChatTiny, mask: bool) -> None:
    """Fewer key heads than query heads, a window that has filled, several canvases, a signal: the library's logits."""
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, VOCABULARY, (3, 32), generator=generator)
    signal = torch.randn((3, 32, VOCABULARY), generator=generator)
    cache, theirs = chat.model.new_cache(), DynamicCache(config=chat.library.config.get_text_config(decoder=True))
    chat.model.encode(PROMPT, cache)
    marks = torch.rand((3, 32), generator=generator) < 0.5
    positions = torch.arange(100, 132).expand(3, -1)
    hidden = chat.model.decode(ids, positions, cache, signal, marks.float() if mask else None)

    def zeroed(_: object, inputs: tuple[torch.Tensor, torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        return inputs[0], inputs[1] * marks[..., None]

    hooks = [chat.library.model.decoder.self_conditioning.register_forward_pre_hook(zeroed)] if mask else []
    with torch.no_grad():
        chat.library.model.encoder.language_model(input_ids=torch.tensor([PROMPT] * 3), cache=theirs)
        expected = chat.library.model.decoder(
            decoder_input_ids=ids, decoder_position_ids=positions, cache=theirs, self_conditioning_logits=signal
        ).last_hidden_state
    for hook in hooks:
        hook.remove()
    torch.testing.assert_close(chat.model.logits(hidden), chat.model.logits(expected), rtol=1e-4, atol=1e-4)


@settings(max_examples=20)
@given(
    conditioning=st.sampled_from(["none", "zero_at_pins", "one_hot_at_pins"]),
    bound=st.sampled_from([0.01, 0.3, 50.0]),
    temperature=st.sampled_from([(0.8, 0.4), (0.0, 0.0)]),
    lengths=st.lists(st.integers(4, 30), min_size=1, max_size=3),
    forced=st.sampled_from(["", " re", "self._model", "\n\n", "x"]),
    one_line=st.booleans(),
    seed=st.integers(0, 5),
)
def test_pins_bans_and_spelling_hold_at_every_step(
    chat, alphabet, conditioning, bound, temperature, lengths, forced, one_line, seed
) -> None:  # type: ignore[no-untyped-def]
    rules = alphabet.rules(one_line=one_line, fences=False, forced=forced)
    lengths = tuple(max(n, rules.shortest) for n in lengths)
    sampler = replace(
        chat.profile.sampler, self_conditioning=conditioning, entropy_bound=bound, temperature=temperature
    )
    taken = steps_of(chat, rules, lengths, sampler=sampler, seed=seed)
    again = steps_of(chat, rules, lengths, sampler=sampler, seed=seed)
    assert [replace(step, ms=0.0) for step in taken] == [replace(step, ms=0.0) for step in again]
    assert taken[-1].finish == "stop" and all(step.finish is None for step in taken[:-1])
    for step in taken:
        for draft, accepted, n in zip(step.drafts, step.accepted, lengths, strict=True):
            assert len(draft) == len(accepted) == n and any(accepted)
            assert all(alphabet.texts[i] and i not in alphabet.closing for i in draft)
            text = "".join(alphabet.texts[i] for i in draft)
            assert text.startswith(forced)
            assert not (one_line and "\n" in text[len(forced) :])


def test_ends_may_stand_where_they_are_allowed_and_other_special_ids_never(alphabet: Alphabet) -> None:
    logits = torch.zeros(1, VOCABULARY)
    for may_end in (True, False):
        written = (
            alphabet.rules(one_line=False, fences=False, may_end=may_end).apply(logits)[0] > BANNED / 2
        ).nonzero()
        allowed = set(written[:, 0].tolist())
        assert alphabet.ends <= allowed if may_end else not alphabet.ends & allowed
        assert bool(alphabet.closing & allowed) == may_end
        assert not {3, 5, 6, VOCABULARY - 1} & allowed  # a turn, channels, an unused id


def test_a_model_that_would_rather_write_what_is_banned_is_not_sure(chat: ChatTiny, alphabet: Alphabet) -> None:
    """The probabilities are the model's own: as computed by hand from the logits of its draft's last step."""
    rules = alphabet.rules(one_line=True, fences=False, forced=" re")
    (step,) = steps_of(chat, rules, steps=1, starts=[range(50, 50 + SLOT)])
    cache = chat.model.new_cache()
    chat.model.encode(PROMPT, cache)
    ids = [*range(50, 50 + SLOT), *PINS[: 32 - SLOT]]
    hidden = chat.model.decode(torch.tensor([ids]), torch.arange(100, 132)[None], cache)
    log_p = torch.log_softmax(chat.model.logits(hidden)[0, :SLOT], -1)
    own = log_p[range(SLOT), step.drafts[0]]
    assert step.log_p[0] == pytest.approx(float(own.mean()), abs=1e-4)
    assert step.sure[0] == pytest.approx(float(own.exp().mean()), abs=1e-4)
    assert step.sure[0] < float(log_p.amax(-1).exp().mean())


def test_a_past_deadline_gives_a_whole_draft_and_a_cancelled_loop_ends(chat: ChatTiny, alphabet: Alphabet) -> None:
    rules = alphabet.rules(one_line=True, fences=False)
    (only,) = steps_of(chat, rules, limits=Limits(arrived=0.0, deadline_ms=1.0))
    assert only.finish == "deadline" and len(only.drafts[0]) == SLOT
    asked = iter([False, True])
    with pytest.raises(Cancelled):
        steps_of(chat, rules, limits=Limits(cancelled=lambda: next(asked)))


def test_a_restored_head_is_scored_without_seeing_it(chat: ChatTiny) -> None:
    """The score depends on the middle, and on the pins behind the head, but not on what the head itself says beside
    being compared with it: as computed by hand with one forward of the library's class."""
    cache = chat.model.new_cache()
    chat.model.encode(PROMPT, cache)
    middles = [(50, 51, 52), (60, 61)]
    canvases = [
        Canvas(slot=m, free=(False,) * len(m), pins=PINS[: 10 - len(m)], cut=100, gap=len(m), end=0) for m in middles
    ]
    scores = restored(chat.model, cache, canvases, 4, seed=7)
    noise = torch.randint(0, VOCABULARY, (1, 4), generator=torch.Generator().manual_seed(7))[0].tolist()
    for middle, score in zip(middles, scores, strict=True):
        ids = [*middle, *noise, *PINS[4 : 10 - len(middle)]]
        hidden = chat.model.decode(torch.tensor([ids]), torch.arange(100, 110)[None], cache)
        log_p = torch.log_softmax(chat.model.logits(hidden)[0], -1)
        expected = [float(log_p[len(middle) + i, PINS[i]]) for i in range(4)]
        assert score == pytest.approx(sum(expected) / 4, abs=1e-4)
