"""Moves a text to the outer level that it belongs to: `else:`, or a closing bracket, where the cursor is in a body."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.lines import indent_of
from lsp_server.filters.surroundings import (
    at_line_start,
    indent_unit_of,
    lines_of,
    narrowed,
    opens_block,
    previous_line,
    shifted,
    split_indent,
)

# Clause -> what it can belong to.
_PYTHON = {
    "else": r"(?:async\s+)?(?:if|elif|for|while|try|except)\b",
    "elif": r"(?:if|elif)\b",
    "except": r"(?:try|except)\b",
    "finally": r"(?:try|except|else)\b",
    "case": r"case\b",
}
_KEYWORDS = {
    "ruby": r"(?:else|elsif|when|in|rescue|ensure|end)\b",
    "lua": r"(?:else|elseif|end|until)\b",
    "elixir": r"(?:else|rescue|catch|after|end)\b",
    "julia": r"(?:else|elseif|catch|finally|end)\b",
    "shellscript": r"(?:else|elif|fi|done|esac)\b",
}
_CLAUSE = re.compile(r"(else|elif|except|finally|case)\b[^\n]*:")
_LABEL = re.compile(r"(?:case|default)\b[^\n]*:")
# Nothing of a function comes after these: a definition that follows is the function's neighbour.
_DEFINITION = re.compile(r"(?:async\s+def|def|class)\b|@")
_LAST = re.compile(r"\s*(?:return|raise|pass|\.\.\.)(?!\w)")


def dedent(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    owner = _owner(body, request)
    if owner is None or not at_line_start(request):
        return text
    width = indent_of(first)
    target = _level_of_owner(request, width, owner)
    if target is None or target >= width:
        return text
    level = indent_of(indent_unit_of(request)[0])
    below = next((indent_of(line) for line in later if line.strip()), 0)
    if below >= width + level:
        later = shifted(later, width - target)
    return "\n".join([narrowed(indent, target) + body, *later])


def _owner(body: str, request: FillRequest) -> re.Pattern[str] | None:
    """What the first line of the text belongs to, or None if it may stand in the body as well as any other."""
    if request.language == "python":
        if clause := _CLAUSE.match(body):
            return re.compile(_PYTHON[clause[1]])
        last = _DEFINITION.match(body) and _LAST.match(previous_line(request))
        return re.compile(r"(?:async\s+def|def)\b") if last else None
    if _LABEL.match(body):
        return _LABEL
    if body.startswith((")", "]", "}")) or re.match(_KEYWORDS.get(request.language, r"(?!)"), body):
        return re.compile("")
    return None


def _level_of_owner(request: FillRequest, width: int, owner: re.Pattern[str]) -> int | None:
    """The indentation of the line that the text belongs to, if the cursor stands in the body below that line."""
    above = previous_line(request)
    if indent_of(above) < width:
        owns = opens_block(above, request.language) and owner.match(above.strip())
        return indent_of(above) if owns else None
    if indent_of(above) > width:
        return None  # The cursor has been moved outwards already.
    for line in reversed(lines_of(request.prefix)):
        if line.strip() and indent_of(line) < width:
            width = indent_of(line)
            if owner.match(line.strip()):
                return width
            if line.rstrip().endswith("{"):  # Only its brace ends this body.
                return None
    return None
