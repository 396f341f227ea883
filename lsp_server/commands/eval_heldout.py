"""`midfill eval heldout`: figures on the frozen list of holes, what ranking and self-correction gain, reliability.

Also the same holes as requests in a file, for those who fit something on them (diffusion.training.calibrate). Knows the
command line of this evaluation; filling and judging are in eval_run.py and eval_figures.py.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from diffusion.api import to_json
from lsp_server import gates
from lsp_server.commands import eval_data, eval_figures, eval_report, eval_run
from lsp_server.commands.eval_cuts import KINDS, Cut
from lsp_server.commands.eval_figures import Trial
from lsp_server.settings import Settings
from lsp_server.usage import UsageError

DESCRIPTION = """\
Holes in the held-out packages of a training corpus: the rest of a line from a random column, a whole line, what stands
between two brackets, a block of two to six lines. Where the model states its confidence, `shown` is the share of holes
whose answer passes the gate with which the settings begin, and `exact of shown` the share of those that are right.

Below, what the choice among candidates gains: exact matches of the decoder's own first candidate, of the best one by
rank, of that one after self-correction, and of the best in the batch, which no ranking can surpass; in how many fills
the model took ids back that it had accepted, in how many it changed some, and what that gained.

examples:
  midfill eval heldout --corpus ~/.local/state/midfill/training/corpus
  midfill eval heldout --corpus DIR --kind "rest of line" --limit 300 --steps 1      what do the other steps gain?
  midfill eval heldout --corpus DIR --limit 300 --corrections 1                      and self-correction?
  midfill eval heldout --corpus DIR --list calibration --limit 400 --requests FILE  to fit something on
"""

LANGUAGE_GROUPS: tuple[tuple[str, ...], ...] = (
    ("python",),
    ("javascript",),
    ("typescript",),
    ("javascript", "typescript"),
)

TrialsOf = Callable[[Sequence[Cut]], Sequence[Trial]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Those that only this evaluation has."""
    parser.add_argument("--corpus", type=Path, required=True, metavar="DIR", help="folder of the training corpus")
    parser.add_argument(
        "--kind", dest="kinds", action="append", choices=KINDS, help="kind of holes; may be repeated (default: all)"
    )
    parser.add_argument(
        "--list", default="heldout", metavar="NAME", help="another frozen list of holes than the one for figures"
    )
    parser.add_argument(
        "--requests", type=Path, metavar="FILE", help="fill nothing; write each request and what stood there"
    )


def run(
    options: argparse.Namespace, conditions: eval_run.Conditions, trials_of: TrialsOf, out: Console
) -> dict[str, Any]:
    """The figures by name. Raises UsageError, EngineError."""
    cuts = eval_data.heldout(options.corpus, options.limit, options.list, options.kinds or tuple(KINDS))
    if options.requests:
        _write(options.requests, cuts, conditions)
        out.print(f"{len(cuts)} requests are in {options.requests}")
        return {"requests": len(cuts)}
    trials = trials_of(cuts)
    threshold = gates.confidence(Settings().min_confidence, next((t.gate for t in trials if t.gate is not None), None))
    rows = []
    for kind in KINDS:
        for languages in LANGUAGE_GROUPS:
            chosen = [t for t in trials if t.cut.kind == kind and t.cut.language in languages]
            if chosen:
                figures = eval_figures.summary(chosen) | eval_figures.gate(chosen, threshold)
                rows.append({"kind": kind, "language": "+".join(languages), **figures})
    eval_report.rows(out, ("kind", "language"), rows)
    overall = eval_figures.summary(trials) | eval_figures.gate(trials, threshold)
    out.print("all together")
    eval_report.single(out, overall)
    choices = eval_figures.choices(trials)
    if choices:
        out.print("\nfrom the first candidate to the answer: what the choice gains")
        eval_report.single(out, choices)
    bins = eval_figures.reliability(trials)
    if bins:
        out.print("\nreliability: what the model says of itself, and what is true (%)")
        eval_report.rows(out, (), bins)
    return {
        "profile": options.profile,
        "gate": threshold,
        **overall,
        "choices": choices,
        "rows": rows,
        "reliability": bins,
        "oracle_length": options.oracle_length,
        "steps": options.steps,
        "corrections": options.corrections,
    }


def _write(path: Path, cuts: Sequence[Cut], conditions: eval_run.Conditions) -> None:
    try:
        with path.open("w", encoding="utf-8") as file:
            for number, cut in enumerate(cuts):
                body = {"request": to_json(conditions.request(cut, number)), "middle": cut.middle}
                file.write(json.dumps(body) + "\n")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from None
