"""`midfill eval`: how good a model is, measured through the engine, on public problems or on one's own files.

Knows the command line and which figures each evaluation has; the cuts, the fills and the figures are in eval_*.py.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from lsp_server.chosen_model import chosen_model
from lsp_server.commands import (
    eval_context,
    eval_data,
    eval_figures,
    eval_heldout,
    eval_report,
    eval_run,
    render,
    session,
)
from lsp_server.commands.eval_context import Repository
from lsp_server.commands.eval_cuts import KINDS
from lsp_server.commands.eval_figures import Trial
from lsp_server.commands.eval_sandbox import SECONDS, Sandbox
from lsp_server.engines import AUTO
from lsp_server.usage import Parser, UsageError, whole_number

DESCRIPTION = """\
Measures how often a model writes exactly what stood there, how close it comes, and how long it takes.

  human-eval-infilling   holes in published problems: do the programs pass their tests?
  heldout                holes in packages that the embedded model was not trained on
  repo                   holes in your own files: which of two models is the better one for you?

Every hole is filled through the engine, as in an editor, with one candidate and no limit of time; the same holes every
time. An exact match is the author's own text, blanks at line ends apart. Intervals are 95 % bootstrap intervals. For
times that mean something, leave the machine alone meanwhile.
"""

HUMAN_EVAL = """\
HumanEval-Infilling: from each program a line, or a random span, was taken out. pass@1 is the share of programs that
pass the tests of the data with the model's middle in them.

example:
  midfill eval human-eval-infilling --data HumanEval-SingleLineInfilling.jsonl.gz --limit 100

The programs are run in processes of their own with limits of time and memory, without network and without writing
files outside a temporary folder. That guards against accidents, not against malice: do not use it for data or models
that you do not trust.
"""

REPO = """\
Cuts holes into the source files below DIR that git tracks and lets the model fill them: the test that says which model
to run. Nothing is written, and nothing leaves the machine unless a profile names a remote engine.

examples:
  midfill eval repo .
  midfill eval repo ~/src/app --profile embedded --profile my-own --limit 400
  midfill eval repo ~/src/app --context
  midfill eval repo ~/src/app --context files lines
