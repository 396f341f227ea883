"""`midfill edit FILE:LINES INSTRUCTION`: lines of a file written anew, as an editor would have it done.

Knows the command line and the file of this one command; what is written is the pipeline's business (lsp_server.edit).
"""

from __future__ import annotations

import argparse
import asyncio
import codecs
import dataclasses
import difflib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path

from diffusion.api import EngineError, Failure, Result
from lsp_server.anchors import Anchors
from lsp_server.commands import render, session
from lsp_server.commands.source import Place, offset_of, place_at
from lsp_server.completion import Ask
from lsp_server.context import Around
from lsp_server.documents import Document, split_lines
from lsp_server.edit import Editor, Refusal, Rewrite
from lsp_server.files import Files
from lsp_server.journal import Journal
from lsp_server.usage import Parser, UsageError, whole_number
from lsp_server.wishes import Wish

EPILOG = """\
examples:
  midfill edit app.py:12-20 "add type annotations"       change the file and show what has changed
  midfill edit app.py:12-20 "add type annotations" --dry-run    only show it
  midfill edit app.py:12 --fill                          line 12 anew, from what stands around it

An instruction needs a model that takes some (`midfill model list`); --fill works with any.
"""


class _Quiet:
    """Nobody else wants to know."""

    def working(self, change: int) -> None:
        return None

    def answered(self, answer: Result | Failure) -> None:
        return None


def main(argv: Sequence[str]) -> int:
    """Edit once. Raises UsageError, EngineError; also where the model has nothing to change."""
    arguments = _parser().parse_args(argv)
    if arguments.fill == (arguments.instruction is not None):
        raise UsageError("an edit needs an instruction, or --fill", 'for example: midfill edit app.py:3-5 "sort them"')
    place, end = _lines(arguments.lines, arguments.language)
    document = Document(uri=Path(place.path).as_uri(), language=place.language).with_text(place.text, 1)
    refusal = Files(folders=lambda: (Path.cwd().as_uri(),)).refusal(document)
    ask = Ask(
        id=f"edit-{os.getpid()}",
        document=document,
        offset=place.offset,
        path=place.path,
        around=Around(refusal=refusal),
    )
    wish = Wish(ask=ask, end=end, instruction=arguments.instruction, seed=arguments.seed)
    said = asyncio.run(_rewritten(wish, arguments))
    if isinstance(said, Refusal):
        raise EngineError(said.message, "", "model")
    text = place.text[: said.start] + said.text + place.text[said.end :]
    if not arguments.dry_run:
        _write(Path(place.path), place.text, text)
    if arguments.json:
        changes = [dataclasses.asdict(hunk) for hunk in said.changes]
        print(
            json.dumps(
                {"text": said.text, "changes": changes, "model": said.result.model, "written": not arguments.dry_run}
            )
        )
        return 0
    out, _ = render.consoles()
    for line in _difference(place, text):
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        out.print(render.visible(line), style=style)
    return 0


async def _rewritten(wish: Wish, arguments: argparse.Namespace) -> Rewrite | Refusal:
    _, err = render.consoles()
    with err.status("starting the engine") as shown:
        async with session.opened_engine(
            arguments.engine, arguments.profile, lambda status: shown.update(render.loading_line(status))
        ) as engine:
            shown.update("writing")
            editor = Editor(
                engine=lambda: engine,
                listener=_Quiet(),
                current=lambda uri: wish.ask.document,
                anchors=Anchors(),
                journal=Journal(),
                profile=lambda: arguments.profile,
            )
            return await editor.rewrite(wish)


def _lines(argument: str, language: str) -> tuple[Place, int]:
    """Where the lines of "FILE:FIRST-LAST" or "FILE:LINE" begin, and where they end, the last line's end included."""
    found = re.fullmatch(r"(.+):(\d{1,9})(?:-(\d{1,9}))?", argument, re.ASCII | re.DOTALL)
    if not found or found[1] == "-":
        raise UsageError(f"not FILE:FIRST-LAST: {argument}", "for example app.py:12-20, counted from 1")
    first, last = int(found[2]), int(found[3] or found[2])
    if last < first:
        raise UsageError(f"lines {first}-{last} are in the wrong order", f"{last}-{first}?")
    place = place_at(f"{found[1]}:{first}:1", language)
    offset_of(place.text, last, 1, found[1])
    return place, sum(map(len, split_lines(place.text)[:last]))


def _write(path: Path, before: str, after: str) -> None:
    """Raises UsageError if the file is another one by now, or cannot be written."""
    try:
        data = path.read_bytes()
        mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        if data != mark + before.encode():
            raise UsageError(f"{path.name} has changed meanwhile, so nothing was changed", "try again")
        path.write_bytes(mark + after.encode())
    except OSError as error:
        raise UsageError(f"cannot write {path.name}: {error.strerror}") from None


def _difference(place: Place, after: str) -> list[str]:
    before, changed = (render.visible(text).split("\n") for text in (place.text, after))
    name = Path(place.path).name
    return list(difflib.unified_diff(before, changed, name, name, lineterm=""))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill edit",
        description="Have lines of a file written anew, as an instruction says, and show what has changed.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("lines", metavar="FILE:FIRST-LAST", help="which lines, counted from 1; FILE:LINE for one")
    parser.add_argument("instruction", nargs="?", metavar="INSTRUCTION", help="what to change")
    parser.add_argument("--fill", action="store_true", help="without an instruction: from what stands around the lines")
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--seed", type=whole_number(0, 2**63 - 1), default=0, help="another seed, another answer")
    parser.add_argument("--language", default="", help="LSP language id, if the file's name does not say it")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    session.add_engine_arguments(parser)
    return parser
