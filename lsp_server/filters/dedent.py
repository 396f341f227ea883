"""Moves a text to the outer level that it belongs to: `else:`, or a closing bracket, where the cursor is in a body."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.lines import indent_of, style
from lsp_server.filters.surroundings import at_line_start, lines_of, opens_block, previous_line, split_indent

# Clause -> what it can belong to.
_PYTHON = {
    "else": r"(?:async\s+)?(?:if|elif|for|while|try|except)\b",
    "elif": r"(?:if|elif)\b",
    "except": r"(?:try|except)\b",
    "finally": r"(?:try|except|else)\b",
}
_KEYWORDS = {
    "ruby": r"(?:else|elsif|when|in|rescue|ensure|end)\b",
    "lua": r"(?:else|elseif|end|until)\b",
    "elixir": r"(?:else|rescue|catch|after|end)\b",
    "julia": r"(?:else|elseif|catch|finally|end)\b",
    "shellscript": r"(?:else|elif|fi|done|esac)\b",
}
_CLAUSE = re.compile(r"(else|elif|except|finally)\b[^\n]*:")


def dedent(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    owner = _owner(body, request.language)
    if owner is None or not at_line_start(request):
        return text
    width = indent_of(first)
    target = _level_of_owner(request, width, owner)
    if target is None or target >= width:
        return text
    unit, _ = style(request.prefix + request.suffix, "    ")
    removed = len(indent) - len(_cut(indent, target))
    body_lines = [line for line in later if line.strip()]
    if body_lines and indent_of(body_lines[0]) >= width + indent_of(unit):
        later = [line[min(removed, len(split_indent(line)[0])) :] for line in later]
    return "\n".join([_cut(indent, target) + body, *later])


def _owner(body: str, language: str) -> re.Pattern[str] | None:
    """What the first line of the text belongs to, or None if it may stand in the body as well as any other."""
    if language == "python":
        clause = _CLAUSE.match(body)
        return re.compile(_PYTHON[clause[1]]) if clause else None
    if body.startswith((")", "]", "}")) or re.match(_KEYWORDS.get(language, r"(?!)"), body):
        return re.compile("")
    return None


def _level_of_owner(request: FillRequest, width: int, owner: re.Pattern[str]) -> int | None:
    """The indentation of the line that the text belongs to, if the cursor stands in the body below that line."""
    above = previous_line(request)
    if indent_of(above) < width:
        return indent_of(above) if opens_block(above) and owner.match(above.strip()) else None
    if indent_of(above) > width:
        return None  # The cursor has been moved outwards already.
    for line in reversed(lines_of(request.prefix)):
        if line.strip() and indent_of(line) < width:
            return indent_of(line) if owner.match(line.strip()) else None
    return None


def _cut(indent: str, width: int) -> str:
    while indent and indent_of(indent + ".") > width:
        indent = indent[:-1]
    return indent
