"""How a file is typed again: which stretch of it, key by key at a human cadence, and what of an item is accepted.

Knows texts and items as they come over the wire (columns in code points); no server and no model.
"""

from __future__ import annotations

import hashlib
import math
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

from lsp_server.commands.eval_cuts import Text

KEY_MS, KEY_DEVIATION_MS = 238.66, 111.6
"""Mean and standard deviation of the time between two keys, over 136 million keystrokes: Dhakal, Feit, Kristensson,
Oulasvirta, "Observations on Typing from 136 Million Keystrokes" (2018)."""
SHORTEST_MS, LONGEST_MS = 50.0, 2_000.0

_SIGMA = math.sqrt(math.log(1 + (KEY_DEVIATION_MS / KEY_MS) ** 2))
_MU = math.log(KEY_MS) - _SIGMA**2 / 2
_INDENT = re.compile(r"[ \t]*")
_WORD = re.compile(r"\s*(?:\w+|[^\w\s]+)|\s+\Z")

Taken = Literal["whole", "line", "word"]


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """`target` is typed between `before` and `after`. `name` and `language` are those of the file."""

    name: str
    language: str
    before: str
    target: str
    after: str

    def text(self, done: int) -> str:
        """The document when `done` characters of the target are there."""
        return self.before + self.target[:done] + self.after

    def position(self, done: int) -> dict[str, int]:
        """The cursor then, as LSP has it."""
        return position_at(self.before + self.target[:done])


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """What of an item is accepted: as a whole or in parts, so many keys for it, and the `text` that replaces
    `span` = (first, end) of the document; `done` characters of the target are there afterwards."""

    taken: Taken
    keys: int
    text: str
    span: tuple[int, int]
    done: int


def position_at(before: str) -> dict[str, int]:
    """The LSP position behind a text."""
    return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}


def stretch(file: Text, chars: int, seed: int) -> Stretch:
    """Whole lines of `file`, at least `chars` characters where there are so many, at a place that `seed` and the
    file's name choose; 0: the whole file, from its first character on."""
    lines = file.text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    first, end = 0, len(lines)
    if chars:
        digest = hashlib.sha256(f"{seed}/{file.path}".encode()).digest()
        filled = [number for number, line in enumerate(lines) if line.strip()]
        roomy = [number for number in filled if len(file.text) - starts[number] >= chars] or filled[:1] or [0]
        first = roomy[int.from_bytes(digest[:8]) % len(roomy)]
        end = next((number for number in range(first + 1, end) if starts[number] - 1 - starts[first] >= chars), end)
    low, high = starts[first], starts[end] - 1
    text = file.text
    return Stretch(name=file.path, language=file.language, before=text[:low], target=text[low:high], after=text[high:])


def keys(target: str, done: int) -> int:
    """How many characters the next key brings: one, or a newline with the indentation that an editor adds by itself,
    which is that of the line before as far as the next line has it too."""
    if target[done] != "\n":
        return 1
    line = target[target.rfind("\n", 0, done) + 1 : done]
    given, wanted = _INDENT.match(line), _INDENT.match(target, done + 1)
    assert given and wanted
    if target.startswith("\n", wanted.end()) or wanted.end() == len(target):
        return 1  # on an empty line it takes it away again
    same = 0
    for one, other in zip(given[0], wanted[0], strict=False):
        if one != other:
            break
        same += 1
    return 1 + same


def keys_of(target: str) -> list[int]:
    """How much of the target is there after each key, when all of it is typed by hand."""
    done = [0]
    while done[-1] < len(target):
        done.append(done[-1] + keys(target, done[-1]))
    return done


def pauses(seed: int, speed: float) -> Iterator[float]:
    """Seconds between two keys, for ever: log-normal, `speed` times as fast as people type."""
    chance = random.Random(seed)
    while True:
        yield min(max(chance.lognormvariate(_MU, _SIGMA), SHORTEST_MS), LONGEST_MS) / 1000 / speed


def acceptance(place: Stretch, done: int, item: dict[str, Any]) -> Acceptance | None:
    """What somebody who wants to write the target accepts of `item`: all of it if the text is then as it has to
    become, else its first lines or words as far as that is so and saves a key. None: nothing."""
    text, cursor = item["insertText"], place.position(done)
    line_start = len(place.before) + done - cursor["character"]
    start, end = (line_start + item["range"][edge]["character"] for edge in ("start", "end"))
    whole = _reached(place, done, text, start, end)
    if whole > done:
        return Acceptance(taken="whole", keys=1, text=text, span=(start, end), done=whole)
    best: Acceptance | None = None
    end = len(place.before) + done
    parts: tuple[tuple[Taken, list[str]], ...] = (("line", text.split("\n")), ("word", _WORD.findall(text)))
    for taken, pieces in parts:
        for count in range(1, len(pieces) + 1):
            part = ("\n" if taken == "line" else "").join(pieces[:count])
            reached = _reached(place, done, part, start, end)
            if reached - done > max(count, best.done - done if best else 0):
                best = Acceptance(taken=taken, keys=count, text=part, span=(start, end), done=reached)
    return best


def _reached(place: Stretch, done: int, text: str, start: int, end: int) -> int:
    """How much of the target is there once `text` has replaced [start, end), a stretch of the document that holds the
    cursor; -1 if the document is then not as it has to become."""
    begun = start - len(place.before)
    replaced = place.after[: end - len(place.before) - done]  # of what stands behind the cursor
    if begun < 0 or not text.endswith(replaced):
        return -1
    reached = begun + len(text) - len(replaced)
    return reached if place.target[begun:reached] == text[: len(text) - len(replaced)] else -1
