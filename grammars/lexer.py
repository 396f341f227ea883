"""Finds strings and comments by their delimiters alone, for the places where the tree is broken, and paints them over.

Knows what languages.toml says about a language, and nothing of trees. Regular expression literals and the text between
JSX tags are beyond it; a quote in them costs at most the rest of a line.
"""

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from grammars.languages import Language, StringRule
from grammars.lines import LINE_END


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """A stretch that is string, comment, or code inside a string. Open: it would go on at its end, like `# ...`."""

    kind: Literal["string", "comment", "code"]
    start: int
    end: int
    open: bool = False


@functools.cache
def _code_tokens(language: Language, in_string: bool) -> re.Pattern[str]:
    """What matters in code. Group names: line, block<i>, string<i>; for code in a string also up, down, end."""
    parts = [f"(?P<string{i}>{rule.open})" for i, rule in enumerate(language.strings)]
    parts += [f"(?P<block{i}>{re.escape(opener)})" for i, (opener, _) in enumerate(language.block_comments)]
    if language.line_comment:  # After the others: in Lua, `--[[` begins with one.
        parts.append(f"(?P<line>{re.escape(language.line_comment)})")
    if in_string:
        parts += [r"(?P<up>\{)", r"(?P<down>\})", r"(?P<end>[\r\n])"]
    return re.compile("|".join(parts))


@functools.cache
def _string_tokens(rule: StringRule) -> re.Pattern[str]:
    """What matters inside a string. Group names: close, code, end."""
    parts = [] if rule.raw else [r"\\(?:\r\n|.)"]
    if rule.interpolation:
        doubled = re.escape(rule.interpolation * 2)  # in Python `{{` is a brace
        parts += [doubled, f"(?P<code>{re.escape(rule.interpolation)})"]
    parts.append(f"(?P<close>{re.escape(rule.close)})")
    if not rule.multiline:
        parts.append(r"(?P<end>[\r\n])")
    return re.compile("|".join(parts), re.DOTALL)


def lex(text: str, start: int, end: int, language: Language) -> list[Region]:
    """Strings, comments and code in strings of text[start:end], outer ones first; `start` must be in code.

    While a line is typed, what stands above it is the same: if it ends in code, it is not read again.
    """
    spans_lines = any(opener.startswith("\n") for opener, _ in language.block_comments)
    line = 0 if spans_lines else text.rfind("\n", start, end) + 1
    above = _above(text[start:line], language) if line else None
    if above is None:
        return _lex(text, start, end, language)
    moved = [replace(region, start=region.start + start, end=region.end + start) for region in above]
    return sorted([*moved, *_lex(text, line, end, language)], key=lambda region: (region.start, -region.end))


@functools.lru_cache(maxsize=4)
def _above(text: str, language: Language) -> list[Region] | None:
    """The regions of whole lines, or None if code does not go on behind them."""
    regions = _lex(text, 0, len(text), language)
    ends_in_code = all(region.end < len(text) for region in regions)
    return regions if ends_in_code else None


def _lex(text: str, start: int, end: int, language: Language) -> list[Region]:
    found: list[Region] = []
    # The strings whose interpolation we are in: number of the rule, start of the string and of the code, open braces.
    outer: list[tuple[int, int, int, int]] = []
    position = start
    code_tokens, nested_tokens = _code_tokens(language, False), _code_tokens(language, True)
    string_tokens = [_string_tokens(rule) for rule in language.strings]

    def string(rule: int, opened: int, position: int) -> int:
        """Reads on in a string from `position`; returns where code goes on."""
        for match in string_tokens[rule].finditer(text, position, end):
            if match.lastgroup == "close":
                found.append(Region(kind="string", start=opened, end=match.end()))
                return match.end()
            if match.lastgroup == "end":
                found.append(Region(kind="string", start=opened, end=match.start(), open=True))
                return match.start()
            if match.lastgroup == "code":
                outer.append((rule, opened, match.start(), 0))
                return match.end()
        found.append(Region(kind="string", start=opened, end=end, open=True))
        return end

    while match := (nested_tokens if outer else code_tokens).search(text, position, end):
        at, position, group = match.start(), match.end(), match.lastgroup or ""
        if group == "line":
            stop = LINE_END.search(text, position, end)
            position = stop.start() if stop else end
            found.append(Region(kind="comment", start=at, end=position, open=True))
        elif group.startswith("block"):
            closer = language.block_comments[int(group[5:])][1]
            stop_at = text.find(closer, position, end)
            position = end if stop_at < 0 else stop_at + len(closer)
            found.append(Region(kind="comment", start=at, end=position, open=stop_at < 0))
        elif group.startswith("string"):
            position = string(int(group[6:]), at, position)
        else:
            rule, opened, code, depth = outer[-1]
            if group == "up":
                outer[-1] = (rule, opened, code, depth + 1)
            elif group == "down" and depth:
                outer[-1] = (rule, opened, code, depth - 1)
            elif group == "down":
                outer.pop()
                found.append(Region(kind="code", start=code, end=position))
                position = string(rule, opened, position)
            elif group == "end" and not language.strings[rule].multiline:
                outer.pop()
                found.append(Region(kind="code", start=code, end=at, open=True))
                found.append(Region(kind="string", start=opened, end=at, open=True))
    for _, opened, code, _ in outer:
        found.append(Region(kind="code", start=code, end=end, open=True))
        found.append(Region(kind="string", start=opened, end=end, open=True))
    return sorted(found, key=lambda region: (region.start, -region.end))


def innermost(regions: Iterable[Region], offset: int) -> Region | None:
    """The innermost region that `offset` is inside of; `regions` outer ones first."""
    inside = None
    for region in regions:
        if region.start < offset and (offset < region.end or (offset == region.end and region.open)):
            inside = region
    return inside


def paint(text: str, start: int, end: int, regions: Iterable[Region]) -> str:
    """text[start:end] with every character of a string a `"`, and of a comment a space (line ends stay).

    So brackets, colons and key words that are left are code, and a string is one word on one line.
    """
    painted = list(text[start:end])
    for region in regions:
        low, high = max(region.start, start), min(region.end, end)
        if low >= high:
            continue
        if region.kind == "string":
            fill: Iterable[str] = '"' * (high - low)
        elif region.kind == "code":
            fill = text[low:high]
        else:
            fill = (char if char in "\r\n" else " " for char in text[low:high])
        painted[low - start : high - start] = fill
    return "".join(painted)
