"""`midfill complete FILE:LINE:COLUMN`: what the model writes at a place, before the filters of the language server.

Knows the command line of this one command; the request is built by lsp_server.context, as in the server.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import re
from collections.abc import Sequence

from diffusion.api import Draft, FillRequest, Result
from lsp_server.commands import render, session
from lsp_server.commands.source import STDIN, Place, place_at
from lsp_server.context import Budget, Nothing, build_request, parse
from lsp_server.usage import Parser, UsageError, whole_number

EPILOG = """\
examples:
  midfill complete app.py:12:9                  fill the middle at line 12, before the 9th character
  midfill complete app.py:12:9 --steps          watch the canvas after every denoising step
  midfill complete app.py:12:9 --n 5 --json     five candidates, for a program to read
  cat app.py | midfill complete -:12:9 --language python

The cursor stands before the character in COLUMN; one column past the line's last character is the line's end.
"""


def main(argv: Sequence[str]) -> int:
    """Complete once and print it. Raises UsageError, EngineError."""
    # With a space before it, argparse does not take "-:12:9" for an option.
    arguments = _parser().parse_args([f" {word}" if word.startswith(f"{STDIN}:") else word for word in argv])
    place = place_at(re.sub(f"^ {STDIN}:", f"{STDIN}:", arguments.place), arguments.language)
    request = _request(place, arguments)
    drafts: list[Draft] = []
    out, err = render.consoles()

    def on_draft(draft: Draft) -> None:
        drafts.append(draft)
        if arguments.steps and not arguments.json:
            out.print(render.step_line(draft))

    async def complete() -> Result:
        with err.status("starting the engine") as shown:
            async with session.opened_engine(
                arguments.engine, arguments.profile, lambda status: shown.update(render.loading_line(status))
            ) as engine:
                shown.stop()
                return await session.run_fill(engine, request, on_draft)

    result = asyncio.run(complete())
    if arguments.json:
        print(json.dumps(_as_json(result, drafts if arguments.steps else None)))
        return 0
    if not result.candidates:
        out.print(f"nothing to offer here ({result.finish})")
    for number, candidate in enumerate(result.candidates):
        if number == 0:
            out.print(render.filled(request.prefix, candidate, request.suffix, marks=render.needs_marks(out)))
            out.print()
        if len(result.candidates) > 1:
            sure = "" if candidate.confidence is None else f"  ({candidate.confidence:.0%} sure)"
            out.print(f"{number + 1}. {render.visible(candidate.text)}{sure}")
    out.print(render.effort(result.model, result.cost.forwards, result.cost.ms), style=render.AROUND)
    return 0


def _request(place: Place, arguments: argparse.Namespace) -> FillRequest:
    budget = Budget() if arguments.max_lines is None else dataclasses.replace(Budget(), max_lines=arguments.max_lines)
    request = build_request(
        parse(place.text, place.language, place.path),
        place.offset,
        language=place.language,
        path=place.path,
        budget=budget,
        explicit=True,
        request_id=f"complete-{os.getpid()}",
        n=arguments.n,
        deadline_ms=arguments.deadline_ms,
        seed=arguments.seed,
        drafts=arguments.steps,
    )
    if isinstance(request, Nothing):
        raise UsageError(f"nothing can be completed there: {request.reason}")
    if arguments.max_lines == 1:
        request = dataclasses.replace(request, mode="line")
    return dataclasses.replace(request, cells=arguments.steps)


def _as_json(result: Result, drafts: list[Draft] | None) -> dict[str, object]:
    best = result.candidates[0] if result.candidates else None
    steps = {} if drafts is None else {"steps": [dataclasses.asdict(draft) for draft in drafts]}
    return {
        "text": best.text if best else "",
        "replace_before": best.replace_before if best else 0,
        "candidates": [dataclasses.asdict(candidate) for candidate in result.candidates],
        "finish": result.finish,
        "forwards": result.cost.forwards,
        "ms": result.cost.ms,
        "model": result.model,
        "cost": dataclasses.asdict(result.cost),
        **steps,
    }


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill complete",
        description="Fill the middle at a place in a file and print it: what stands before, the middle, what follows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("place", metavar="FILE:LINE:COLUMN", help="where; both numbers from 1. FILE may be - (stdin)")
    parser.add_argument("--n", type=whole_number(1, 10), default=1, help="candidates, the best first (1 to 10)")
    parser.add_argument(
        "--max-lines", type=whole_number(1, 200), metavar="N", help="lines at most (1: stay on the line)"
    )
    parser.add_argument(
        "--deadline-ms",
        type=whole_number(1, 3_600_000),
        metavar="MS",
        help="after this long the best draft is the answer",
    )
    parser.add_argument("--seed", type=whole_number(0, 2**63 - 1), default=0, help="same seed, same text")
    parser.add_argument("--language", default="", help="LSP language id, if the file's name does not say it")
    parser.add_argument("--steps", action="store_true", help="show the canvas after every denoising step")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    session.add_engine_arguments(parser)
    return parser
