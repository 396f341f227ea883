"""`midfill why`: what became of the last completions of all editor windows, from the file that their servers keep.

Knows the journal; no editor and no engine.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from lsp_server.commands import render
from lsp_server.journal import LENGTH, Decision, from_line, journal_file, last
from lsp_server.usage import Parser, UsageError, whole_number

EPILOG = """\
examples:
  midfill why                    the last completion of any window, in one sentence
  midfill why app.py             the last one in a file of that name
  midfill why app.py:12 --full   at line 12, with all that is known
  midfill why --last 20          the last twenty

The servers keep the last {length} decisions in {path}: file names, numbers
and sentences, no text of yours. Nothing is sent anywhere; the file may be deleted.
"""


def main(argv: Sequence[str]) -> int:
    """Print; 1 if there is nothing to tell. Raises UsageError."""
    arguments = _parser().parse_args(argv)
    out, _ = render.consoles()
    ledger = journal_file()
    try:
        found = [decision for line in reversed(ledger.lines()) if (decision := from_line(line))]
    except OSError as error:
        raise UsageError(f"{ledger.path} cannot be read: {error.strerror}", "make it readable, or delete it") from error
    if arguments.place:
        found = [decision for decision in found if _is_at(decision, arguments.place)]
    told = found[: arguments.last] if arguments.last else [each for each in (last(found),) if each]
    if arguments.json:
        print(json.dumps([{"sentence": each.sentence(), **vars(each)} for each in told]))
    for each in told if not arguments.json else ():
        out.print(render.visible(each.full() if arguments.full else each.sentence()))
    if not told and not arguments.json:
        out.print("nothing has been asked for there" if arguments.place else "nothing has been asked for yet")
    return int(not told)


def _is_at(decision: Decision, place: str) -> bool:
    """`place`: the end of a path, with or without a line."""
    path, _, line = place.rpartition(":") if re.search(r":\d+\Z", place) else (place, "", "")
    name = Path(path).as_posix().removeprefix("./")
    return f"/{decision.uri}".endswith((f"/{name}", f":{name}")) and line in ("", str(decision.line))


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill why",
        description="Why the last completion was shown, or why there was none.",
        epilog=EPILOG.format(length=LENGTH, path=journal_file().path),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("place", nargs="?", metavar="FILE[:LINE]", help="only there")
    parser.add_argument("--full", action="store_true", help="everything that is known of it")
    parser.add_argument("--last", type=whole_number(1, LENGTH), metavar="N", help="the last N, dropped ones too")
    parser.add_argument("--json", action="store_true", help="print a JSON list instead")
    return parser
