"""`midfill bench gpu`: how large and how fast a quantised model of the 26B configuration is on this GPU.

Weights are random, made and quantised on the device layer by layer: sizes and times do not depend on their values, and
nothing has to be fetched. Every figure is written as soon as it is known. On the CPU a small configuration runs through
the same script, which is how it is tested; it has never run on a GPU. Knows the command line, the order of things and
how they are shown; what is measured stands in measures.py and products.py.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NoReturn

import torch

from diffusion import devices, memory_plan
from diffusion.api import BadRequest, EngineError
from diffusion.gpu_bench.bench import Bench, Buckets, Figures
from diffusion.gpu_bench.measures import measured
from diffusion.profiles import load_profile

SKIPPED = 77
"""Exit code where there is no GPU: what test harnesses take for "skipped"."""

PROFILE = "diffusiongemma-26b-a4b-it"

TINY = {
    "hidden_size": 128, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4,
    "layer_types": ["sliding_attention", "full_attention"], "num_key_value_heads": 2,
    "num_global_key_value_heads": 1, "head_dim": 32, "global_head_dim": 64, "num_experts": 8, "top_k_experts": 2,
    "moe_intermediate_size": 64, "vocab_size": 400, "sliding_window": 64,
}  # fmt: skip
"""What --scale tiny changes."""

EPILOG = f"""\
For one GPU of 24 GB or more; never run on one so far. Random weights: no download. It ends after eight minutes, with
what is known by then (--limit).
Exit code {SKIPPED}: skipped, there is no GPU.

examples:
  midfill bench gpu --output gpu.jsonl           everything; figures are kept as they come
  midfill bench gpu --quick                      one canvas width, one canvas at a time
  midfill bench gpu --scale tiny --device cpu    the same script on a small model, to see whether it works
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadRequest(message, "see `midfill bench gpu --help`")


def main(argv: Sequence[str]) -> int:
    """Measure and print. 0: done, or the time was up; SKIPPED: no GPU. Raises EngineError."""
    options = _parser().parse_args(argv)
    if options.device == "cpu" and options.scale != "tiny":
        raise BadRequest(f"the {options.scale} configuration is for a GPU", "--scale tiny --device cpu")
    problem = devices.cuda_problem() if options.device == "cuda" else ""
    if problem:
        print(json.dumps({"what": "skipped", "reason": problem}) if options.json else f"skipped: no GPU: {problem}")
        return SKIPPED
    profile = load_profile(PROFILE)
    assert profile.quantisation is not None
    small = options.scale == "tiny"
    text = profile.architecture | (TINY if small else {})
    chosen = devices.choose() if options.device == "cuda" else devices.cpu()
    # As much as the widest bucket and the longest text take; a smaller card leaves out what does not fit.
    memory_plan.refuse_beyond(text, profile.quantisation, free=chosen.free, positions=64, tokens=1024)
    bench = Bench(
        profile=replace(profile, sampler=replace(profile.sampler, steps=3)) if small else profile,
        quantisation=profile.quantisation,
        text=text,
        buckets=_buckets(small, options.quick, profile.sampler.lengths),
        device=chosen.device,
        where=str(chosen),
        dtype=torch.float32 if options.device == "cpu" else torch.bfloat16,
    )
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(_opened(options.output)) if options.output else None
        _run(bench, options.limit, options.json, file)
    return 0


def _buckets(small: bool, quick: bool, lengths: int) -> Buckets:
    return Buckets(
        widths=(16,) if small else (64,) if quick else (16, 64, 256),
        batches=(1,) if quick else (1, 2 if small else lengths),
        tokens=96 if small else 1024 if quick else 4096,
        repeats=2 if small else 5 if quick else 10,
        steps=3 if small else 8,
        copied=2**24 if small else 2**30,
    )


def _run(bench: Bench, limit: float, as_json: bool, file: IO[str] | None) -> None:
    """Stops between two figures once the time is up."""
    begun = time.monotonic()
    for figures in measured(bench):
        seconds = time.monotonic() - begun
        _show(figures, seconds, as_json, file)
        if seconds > limit:
            left_out = Figures("stopped", reason=f"{limit} seconds are over; what comes after this was left out")
            _show(left_out, seconds, as_json, file)
            return
    _show(Figures("done"), time.monotonic() - begun, as_json, file)


def _show(figures: Figures, seconds: float, as_json: bool, file: IO[str] | None) -> None:
    line = json.dumps({"what": figures.what, **figures.values, "at_s": round(seconds, 2)})
    if file:
        file.write(line + "\n")
        file.flush()
    values = ", ".join(f"{name} {_short(value)}" for name, value in figures.values.items())
    print(line if as_json else f"{figures.what:<10} {values}", flush=True)


def _short(value: str | float) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[str]]:
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise EngineError(f"{path} cannot be written: {error.strerror}", "another place for --output") from error


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="midfill bench gpu",
        description="Memory and speed of the 26B model on this GPU, with the plain int4 product and with the fused "
        "kernel, and whether the kernel computes the right thing here.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--scale", choices=("26b", "tiny"), default="26b", help="of the model (default: %(default)s)")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="fewer widths, batches and repetitions")
    parser.add_argument("--limit", type=_seconds, default=480, metavar="SECONDS", help="stop after (default: 480)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per figure")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the JSON objects there as well")
    return parser


def _seconds(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 86_400:
        raise argparse.ArgumentTypeError(f"a whole number of seconds from 1 to 86400 is needed, not {text!r}")
    return int(text)
