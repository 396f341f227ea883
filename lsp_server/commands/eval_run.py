"""Runs an evaluation through an engine: a fill per cut, one after the other, with progress on standard error.

Knows engines, cuts and the sandbox; nothing of the command line and of how figures are shown.
"""

from __future__ import annotations

import ast
import dataclasses
import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from diffusion.api import FillRequest
from lsp_server.commands import render, session
from lsp_server.commands.eval_context import Repository
from lsp_server.commands.eval_cuts import Cut
from lsp_server.commands.eval_data import Problem
from lsp_server.commands.eval_figures import Trial, judge
from lsp_server.commands.eval_sandbox import Sandbox, Verdict
from lsp_server.context import Around, Budget, build_request, parse, sources_of

CLIENT = "eval"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Conditions:
    """Who fills and how: engine and profile as on the command line; `steps`, `corrections` None: as the profile says;
    `oracle_length`: the model is told how long the middle is. `repository`: what else is open; `sources`: what of all
    that goes into a request (None: what the settings begin with). `trace`: ask what the answers were chosen from."""

    engine: str
    profile: str
    steps: int | None = None
    corrections: int | None = None
    oracle_length: bool = False
    repository: Repository | None = None
    sources: frozenset[str] | None = None
    trace: bool = False

    def request(self, cut: Cut, number: int) -> FillRequest:
        """What an editor would ask for at the cut, but with the task that the kind of cut sets: one candidate, the
        likeliest, and time enough."""
        built = build_request(
            parse(cut.prefix + cut.suffix, cut.language, cut.path),
            len(cut.prefix),
            language=cut.language,
            path=cut.path,
            budget=Budget(sources=sources_of(["auto"], self.profile) if self.sources is None else self.sources),
            around=self.repository.around(cut) if self.repository else Around(),
            explicit=True,
            request_id=f"{CLIENT}-{number}",
            client=CLIENT,
        )
        assert isinstance(built, FillRequest), "no cut leaves an empty file"
        return dataclasses.replace(
            built,
            mode=cut.mode,
            max_lines=cut.max_lines,
            steps=self.steps,
            corrections=self.corrections,
            length_of=cut.middle if self.oracle_length else None,
            trace=self.trace,
        )


async def fill_all(conditions: Conditions, cuts: Sequence[Cut], console: Console) -> AsyncGenerator[Trial, None]:
    """Fill every cut and judge it, in order. Raises UsageError, EngineError."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("starting the engine", total=None)
        async with session.opened_engine(
            conditions.engine,
            conditions.profile,
            lambda status: progress.update(task, description=render.loading_line(status)),
        ) as engine:
            progress.update(task, description=conditions.profile, total=len(cuts))
            for number, cut in enumerate(cuts):
                result = await session.run_fill(engine, conditions.request(cut, number))
                yield judge(cut, result)
                progress.advance(task)


async def fill_cuts(conditions: Conditions, cuts: Sequence[Cut], console: Console) -> list[Trial]:
    """The judged fills of all cuts. Raises UsageError, EngineError."""
    return [trial async for trial in fill_all(conditions, cuts, console)]


async def solve(
    conditions: Conditions, problems: Sequence[Problem], sandbox: Sandbox, console: Console
) -> list[tuple[Trial, Verdict]]:
    """Fill the problems and run the program of each when it is filled. Raises UsageError, EngineError."""
    solved: list[tuple[Trial, Verdict]] = []
    cuts = [problem.cut for problem in problems]
    async with aclosing(fill_all(conditions, cuts, console)) as trials:
        async for trial in trials:
            program = problems[len(solved)].program(trial.completed)
            solved.append((trial, await sandbox.run(program)))
    return solved


def parses(trial: Trial) -> bool:
    """Whether a Python file with this middle has no syntax error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the model writes, an odd escape is nobody's business
        try:
            ast.parse(trial.completed + trial.cut.suffix)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True
