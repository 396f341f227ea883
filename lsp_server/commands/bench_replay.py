"""`midfill bench replay`: files are typed again through the real server, and what fits is accepted.

Each way of completing has a window (a server) of its own, all share one engine that is started for it. Knows figures
and how they are shown; typing is replay_typing.py, the windows replay_run.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import math
import os
import random
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from grammars.languages import language_for
from lsp_server.chosen_model import chosen_model
from lsp_server.commands import eval_data, eval_report, replay_chart
from lsp_server.commands.eval_cuts import Text
from lsp_server.commands.replay_run import Counts, Way, replay
from lsp_server.commands.replay_typing import Stretch, stretch
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import RUNTIME_DIR_VARIABLE
from lsp_server.engines import AUTO
from lsp_server.settings import Settings
from lsp_server.usage import Parser, UsageError, whole_number

WAYS = {"warm start": "", "cache": "no-warm-start", "no cache": "no-cache", "left to right": "left-to-right"}
"""Names of the ways -> what `midfill lsp --measure` calls them."""
WAIT = "wait"


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Of one way. Shares are percentages.

    `saved`: keys, of those that typing by hand takes; accepting an item, a line or a word is a key. `accepted`:
    characters that were not typed. After how many of the keys something was `shown`, and something `wrong` (nothing of
    it could be accepted); which share of what was shown was wrong. Milliseconds from a key to its answer; `late`: keys
    without one before the next key. `decoder_calls` and `encoder_calls` per key, of answers that came to their end;
    `without_model`: answers that needed none.
    """

    way: str
    min_confidence: float
    files: int
    characters: int
    keys: int
    saved: float
    accepted: float
    shown: float
    wrong: float
    wrong_of_shown: float | None
    whole: int
    parts: int
    p50_ms: float | None
    p95_ms: float | None
    late: float
    decoder_calls: float
    encoder_calls: float
    without_model: float


def figures(counts: Counts) -> Figures:
    """From what was counted. Without a single key they are all 0."""
    requests, latencies = max(1, counts.requests), sorted(counts.latencies_ms)
    p50, p95 = (latencies[round(share * (len(latencies) - 1))] if latencies else None for share in (0.5, 0.95))
    return Figures(
        way=counts.way.name,
        min_confidence=counts.way.min_confidence,
        files=counts.files,
        characters=counts.characters,
        keys=counts.keys,
        saved=100 * (1 - counts.keys / counts.by_hand) if counts.by_hand else 0.0,
        accepted=100 * counts.accepted / max(1, counts.characters),
        shown=100 * counts.shown / requests,
        wrong=100 * counts.wrong / requests,
        wrong_of_shown=100 * counts.wrong / counts.shown if counts.shown else None,
        whole=counts.whole,
        parts=counts.parts,
        p50_ms=p50,
        p95_ms=p95,
        late=100 * counts.late / requests,
        decoder_calls=counts.forwards / requests,
        encoder_calls=counts.encodes / requests,
        without_model=100 * counts.without_model / max(1, counts.answered),
    )


def main(argv: list[str]) -> int:
    """Replay, print figures, write the chart. After an interruption: what there is, and 130. Raises UsageError,
    EngineError."""
    options = _parser().parse_args(argv)
    ways = [
        Way(name=name, measured=WAYS[name], min_confidence=confidence)
        for name in options.ways
        for confidence in options.min_confidence
    ]
    stretches = _stretches(options.paths, options.files, options.chars, options.seed)
    speed = None if options.cadence == WAIT else options.cadence
    counts: list[Counts] = []
    code = 0
    with tempfile.TemporaryDirectory(prefix="midfill-") as folder:
        # Nothing of it is to show in the user's engine, journal and statistics.
        environment = os.environ | {RUNTIME_DIR_VARIABLE: folder, "XDG_STATE_HOME": folder}
        os.environ[RUNTIME_DIR_VARIABLE] = folder
        try:
            asyncio.run(_measure(options, ways, stretches, counts, speed, environment))
        except KeyboardInterrupt:
            code = 130
        finally:
            if options.engine == AUTO:
                asyncio.run(EngineClient(options.profile, start=False).end())
    found = [figures(one) for one in counts if one.requests]
    if options.chart:
        options.chart.write_text(replay_chart.chart([asdict(one) for one in found], _title(options)), encoding="utf-8")
    _print(found, options)
    return code


async def _measure(
    options: Any,
    ways: list[Way],
    stretches: list[Stretch],
    counts: list[Counts],
    speed: float | None,
    environment: dict[str, str],
) -> None:
    if options.engine == AUTO:
        _progress("the engine loads the model")
        await EngineClient(options.profile).wait_ready()
    settings: dict[str, Any] = {"model": options.profile if options.engine == AUTO else ""}
    if speed is None:
        settings["debounceMs"] = 0  # Who waits for every answer types no faster than they come.
    if options.deadline_ms:
        settings["deadlineMs"] = options.deadline_ms
    await replay(
        ways,
        stretches,
        counts,
        options=settings,
        arguments=("--engine", options.engine),
        environment=environment,
        seed=options.seed,
        speed=speed,
        on_progress=_progress,
    )


