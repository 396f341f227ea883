"""How much memory a model takes, from its configuration alone: weights, cache, and what a step needs for a while.

Sizes follow from shapes and from how the weights are quantised; what a step needs is counted in copies of its largest
tensors, and tests compare that with what small models really take. Knows no torch and reads no weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from diffusion.api import EngineError
from diffusion.quantisation import LINEAR_GROUP, Quantisation, group_for

GB = 1e9
DTYPE = 2
"""Bytes of bfloat16, in which everything is kept that is not quantised."""
READ_AT_ONCE = 1024
"""Ids that the encoder reads in one go; longer texts are read in pieces."""
LOGIT_COPIES = 7
"""float32 tensors of canvas positions by vocabulary that live at the worst moment of a step."""
RESERVE = 0.7e9
"""What the driver, its libraries and a fragmented heap take on a GPU, by experience."""
WIDTHS = (16, 64, 256)

KEEP = Quantisation(linears="none", experts="none")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Bytes. `cache`: per token of context. `position`: per canvas position, `attention`: per canvas position and token
    of context, while a step runs. `reading`: the same two for a token that is being read."""

    experts: int
    linears: int
    embedding: int
    rest: int
    cache: int
    position: int
    attention: int
    reading: int

    @property
    def weights(self) -> int:
        return self.experts + self.linears + self.embedding + self.rest

    def step(self, positions: int, tokens: int) -> int:
        """What a denoising step of so many canvas positions, all canvases together, takes after `tokens` of context."""
        return positions * (self.position + (tokens + positions) * self.attention)

    def read(self, tokens: int) -> int:
        """What reading a new text takes beside its cache."""
        piece = min(tokens, READ_AT_ONCE)
        return piece * (self.reading + tokens * self.attention)

    def total(self, positions: int, tokens: int) -> int:
        """The most at any time, with one document window in the cache."""
        kept = self.weights + tokens * self.cache
        return kept + max(self.step(positions, tokens), self.read(tokens))


def plan(config: Mapping[str, Any], how: Quantisation | None, dtype: int = DTYPE) -> Plan:
    """The plan for a text_config. Raises EngineError when it lacks a number."""
    how = how or KEEP
    try:
        return _plan(config, how, dtype)
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(
            f"no size follows from this configuration: {error}", "see its config.json", "model"
        ) from error


def refuse_beyond(
    config: Mapping[str, Any], how: Quantisation | None, *, free: float, positions: int, tokens: int
) -> None:
    """Raises EngineError with numbers and alternatives where a model does not fit into `free` bytes."""
    plan_ = plan(config, how)
    needed = plan_.total(positions, tokens) + RESERVE
    if needed <= free:
        return
    raise EngineError(
        f"the model needs {needed / GB:.1f} GB ({plan_.weights / GB:.1f} GB of weights, "
        f"{tokens * plan_.cache / GB:.1f} GB of cache for {tokens} tokens) and {free / GB:.1f} GB are free",
        "; ".join(alternatives(config, how, free=free, positions=positions, tokens=tokens)),
        "model",
    )


def alternatives(
    config: Mapping[str, Any], how: Quantisation | None, *, free: float, positions: int, tokens: int
) -> list[str]:
    """What would fit instead, a few words each: the least change of the profile that does, then what always does."""
    now = how or KEEP
    return [
        *_least_change(config, now, free - RESERVE, positions, tokens),
        "a vLLM server on another machine (backend vllm)",
        "`midfill model use embedded`, which fits anywhere",
    ]


def _least_change(
    config: Mapping[str, Any], now: Quantisation, room: float, positions: int, tokens: int
) -> Iterator[str]:
    """Cheapest first: what is quantised with little loss, smaller batches of canvases, less context, 4-bit linears."""
    light, heavy = replace(now, linears="int8", experts="int4"), replace(now, linears="int4", experts="int4")
    quantised = [now] if now in (light, heavy) else [light]
    for smaller in dict.fromkeys((*quantised, heavy, replace(heavy, group=128))):
        planned = plan(config, smaller)
        for context in (tokens, *(n for n in (4096, 2048, 1024) if n < tokens)):
            for part in (positions, positions // 2, positions // 4):
                if planned.total(part, context) > room:
                    continue
                words = [
                    f'linears = "{smaller.linears}", experts = "{smaller.experts}", group = {smaller.group}',
                    f"a context of {context} tokens (encoder)",
                    f"{part} canvas positions (lengths times block_width)",
                ]
                changed = (smaller != now, context != tokens, part != positions)
                needed = amount(planned.total(part, context) + RESERVE)
                yield f"{' and '.join(w for w, c in zip(words, changed, strict=True) if c)} in the profile: {needed}"
                return


def lines(plan_: Plan, tokens: int) -> list[tuple[str, str]]:
    """The plan for a reader: what, how much."""
    return [
        ("experts", amount(plan_.experts)),
        ("linears", amount(plan_.linears)),
        ("embedding", amount(plan_.embedding)),
        ("norms, router", amount(plan_.rest)),
        ("weights in all", amount(plan_.weights)),
        ("cache per 1000 tokens", amount(1000 * plan_.cache)),
        (f"reading {tokens} tokens", amount(plan_.read(tokens))),
        *((f"a step, {width} positions", amount(plan_.step(width, tokens))) for width in WIDTHS),
        ("reserve", amount(RESERVE)),
    ]


def _plan(text: Mapping[str, Any], how: Quantisation, dtype: int) -> Plan:
    hidden, inner, vocabulary = text["hidden_size"], text["intermediate_size"], text["vocab_size"]
    experts, expert_inner, top = text["num_experts"], text["moe_intermediate_size"], text["top_k_experts"]
    heads, layers = text["num_attention_heads"], list(_layers(text))
    mlp = [(inner, hidden), (inner, hidden), (hidden, inner)]
    shapes = [*mlp] + [shape for _ in layers for shape in mlp]  # self-conditioning is one more MLP
    for dim, groups, full in layers:
        key_value = [(groups * dim, hidden)] * (1 if full else 2)
        shapes += [(heads * dim, hidden), (hidden, heads * dim), *key_value]
    per_expert = _expert(2 * expert_inner, hidden, how, dtype) + _expert(hidden, expert_inner, how, dtype)
    norms = sum(7 * hidden + 2 * dim + 2 for dim, _, _ in layers) + 2 * hidden
    router = len(layers) * (experts * hidden + hidden + experts)
    widest = max(dim for dim, _, _ in layers) * heads
    row = dtype * (top * (3 * hidden + 2 * expert_inner) + 6 * hidden + 3 * inner + 4 * widest)
    return Plan(
        experts=len(layers) * experts * per_expert,
        linears=sum(_linear(outputs, inputs, how, dtype) for outputs, inputs in shapes),
        embedding=vocabulary * hidden * dtype,
        rest=dtype * (norms + router),
        cache=sum(2 * groups * dim * dtype for dim, groups, _ in layers),
        position=row + LOGIT_COPIES * 4 * vocabulary,
        attention=heads * (4 + 2 * dtype) + 1,
        reading=row,
    )


def _layers(text: Mapping[str, Any]) -> Iterator[tuple[int, int, bool]]:
    """Per layer: head dimension, key and value heads, whether it is one of full attention. As the class reads it."""
    count = text["num_hidden_layers"]
    kinds = text.get("layer_types") or [
        "full_attention" if not (i + 1) % 6 else "sliding_attention" for i in range(count)
    ]
    own = text.get("per_layer_config")
    groups = text["num_key_value_heads"]
    for index in range(count):
        full = index == count - 1 or kinds[index] == "full_attention"
        if full and own is None:
            yield text.get("global_head_dim", 512), text.get("num_global_key_value_heads") or groups, full
        else:
            changes = (own or {}).get(str(index), {})
            yield changes.get("head_dim", text["head_dim"]), changes.get("num_key_value_heads", groups), full


def _expert(outputs: int, inputs: int, how: Quantisation, dtype: int) -> int:
    group = group_for(inputs, how.group)
    if how.experts == "none" or not group:
        return outputs * inputs * dtype
    return outputs * inputs // 2 + 2 * outputs * (inputs // group)


def _linear(outputs: int, inputs: int, how: Quantisation, dtype: int) -> int:
    if how.linears == "none":
        return outputs * inputs * dtype
    if how.linears != "int4":
        return outputs * inputs + outputs * dtype
    group = group_for(inputs, LINEAR_GROUP) or inputs
    return outputs * inputs // 2 + 2 * dtype * outputs * (inputs // group)


def amount(size: float) -> str:
    """Bytes for a reader."""
    return f"{size / GB:.2f} GB" if size >= GB / 10 else f"{size / 1e6:.1f} MB"
