"""`midfill stats`: what was shown and accepted and how many characters that saved, by language and day.

Knows the counts in the user's state folder; they are read here and sent nowhere.
"""

from __future__ import annotations

import argparse
import datetime
import json
from collections.abc import Sequence
from dataclasses import asdict

from rich.table import Table

from lsp_server.commands import render
from lsp_server.statistics import DAYS, Count, statistics_file, summed
from lsp_server.usage import Parser, UsageError, whole_number


def main(argv: Sequence[str]) -> int:
    """Print. Raises UsageError."""
    arguments = _parser().parse_args(argv)
    out, _ = render.consoles()
    ledger = statistics_file()
    since = (datetime.date.today() - datetime.timedelta(days=arguments.days - 1)).isoformat()
    try:
        counts = {key: count for key, count in summed(ledger.lines()).items() if key[0] >= since}
    except OSError as error:
        raise UsageError(f"{ledger.path} cannot be read: {error.strerror}", "make it readable, or delete it") from error
    total = sum(counts.values(), Count())
    if arguments.json:
        days = [{"day": day, "language": language, **asdict(count)} for (day, language), count in counts.items()]
        print(json.dumps({"file": str(ledger.path), "total": asdict(total), "days": days}))
        return 0
    if not counts:
        out.print(f"nothing has been counted since {since}")
        return 0
    by_day: dict[str, Count] = {}
    by_language: dict[str, Count] = {}
    for (day, language), count in counts.items():
        by_day[day] = by_day.get(day, Count()) + count
        by_language[language] = by_language.get(language, Count()) + count
    table = Table("", "shown", "accepted", "in part", "characters saved", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for group in (by_day, by_language, {"all": total}):
        for name, count in group.items():
            share = f"{count.accepted} ({count.accepted / count.shown:.0%})" if count.shown else str(count.accepted)
            table.add_row(render.visible(name), str(count.shown), share, str(count.partial), str(count.chars))
        table.add_section()
    out.print(table)
    out.print(f"\nfrom {ledger.path}, which is sent nowhere and may be deleted")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill stats",
        description="What was shown and accepted, in all editors. Counted on this machine and sent nowhere.",
    )
    parser.add_argument("--days", type=whole_number(1, DAYS), default=30, help="of so many days (default: 30)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser
