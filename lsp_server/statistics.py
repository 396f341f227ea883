"""How many completions were shown and accepted, and how many characters that saved, by day and language.

They stand in a file in the user's state folder and are never sent anywhere. What is kept of a completion until it is
accepted is its name, its language and its length; never its text. Lengths are in UTF-16 units, in which clients speak
of them. Knows neither LSP nor documents.
"""

from __future__ import annotations

import datetime
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import platformdirs

from diffusion.api import DISTRIBUTION
from lsp_server.ledger import Ledger, Line

KNOWN = 512
"""Completions that are remembered, the last ones."""
DAYS = 400
STATISTICS_BYTES = 256_000
MAX_LANGUAGE = 40


@dataclass(frozen=True, kw_only=True)
class Count:
    """Of one day and language. `accepted`: in full; `partial`: parts, such as a word; `chars`: saved by either."""

    shown: int = 0
    accepted: int = 0
    partial: int = 0
    chars: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(**{name: value + getattr(other, name) for name, value in asdict(self).items()})


Record = Callable[[Line], None]


@dataclass(kw_only=True)
class _Offered:
    """`length`: characters that accepting it now would save; `taken`: of these, those of parts that were accepted."""

    language: str
    length: int = 0
    before: int = 0
    taken: int = 0
    shown: bool = False
    accepted: bool = False


class Counts:
    """What happens to the completions of one editor. Names that are not known are ignored."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._offered: OrderedDict[str, _Offered] = OrderedDict()
        self._client_tells = False

    def offered(self, name: str, language: str, *, length: int, before: int) -> None:
        """An editor was given a completion of so many characters, which replaces `before` of those that are there. It
        counts as shown unless the editor tells what it shows. What is left of it later has the same name."""
        known = self._offered.pop(name, None) or _Offered(language=language[:MAX_LANGUAGE] or "plaintext")
        known.length, known.before, known.taken = max(0, length - before), before, 0
        self._offered[name] = known
        if len(self._offered) > KNOWN:
            self._offered.popitem(last=False)
        if not self._client_tells:
            self._count_shown(known)

    def shown(self, name: str) -> None:
        """The editor says that it shows a completion."""
        self._client_tells = True
        if known := self._offered.get(name):
            self._count_shown(known)

    def accepted(self, name: str) -> None:
        """The rest of a completion, or all of it, is in the text now."""
        if (known := self._offered.get(name)) and not known.accepted:
            known.accepted = True
            self._count(known, Count(accepted=1, chars=known.length - known.taken))

    def accepted_part(self, name: str, length: int) -> None:
        """The first `length` characters of a completion, as it was offered last, are in the text now."""
        if (known := self._offered.get(name)) and not known.accepted:
            taken = min(known.length, max(known.taken, length - known.before))
            self._count(known, Count(partial=1, chars=taken - known.taken))
            known.taken = taken

    def _count_shown(self, known: _Offered) -> None:
        if not known.shown:
            known.shown = True
            self._count(known, Count(shown=1))

    def _count(self, known: _Offered, count: Count) -> None:
        counted = {name: value for name, value in asdict(count).items() if value}
        self._record({"day": datetime.date.today().isoformat(), "language": known.language} | counted)


# --- on disk


def statistics_file() -> Ledger:
    """The counts of all servers of the user."""
    folder = Path(platformdirs.user_state_path(DISTRIBUTION))
    return Ledger(folder / "statistics.jsonl", limit=STATISTICS_BYTES, fold=_folded)


def summed(lines: list[Line]) -> dict[tuple[str, str], Count]:
    """The counts by day and language, in the order of days. Lines that are none are left out."""
    counts: dict[tuple[str, str], Count] = {}
    for line in lines:
        key, count = _read(line)
        if count is not None:
            counts[key] = counts.get(key, Count()) + count
    return dict(sorted(counts.items()))


def _folded(lines: list[Line]) -> list[Line]:
    counts = summed(lines)
    days = sorted({day for day, _ in counts})[-DAYS:]
    return [
        {"day": day, "language": language} | asdict(count)
        for (day, language), count in counts.items()
        if day in set(days)
    ]


def _read(line: Line) -> tuple[tuple[str, str], Count | None]:
    day, language = line.get("day"), line.get("language")
    values: dict[str, Any] = {name: line.get(name, 0) for name in asdict(Count())}
    if not isinstance(day, str) or not isinstance(language, str) or not all(type(v) is int for v in values.values()):
        return ("", ""), None
    return (day, language), Count(**values)
