"""The training network against the library's forward pass, and the fused loss against the plain one."""

from __future__ import annotations

import random

import torch
from torch.nn import functional as F

from diffusion.training.examples import Source, make
from diffusion.training.network import Packed, softcap
from diffusion.training.objective import cross_entropy

from .conftest import TEXTS, Tiny


def test_one_packed_pass_equals_the_library_encoder_and_decoder(tiny: Tiny) -> None:
    source = Source(language="python", path="a/b.py", text=TEXTS[1])
    rows = make(source, random.Random(5), tiny.vocabulary, tiny.profile, canvases=True)
    packed = Packed(
        *(torch.from_numpy(getattr(rows, n))[None] for n in ("ids", "positions", "segment", "cut")),
        window=tiny.profile.layout.encoder,
    )
    ours = tiny.network(packed)[0]
    window = rows.segment == 0
    cache = tiny.model.new_cache()
    theirs = tiny.model.continuations(torch.from_numpy(rows.ids[window])[None, 1:], _encoded(tiny, cache, rows.ids[:1]))
    torch.testing.assert_close(ours[torch.from_numpy(window)][1:], theirs[0], atol=1e-4, rtol=1e-4)
    assert rows.segment.max() >= 3
    for number in range(1, rows.segment.max() + 1):
        here = rows.segment == number
        cut = int(rows.cut[here][0])
        tiny.model.encode(rows.ids[:cut].tolist(), cache)
        decoded = tiny.model.decode(
            torch.from_numpy(rows.ids[here])[None], torch.from_numpy(rows.positions[here])[None], cache
        )
        torch.testing.assert_close(ours[torch.from_numpy(here)], decoded[0], atol=1e-4, rtol=1e-4)


def _encoded(tiny: Tiny, cache, ids):  # type: ignore[no-untyped-def]
    tiny.model.encode(ids.tolist(), cache)
    return cache


def test_fused_cross_entropy_equals_the_plain_one() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(512, 24, generator=generator, requires_grad=True)
    table = torch.randn(100, 24, generator=generator, requires_grad=True)
    targets = torch.randint(100, (512,), generator=generator)
    weights = torch.rand(512, generator=generator)
    total, losses = cross_entropy(hidden, table, targets, weights, torch.float32)
    (3 * total).backward()
    fused = [hidden.grad, table.grad]
    hidden.grad = table.grad = None
    plain = F.cross_entropy(softcap(hidden @ table.T), targets, reduction="none")
    (3 * (plain * weights).sum()).backward()
    torch.testing.assert_close(losses, plain.detach())
    torch.testing.assert_close(fused, [hidden.grad, table.grad], atol=1e-3, rtol=1e-4)