"""

PROFILES = 4


def main(argv: Sequence[str]) -> int:
    """Evaluate and print it. Raises UsageError, EngineError."""
    options = _parser().parse_args(argv)
    evaluate: Callable[[argparse.Namespace, Console, Console], dict[str, Any]] = options.evaluate
    out, err = render.consoles()
    if not out.is_terminal:
        out.width = eval_report.WIDTH
    figures = evaluate(options, Console(quiet=True) if options.json else out, err)
    if options.json:
        print(json.dumps(figures))
    return 0


def _human_eval(options: argparse.Namespace, out: Console, err: Console) -> dict[str, Any]:
    problems = eval_data.human_eval_infilling(options.data)[: options.limit]
    solved = asyncio.run(eval_run.solve(_conditions(options), problems, Sandbox(options.seconds), err))
    trials = [trial for trial, _ in solved]
    figures = {
        "profile": options.profile,
        **eval_figures.share("pass@1", [verdict == "passed" for _, verdict in solved], trials),
        **eval_figures.summary(trials),
        "parse_rate": eval_figures.percent(map(eval_run.parses, trials)),
        "out_of_time": sum(verdict == "out of time" for _, verdict in solved),
        "oracle_length": options.oracle_length,
        "steps": options.steps,
        "corrections": options.corrections,
    }
    eval_report.single(out, figures)
    return figures


def _heldout(options: argparse.Namespace, out: Console, err: Console) -> dict[str, Any]:
    conditions = dataclasses.replace(_conditions(options), trace=True)
    return eval_heldout.run(
        options, conditions, lambda cuts: asyncio.run(eval_run.fill_cuts(conditions, cuts, err)), out
    )


def _repo(options: argparse.Namespace, out: Console, err: Console) -> dict[str, Any]:
    profiles = options.profiles or [chosen_model()]
    if len(profiles) > PROFILES or len(set(profiles)) < len(profiles):
        raise UsageError(f"--profile must name up to {PROFILES} profiles, none of them twice")
    if options.context is not None:
        if len(profiles) > 1:
            raise UsageError("--context compares sources for one model", "name one --profile")
        return _context(options, profiles[0], out, err)
    cuts = eval_data.repository(options.folder, options.limit)
    conditions = [eval_run.Conditions(engine=options.engine, profile=profile) for profile in profiles]

    async def every() -> list[list[Trial]]:
        return [await eval_run.fill_cuts(one, cuts, err) for one in conditions]

    runs = asyncio.run(every())
    kinds: dict[str, list[dict[str, Any]]] = {}
    for kind in KINDS:
        chosen = [[trial for trial in run if trial.cut.kind == kind] for run in runs]
        if chosen[0]:
            kinds[kind] = [eval_figures.summary(trials) for trials in chosen]
    overall = [eval_figures.summary(run) for run in runs]
    eval_report.side_by_side(out, profiles, [*kinds.items(), ("all", overall)])
    differences = [eval_figures.difference(runs[0], run) for run in runs[1:]]
    for profile, (gain, low, high) in zip(profiles[1:], differences, strict=True):
        out.print(f"exact match of {profile} against {profiles[0]}: {gain:+.1f} points [{low:+.1f}, {high:+.1f}]")
    return {
        "n": len(cuts),
        "profiles": [
            {"profile": profile, **overall[index], "kinds": {kind: figures[index] for kind, figures in kinds.items()}}
            for index, profile in enumerate(profiles)
        ],
        "exact_match_differences": [
            {"profile": profile, "against": profiles[0], "points": gain, "points_95": [low, high]}
            for profile, (gain, low, high) in zip(profiles[1:], differences, strict=True)
        ],
    }


def _context(options: argparse.Namespace, profile: str, out: Console, err: Console) -> dict[str, Any]:
    """What the sources of context gain: the same cuts with none, with each and with all of them."""
    cuts = eval_data.repository(options.folder, options.limit)
    repository = Repository(texts=list(eval_data.tracked(options.folder)))
    compared = eval_context.conditions(options.context or eval_context.MEASURED)

    async def every() -> dict[str, list[Trial]]:
        return {
            name: await eval_run.fill_cuts(
                eval_run.Conditions(engine=options.engine, profile=profile, repository=repository, sources=sources),
                cuts,
                err,
            )
            for name, sources in compared.items()
        }

    runs = asyncio.run(every())
    rows = []
    for name, trials in runs.items():
        gains = {
            f"{figure}{suffix}": values
            for figure, value in (("exact_gain", lambda trial: trial.exact), ("similarity_gain", _similarity))
            for suffix, values in _points(eval_figures.difference(runs["none"], trials, value)).items()
        }
        rows.append({"context": name, **eval_figures.summary(trials), **gains})
    eval_report.rows(out, ("context",), rows)
    return {"n": len(cuts), "profile": profile, "context": rows}


def _similarity(trial: Trial) -> float:
    return trial.similarity


def _points(difference: tuple[float, float, float]) -> dict[str, Any]:
    return {"": difference[0], "_95": list(difference[1:])}


def _conditions(options: argparse.Namespace) -> eval_run.Conditions:
    return eval_run.Conditions(
        engine=options.engine,
        profile=options.profile,
        steps=options.steps,
        corrections=options.corrections,
        oracle_length=options.oracle_length,
    )


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = Parser(prog="midfill eval", description=DESCRIPTION, formatter_class=raw)
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="human-eval-infilling|heldout|repo")

    human_eval = kinds.add_parser("human-eval-infilling", description=HUMAN_EVAL, formatter_class=raw)
    human_eval.add_argument(
        "--data", type=Path, required=True, metavar="FILE", help="HumanEval-*Infilling*.jsonl.gz, as published"
    )
    human_eval.add_argument(
        "--seconds",
        type=whole_number(1, 600),
        default=SECONDS,
        metavar="N",
        help="time for each program (default: %(default)s)",
    )
    _add_limit(human_eval, None, "problems")
    _add_conditions(human_eval)
    human_eval.set_defaults(evaluate=_human_eval)

    heldout = kinds.add_parser("heldout", description=eval_heldout.DESCRIPTION, formatter_class=raw)
    eval_heldout.add_arguments(heldout)
    _add_limit(heldout, 2_400, "holes")
    _add_conditions(heldout)
    heldout.set_defaults(evaluate=_heldout)

    repo = kinds.add_parser("repo", description=REPO, formatter_class=raw)
    repo.add_argument("folder", type=Path, metavar="DIR", help="a folder of a git repository")
    repo.add_argument(
        "--profile",
        dest="profiles",
        action="append",
        metavar="P",
        help=f"model profile; name several to compare them (default: {chosen_model()})",
    )
    repo.add_argument(
        "--context",
        nargs="*",
        choices=eval_context.MEASURED,
        metavar="SOURCE",
        help="measure instead what each source of context gains, several files being open (default: all of "
        f"{', '.join(eval_context.MEASURED)})",
    )
    repo.add_argument("--engine", default=AUTO, metavar="scripted:FILE", help="answer from a file (for tests)")
    _add_limit(repo, 200, "holes")
    repo.set_defaults(evaluate=_repo)
    return parser


def _add_limit(parser: argparse.ArgumentParser, default: int | None, unit: str) -> None:
    parser.add_argument(
        "--limit",
        type=whole_number(1, 100_000),
        default=default,
        metavar="N",
        help=f"{unit} at most, the first of the list (default: {default or 'all'})",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


def _add_conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--oracle-length",
        action="store_true",
        help="tell the model how long the middle is: what is lost by not knowing",
    )
    parser.add_argument(
        "--steps", type=whole_number(1, 256), metavar="N", help="denoising steps per canvas (default: the profile's)"
    )
    parser.add_argument(
        "--corrections",
        type=whole_number(0, 8),
        metavar="N",
        help="how often the model takes back what does not fit (default: the profile's)",
    )
    session.add_engine_arguments(parser)
