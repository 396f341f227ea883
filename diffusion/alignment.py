"""Where does the suffix begin in a draft that the model let run on past the middle? The draft's text before that place
is the middle. First as it is written, then by its first line that says something, then by likeness.

Text only, standard library only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

ENOUGH = 8
"""Characters other than blanks that a match needs: fewer, such as a bracket, may belong to the middle."""

MOST = 24
"""Characters other than blanks after which a longer match says no more."""

ALIKE, COMPARED = 0.8, 40
"""How alike (0 to 1, difflib's ratio) how many characters must be where nothing matches exactly."""


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """`middle`: the draft's text before the suffix. `exact`: the suffix follows it as it is written."""

    middle: str
    exact: bool


def align(draft: str, suffix: str, *, one_line: bool, first: int = 0, over: bool = False) -> Alignment | None:
    """The middle that `draft` begins with, None if `suffix` is not found behind it. Line ends are LF in both.

    `one_line`: the middle has no newline from character `first` on, before which it cannot end. `over`: the model ended
    its text where the draft ends.
    """
    if one_line:
        line_end = draft.find("\n", first)
        if line_end < 0 and over:
            line_end = len(draft)
        if (found := _in_line(draft, suffix, first, line_end)) is not None:
            return Alignment(middle=draft[:found], exact=True)
        last = line_end if line_end >= 0 else len(draft)
    else:
        last = len(draft)
    if not suffix.strip():
        return Alignment(middle=draft.rstrip("\n"), exact=True) if over else None
    if (found := _exact(draft, suffix, first, last, over)) is not None:
        return Alignment(middle=draft[:found], exact=True)
    if not one_line and (found := _by_line(draft, suffix, first)) is not None:
        return Alignment(middle=draft[:found], exact=False)
    if (found := _alike(draft, suffix, first, last)) is not None:
        return Alignment(middle=draft[:found], exact=False)
    return None


def _in_line(draft: str, suffix: str, first: int, line_end: int) -> int | None:
    """Where what is left of the cursor's line begins, if the draft's line ends with it."""
    rest = suffix.partition("\n")[0]
    if line_end < 0:
        return None
    line = draft[first:line_end].rstrip()
    if line.endswith(rest.rstrip()):
        return first + len(line) - len(rest.rstrip())
    return None


def _exact(draft: str, suffix: str, first: int, last: int, over: bool) -> int | None:
    """Where the longest head of the suffix stands: long enough, or as far as the suffix or the draft goes."""
    best: tuple[int, int] | None = None
    for at in range(first, last + 1):
        matched = _common(draft, at, suffix)
        weight = sum(not character.isspace() for character in suffix[:matched])
        whole = at + matched >= len(draft.rstrip()) and (over or weight >= ENOUGH // 2)
        whole = whole and (not over or matched >= len(suffix.rstrip()))
        if (weight >= ENOUGH or whole) and (best is None or min(weight, MOST) > best[0]):
            best = min(weight, MOST), at
    return best[1] if best else None


def _common(draft: str, at: int, suffix: str) -> int:
    count = 0
    while count < len(suffix) and at + count < len(draft) and draft[at + count] == suffix[count]:
        count += 1
    return count


def _by_line(draft: str, suffix: str, first: int) -> int | None:
    """Before the draft's first line that is the suffix's first line that says something; and before what the suffix has
    in front of that line, as far as the draft has it too."""
    said = next((found for found in re.finditer(r"[^\n]*[^\W_][^\n]*", suffix) if len(found[0].strip()) > 3), None)
    if said is None or "\n" not in suffix[: said.start()]:
        return None
    before = suffix[: said.start()]
    for line in re.finditer(r"(?<=\n)[^\n]+", draft):
        if line.start() >= first and line[0].strip() == said[0].strip():
            middle = draft[: line.start()].rstrip(" \t\n")
            middle = middle.removesuffix(before.strip()).rstrip(" \t") if before.strip() else middle
            return max(first, len(middle))
    return None


def _alike(draft: str, suffix: str, first: int, last: int) -> int | None:
    """Where the draft is most like the suffix's head, at the borders of words."""
    head = suffix[:COMPARED]
    if len(head.strip()) < ENOUGH:
        return None
    best: tuple[float, int] | None = None
    matcher = SequenceMatcher(None, autojunk=False)
    for border in re.finditer(r"\b|(?<=\S)(?=\s)|(?<=\s)(?=\S)|(?<=[^\w\s])(?=[^\w\s])", draft):
        at = border.start()
        compared = min(len(head), len(draft) - at)
        if not first <= at <= last or compared < min(len(head), COMPARED // 2):
            continue
        matcher.set_seqs(draft[at : at + compared], head[:compared])
        if matcher.real_quick_ratio() < ALIKE or matcher.quick_ratio() < ALIKE:
            continue
        ratio = matcher.ratio()
        if ratio >= ALIKE and (best is None or ratio > best[0]):
            best = ratio, at
    return best[1] if best else None
