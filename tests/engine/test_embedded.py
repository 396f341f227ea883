"""The model that ships: that it is whole, small, and does what the sampler promises on this repository's own code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from diffusion import engine as engines
from diffusion import layouts, model
from diffusion.api import EngineError, FillRequest, Result
from diffusion.engine import ResidentEngine
from diffusion.kv_cache import KeyValueCache
from diffusion.profiles import load_profile
from diffusion.training.evaluate import Cut
from diffusion.training.examples import rest_of_line
from diffusion.training.network import Size

ROOT = Path(__file__).parents[2]
PROFILE = load_profile("embedded")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def embedded() -> Iterator[ResidentEngine]:
    precision = torch.get_float32_matmul_precision()
    yield engines.load("embedded")
    torch.set_float32_matmul_precision(precision)  # the other tests compare to 1e-4


def cuts(count: int) -> Iterator[Cut]:
    rng = random.Random(0)
    files = sorted((ROOT / "grammars").glob("*.py"))
    for _ in range(count):
        path = rng.choice(files)
        text = path.read_text(encoding="utf-8")
        span = rest_of_line(text, rng)
        assert span
        yield Cut(
            language="python",
            path=f"grammars/{path.name}",
            prefix=text[: span.start],
            middle=text[span.start : span.end],
            suffix=text[span.end :],
        )


def fill(engine: ResidentEngine, cut: Cut, **more) -> Result:  # type: ignore[no-untyped-def]
    request = FillRequest(
        id="1", language=cut.language, path=cut.path, prefix=cut.prefix, suffix=cut.suffix, **{"n": 1, **more}
    )
    (result,) = engine.fill(request)
    assert isinstance(result, Result)
    return result


IDIOMS = (
    ("class A:\n    def __init__(self, name):\n        self.name = ", "name", "\n"),
    ("def f(x):\n    return ", "x", "\n"),
    ("    def __repr__(", "self", "):\n        return 'a'\n"),
    ("if x is ", "None", ":\n    return None\n"),
    ("if __name__ == ", "'__main__'", ":\n    main()\n"),
    ("for item in items:\n    x.append(", "item", ")\n"),
    ("raise ", "ValueError", "('no')\n"),
    ("    def run(self):\n        return self", ".name", "\n"),
)


def hits(engine: ResidentEngine, steps: int) -> int:
    idioms = [Cut(language="python", path="a.py", prefix=p, middle=m, suffix=s) for p, m, s in IDIOMS]
    results = [(cut, fill(engine, cut, steps=steps)) for cut in [*idioms, *cuts(16)]]
    return sum(bool(r.candidates) and r.candidates[0].text.rstrip() == cut.middle.rstrip() for cut, r in results)


def test_it_is_small_and_says_what_it_is() -> None:
    files = {path.name: path.stat().st_size for path in PROFILE.weights.iterdir()}
    assert set(files) == {"MODEL_CARD.md", "config.json", "model.safetensors", "reliability.svg", "tokenizer.json"}
    assert sum(files.values()) < 40e6
    card = (PROFILE.weights / "MODEL_CARD.md").read_text(encoding="utf-8")
    assert "Limits" in card and "licence" in card.lower()


def test_vocabulary_profile_and_weights_fit(embedded: ResidentEngine) -> None:
    resident = model.load(PROFILE)
    assert (
        resident.vocabulary_size == Size().vocabulary == len(engines.Vocabulary(PROFILE.weights / "tokenizer.json", 32))
    )


def test_it_has_learned_to_read_code() -> None:
    """The encoder on a file of ours: far below the 9 nats per id of a model that knows nothing. Weights and tokenizer
    that do not belong together fail here."""
    resident = model.load(PROFILE)
    vocabulary = engines.Vocabulary(PROFILE.weights / "tokenizer.json", PROFILE.specials)
    ids = vocabulary.encode((ROOT / "grammars" / "syntax.py").read_text(encoding="utf-8"))[:400]
    cache = resident.new_cache()
    resident.encode(layouts.encoder_head(PROFILE, "python", [], at_file_start=True), cache)
    targets = torch.tensor([ids])
    log_p = resident.logits(resident.continuations(targets[:, :-1], cache)).log_softmax(-1)
    assert -log_p.gather(-1, targets[:, 1:, None]).mean() < 4.5


def test_more_steps_are_not_worse_than_one(embedded: ResidentEngine) -> None:
    many = hits(embedded, steps=16)
    assert many >= hits(embedded, steps=1)
    assert many >= 3


def test_a_fill_takes_few_decoder_calls(embedded: ResidentEngine) -> None:
    forwards = [fill(embedded, cut).cost.forwards for cut in cuts(20)]
    assert sum(forwards) / len(forwards) < 8


def test_typing_encodes_few_ids_per_character() -> None:
    """Counted in ids, as the cache counts them: what is not in common with the encoder ids of the keystroke before."""
    vocabulary = engines.Vocabulary(PROFILE.weights / "tokenizer.json", PROFILE.specials)
    text = (ROOT / "grammars" / "syntax.py").read_text(encoding="utf-8")
    cache = KeyValueCache([])
    encoded = 0
    for end in range(1500, 2501):
        request = FillRequest(id="1", language="python", path="a.py", prefix=text[:end], suffix=text[end:])
        ids = layouts.native(request, vocabulary, PROFILE).encoder
        encoded += len(ids) - cache.reuse(ids) if end > 1500 else 0
        cache.ids = list(ids)
    assert encoded / 1000 < 3


@pytest.mark.parametrize("damage", ["missing", "truncated", "not safetensors", "other shape"])
def test_damaged_weights_say_what_to_do(damage: str, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json"):
        (tmp_path / name).write_bytes((PROFILE.weights / name).read_bytes())
    data = (PROFILE.weights / "model.safetensors").read_bytes()
    path = tmp_path / "model.safetensors"
    if damage == "truncated":
        path.write_bytes(data[:-100])
    elif damage == "not safetensors":
        path.write_bytes(b"PK\x03\x04" + data[:1000])
    elif damage == "other shape":
        path.write_bytes(data)
        config = (tmp_path / "config.json").read_text()
        (tmp_path / "config.json").write_text(config.replace('"hidden_size": 256', '"hidden_size": 128'))
    with pytest.raises(EngineError) as caught:
        model.load(replace(PROFILE, weights=tmp_path))
    assert str(tmp_path) in caught.value.message and "reinstall" in caught.value.hint