def _stretches(paths: list[Path], files: int, chars: int, seed: int) -> list[Stretch]:
    """One of each file, files in an order that `seed` chooses. Raises UsageError."""
    texts = [text for path in paths for text in (eval_data.tracked(path) if path.is_dir() else [_file(path)])]
    random.Random(seed).shuffle(texts)
    if not texts:
        raise UsageError("there is no file to replay", "name source files, or a folder below which git tracks some")
    return [stretch(text, chars, seed) for text in texts[:files]]


def _file(path: Path) -> Text:
    text = eval_data.source(path)
    if text is None:
        raise UsageError(f"{path} cannot be replayed", "it must be a source file of 200 to 100,000 characters in UTF-8")
    return Text(language=language_for("", path.name).language_ids[0], path=path.name, text=text)


def _title(options: Any) -> str:
    if options.cadence == WAIT:
        return "every answer waited for"
    return f"typed {'at' if options.cadence == 1 else f'{options.cadence:g} times'} human speed"


def _print(found: list[Figures], options: Any) -> None:
    if options.json:
        cadence = options.cadence
        print(json.dumps({"cadence": cadence, "seed": options.seed, "ways": [asdict(one) for one in found]}))
        return
    out = Console(width=None if sys.stdout.isatty() else eval_report.WIDTH, highlight=False)
    out.print(f"{options.profile if options.engine == AUTO else options.engine}, {_title(options)}", markup=False)
    names = [name for name in Figures.__dataclass_fields__ if name not in ("way", "min_confidence")]
    heads = {(one.way, one.min_confidence): asdict(one) for one in found}
    eval_report.rows(
        out,
        ("figure",),
        [
            {"figure": name}
            | {
                f"{way} {confidence:g}" if confidence >= 0 else way: one[name]
                for (way, confidence), one in heads.items()
            }
            for name in names
        ],
    )


def _progress(line: str) -> None:
    with contextlib.suppress(OSError):
        end = "\r" if sys.stderr.isatty() else "\n"
        print(f"{line:<79}"[:79], end=end, file=sys.stderr, flush=True)


def _parser() -> Parser:
    parser = Parser(
        prog="midfill bench replay",
        description="Type source files again through the real server and accept what fits. Compares: with cache and "
        "warm starts as in an editor, without warm starts, without a cache, and the same weights left to right.",
    )
    parser.add_argument("paths", nargs="+", type=Path, metavar="DIR|FILE", help="files, or folders that git tracks")
    parser.add_argument("--files", type=whole_number(1, 10_000), default=20, help="at most (default: %(default)s)")
    parser.add_argument(
        "--chars",
        type=whole_number(0, 1_000_000),
        default=300,
        help="of each file, whole lines at a place that the seed chooses; 0: whole files (default: %(default)s)",
    )
    parser.add_argument(
        "--cadence",
        type=_cadence,
        default=1.0,
        metavar="FACTOR|wait",
        help="so many times as fast as people type, or wait for every answer (default: %(default)s)",
    )
    parser.add_argument("--ways", type=_ways, default=list(WAYS), help=f"default: {','.join(WAYS)}")
    parser.add_argument(
        "--min-confidence",
        type=_confidences,
        default=[Settings().min_confidence],
        metavar="0.35,...",
        help="each way once with each; -1: what suits the model (default: that of the settings)",
    )
    parser.add_argument("--deadline-ms", type=whole_number(50, 60_000), help="default: that of the settings")
    parser.add_argument("--seed", type=whole_number(0, 2**31), default=0)
    parser.add_argument("--profile", default=chosen_model(), help="model profile (default: %(default)s)")
    parser.add_argument("--engine", default=AUTO, metavar="scripted:FILE", help="answers from a file (for tests)")
    parser.add_argument("--chart", type=Path, metavar="FILE.svg", help="write a picture of the figures")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def _cadence(text: str) -> float | str:
    return WAIT if text == WAIT else _number(text, 0.1, 100)


def _ways(text: str) -> list[str]:
    ways = [way.strip() for way in text.split(",")]
    if unknown := [way for way in ways if way not in WAYS]:
        raise argparse.ArgumentTypeError(f"there is no way {unknown[0]!r}, only {', '.join(WAYS)}")
    return ways


def _confidences(text: str) -> list[float]:
    return [_number(value, -1, 1) for value in text.split(",")]


def _number(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"a number from {low:g} to {high:g} is needed, not {text!r}")
    return value
