"""`midfill demo`: masked spans in real source files denoise into code before your eyes.

Knows the demo's files, in which the spans to fill stand between ⟦ and ⟧; what is in there is taken out before the
model sees the file, and compared with afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources

from rich.console import Console
from rich.live import Live
from rich.text import Text

from diffusion.api import Candidate, Draft, Engine, FillRequest, Result
from lsp_server.commands import render, session
from lsp_server.commands.source import language_of
from lsp_server.context import Budget, Nothing, build_request, parse
from lsp_server.usage import Parser

FILES = ("inventory.py", "cart.js", "router.ts")
MARKED = re.compile("⟦(.*?)⟧", re.DOTALL)
FRAME_SECONDS = 0.06
"""How long a denoising step stays on a terminal at least: the model is faster than the eye."""

EPILOG = """\
examples:
  midfill demo              all places, at a pace that can be watched
  midfill demo --fast       as fast as the model is
  midfill demo | less -R    without animation: one line per denoising step
"""


@dataclass(frozen=True, kw_only=True)
class Span:
    """A file without one of its spans: what stands before, what the author wrote there, what follows."""

    file: str
    line: int
    prefix: str
    written: str
    suffix: str


def main(argv: Sequence[str]) -> int:
    """Fill every span. Raises UsageError, EngineError."""
    arguments = _parser().parse_args(argv)
    out, err = render.consoles()

    async def demo() -> list[tuple[Span, Result]]:
        with err.status("starting the engine") as shown:
            async with session.opened_engine(
                arguments.engine, arguments.profile, lambda status: shown.update(render.loading_line(status))
            ) as engine:
                shown.stop()
                return [
                    (span, await _show(engine, span, out, 0.0 if arguments.fast else FRAME_SECONDS))
                    for file in FILES
                    for span in spans_in(file)
                ]

    done = asyncio.run(demo())
    _summary(done, out)
    return 0


def spans_in(file: str) -> Iterator[Span]:
    """The spans of a demo file, each in the otherwise complete file."""
    marked = (resources.files("lsp_server.commands") / "demo_files" / f"{file}.txt").read_text(encoding="utf-8")
    for found in MARKED.finditer(marked):
        prefix = MARKED.sub(r"\1", marked[: found.start()])
        suffix = MARKED.sub(r"\1", marked[found.end() :])
        yield Span(file=file, line=prefix.count("\n") + 1, prefix=prefix, written=found[1], suffix=suffix)


async def _show(engine: Engine, span: Span, out: Console, pace: float) -> Result:
    """Fill one span and show how: in place on a terminal, a line per denoising step elsewhere."""
    request = _request(span)
    out.rule(f"{span.file}, line {span.line}", align="left")
    if out.is_terminal:
        start = render.in_place(span.prefix, Text(" ", "reverse"), span.suffix)
        # A console of its own: one that does not wrap would cut the canvas off.
        with Live(start, console=Console(highlight=False), auto_refresh=False, transient=True) as live:

            def on_draft(draft: Draft) -> None:
                live.update(render.in_place(span.prefix, render.canvas(draft), span.suffix), refresh=True)
                time.sleep(pace)

            result = await session.run_fill(engine, request, on_draft)
    else:
        result = await session.run_fill(engine, request, lambda draft: out.print(render.step_line(draft)))
    best = result.candidates[0] if result.candidates else Candidate(text="")
    out.print(render.filled(span.prefix, best, span.suffix, marks=render.needs_marks(out)))
    out.print(_verdict(span, result))
    out.print(render.effort(result.model, result.cost.forwards, result.cost.ms), style=render.AROUND)
    return result


def _request(span: Span) -> FillRequest:
    language = language_of(span.file)
    request = build_request(
        parse(span.prefix + span.suffix, language),
        len(span.prefix),
        language=language,
        path=f"shop/{span.file}",
        budget=Budget(),
        explicit=True,
        request_id=f"demo-{span.file}-{span.line}",
        drafts=True,
    )
    assert not isinstance(request, Nothing), "no demo file is empty"
    return dataclasses.replace(request, cells=True)


def as_written(span: Span, result: Result) -> bool:
    """Whether the best candidate is exactly what the author wrote."""
    if not result.candidates:
        return False
    best = result.candidates[0]
    return span.prefix[: len(span.prefix) - best.replace_before] + best.text == span.prefix + span.written


def _verdict(span: Span, result: Result) -> str:
    if not result.candidates:
        return f"-> nothing offered; the author wrote: {span.written}"
    return "-> as the author wrote it" if as_written(span, result) else f"-> the author wrote: {span.written}"


def _summary(done: list[tuple[Span, Result]], out: Console) -> None:
    forwards = sum(result.cost.forwards for _, result in done)
    ms = sum(result.cost.ms for _, result in done)
    same = sum(as_written(span, result) for span, result in done)
    out.rule("summary", align="left")
    out.print(f"{len(done)} places in {len(FILES)} files, {forwards} forwards, {ms:.0f} ms", style="bold")
    out.print(f"{same} exactly as the author wrote them; the others may be as good or wrong, judge for yourself")
    out.print("\nnext: one of your own files     midfill complete FILE:LINE:COLUMN --steps")
    out.print("      in your editor             let it start `midfill lsp` as a language server (see the README)")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill demo",
        description="Watch masked spans in Python, JavaScript and TypeScript files denoise into code.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--fast", action="store_true", help="do not slow down for the eye")
    session.add_engine_arguments(parser)
    return parser
