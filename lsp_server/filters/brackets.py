"""What a text at the cursor closes of what stands before it, and what behind it closes the same again."""

from __future__ import annotations

from diffusion.api import FillRequest
from grammars.brackets import PAIRS, Balance, balance, quote_of, string_at_start
from grammars.lines import follows
from lsp_server.filters.surroundings import compact, rest_of_line


def balance_in_place(text: str, request: FillRequest) -> Balance:
    """Scan a text that stands at the cursor."""
    before = before_cursor(request)
    return balance(text, request.language, quote=before.quote, template="${" in before.opened)


def before_cursor(request: FillRequest) -> Balance:
    """What the prefix leaves open. It may begin within a long string: the first line with its quotes tells."""
    typed = request.prefix.rfind("\n") + 1
    return balance(request.prefix, request.language, quote=string_at_start(request.prefix), typed=typed)


def redundant_closers(text: str, request: FillRequest) -> tuple[tuple[int, str], ...]:
    """The closers of a text that close what the suffix closes anyway, with their offsets in the text.

    They are the last ones: so many of the others are kept that the closers of the suffix fit best to what is left open.
    """
    before = before_cursor(request)
    inside = balance_in_place(text, request)

    def misfit(kept: int) -> tuple[bool, int, int]:
        left = [*before.opened[: max(0, len(before.opened) - kept)], *inside.opened]
        suffix = balance(request.suffix, request.language, quote=quote_of(left), template="${" in left)
        behind = [closer for _, closer in suffix.closed]
        pairs = [
            opener == PAIRS.get(closer, closer) or (opener, closer) == ("${", "}")
            for opener, closer in zip(reversed(left), behind, strict=False)
        ]
        fitting = pairs.index(False) if False in pairs else len(pairs)
        # Both windows end somewhere: that one has more than the other is a weaker sign than a wrong pair.
        surplus = abs(len(before.opened) - kept + len(inside.opened) - len(behind))
        return False in pairs, -fitting if False in pairs else 0, surplus

    kept = min(range(len(inside.closed) + 1), key=misfit) if inside.closed else 0
    return inside.closed[kept:]


def closes_angle(text: str) -> bool:
    """Whether the text closes an angle bracket that it does not open, as far as this can be told from arrows."""
    return text.count(">") - text.count("=>") - text.count("->") > text.count("<")


def closers_taken_over(text: str, request: FillRequest) -> int:
    """How many characters behind the cursor the text writes itself: closers that an editor has put there. They are
    replaced, so that accepting leaves the cursor behind them."""
    rest = rest_of_line(request)
    redundant = redundant_closers(text, request)
    if follows(rest) == "closers" and compact(text).endswith(compact(rest)):
        only_separators = not rest.strip(" \t;,")
        if redundant or only_separators or (">" in rest and closes_angle(text)):
            return len(rest.rstrip())
    elif rest.strip() and not rest.strip(" \t;,") and compact(text.split("\n", 1)[0]).endswith(compact(rest)):
        return len(rest.rstrip())  # The line's end stands in the text, and more lines after it.
    if before_cursor(request).quote and _ends_code_in_string(text, rest):
        return len(rest.rstrip())
    taken = last = 0
    for at, closer in redundant:
        gap = len(rest) - taken - len(rest[taken:].lstrip())
        if not rest.startswith(closer, taken + gap):
            break
        taken += gap + len(closer)
        last = at + len(closer)
    if taken and compact(rest[taken:]) and compact(text[last:]).endswith(compact(rest[taken:])):
        return len(rest.rstrip())  # The text writes something between the closers and what follows them.
    for char in text[last:].strip() if taken else "":
        if char not in ";,>" or not rest.startswith(char, taken):
            break
        taken += 1
    return taken


def _ends_code_in_string(text: str, rest: str) -> bool:
    """Whether the text ends the code in a string, goes on with the string and ends that, too: all that is left."""
    ends = compact(rest)
    letters = iter(compact(text))
    in_order = ends[:1] == "}" and follows(rest) == "closers" and all(closer in letters for closer in ends)
    return in_order and len(ends) > 1 and next(letters, None) is None
