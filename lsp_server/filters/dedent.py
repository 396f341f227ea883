"""Moves a text to the outer level that it belongs to: `else:`, `end`, `</p>` or a closing bracket, where the cursor is
in the body; in Python also what follows a `return`, behind which nothing of its block comes."""

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

# Language -> clause -> what the line looks like that it belongs to. A clause of Python ends with a colon.
_PYTHON = {
    "else": r"(?:async\s+)?(?:if|elif|for|while|try|except)\b",
    "elif": r"(?:if|elif)\b",
    "except": r"(?:try|except)\b",
    "finally": r"(?:try|except|else)\b",
    "case": r"case\b",
}
_RUBY_IF = r"(?:if|elsif|unless|case|when|in|begin|rescue)\b|.*=\s*(?:if|unless|case)\b"
_LUA_IF = r"(?:if|elseif)\b"
_SHELL_IF = r"(?:if|elif)\b"
_CLAUSES = {
    "ruby": {
        "else": _RUBY_IF,
        "elsif": _RUBY_IF,
        "when": r"(?:.*\bcase|when)\b",
        "in": r"(?:.*\bcase|in)\b",
        "rescue": r"(?:begin|def|rescue)\b|.*\bdo\b",
        "ensure": r"(?:begin|def|rescue|else)\b|.*\bdo\b",
        "end": "",
    },
    "lua": {"else": _LUA_IF, "elseif": _LUA_IF, "until": r"repeat\b", "end": ""},
    "elixir": dict.fromkeys(("else", "rescue", "catch", "after", "end"), ""),
    "julia": dict.fromkeys(("else", "elseif", "catch", "finally", "end"), ""),
    "shellscript": {
        "else": _SHELL_IF,
        "elif": _SHELL_IF,
        "fi": r"(?:if|elif|else)\b",
        "done": r"(?:for|while|until|select)\b|.*\bdo\s*\Z",
        "esac": r"case\b",
    },
    "php": {
        "else": r"\}?\s*(?:if|elseif)\b.*:\s*\Z",
        "elseif": r"\}?\s*(?:if|elseif)\b.*:\s*\Z",
        "endif": r"(?:if|elseif|else)\b",
        "endforeach": r"foreach\b",
        "endfor": r"for\b",
        "endwhile": r"while\b",
        "endswitch": r"switch\b",
    },
    "sql": {"end": r"(?i:begin|if|case|loop|while|else|.*\b(?:begin|then|loop|as))\b"},
}
_WORD = re.compile(r"\w+")
_CLAUSE = re.compile(r"(else|elif|except|finally|case)\b[^\n]*:")
_LABEL = re.compile(r"(?:case|default)\b[^\n]*:")
_ACCESS = re.compile(r"(?:public|private|protected)(?:\s+slots)?\s*:(?!:)")
_TAG_END = re.compile(r"</([\w.:-]*)\s*>?")
# Nothing of a function comes after these: a definition that follows is the function's neighbour.
_DEFINITION = re.compile(r"(?:async\s+def|def|class)\b|@")
_LAST = re.compile(r"\s*(?:return|raise|pass|\.\.\.)(?!\w)")
_LEAVES = re.compile(r"\s*(?:return|raise|break|continue)\b(?!.*[,({\[\\]\s*\Z)")
_BRANCH = re.compile(r"(?:if|elif|else|for|while|with|try|except|finally|case|async\s+(?:for|with))\b")


def dedent(text: str, request: FillRequest) -> str:
    first, *later = text.split("\n")
    indent, body = split_indent(first)
    owner = _owner(body, request) if at_line_start(request) else None
    if owner is None:
        return text
    width = indent_of(first)
    target = _level_of_owner(request, width, owner)
    if target is None or target >= width:
        return text
    level = indent_of(indent_unit_of(request)[0])
    below = next((indent_of(line) for line in later if line.strip()), 0)
    if below >= width + level or (below >= width and not opens_block(first, request.language)):
        later = shifted(later, width - target)
    return "\n".join([narrowed(indent, target) + body, *later])


def _owner(body: str, request: FillRequest) -> re.Pattern[str] | None:
    """What the first line of the text belongs to, or None if it may stand in the body as well as any other."""
    if body.startswith((")", "]", "}")):
        return re.compile("")
    if request.language == "python":
        return _python_owner(body, request)
    if _LABEL.match(body):
        return _LABEL
    if request.language == "cpp" and _ACCESS.match(body):
        return re.compile(r".*\b(?:class|struct|union)\b|" + _ACCESS.pattern)
    if tag := _TAG_END.match(body):
        return re.compile(rf".*<{re.escape(tag[1])}(?![\w.:-])")
    language = request.language
    word = _WORD.match(body)
    owner = _CLAUSES.get(language, {}).get(word[0].lower() if language == "sql" else word[0]) if word else None
    return None if owner is None else re.compile(owner)


def _python_owner(body: str, request: FillRequest) -> re.Pattern[str] | None:
    if clause := _CLAUSE.match(body):
        return re.compile(_PYTHON[clause[1]])
    above = previous_line(request)
    if _DEFINITION.match(body):
        return re.compile(r"(?:async\s+def|def)\b") if _LAST.match(above) else None
    return _BRANCH if _LEAVES.match(above) else None


def _level_of_owner(request: FillRequest, width: int, owner: re.Pattern[str]) -> int | None:
    """The indentation of the line that the text belongs to, if the cursor stands in the body below that line."""
    above = previous_line(request)
    if indent_of(above) < width and opens_block(above, request.language):
        return indent_of(above) if owner.match(above.strip()) else None
    if indent_of(above) > width:
        return None  # The cursor has been moved outwards already.
    width = indent_of(above)
    for line in reversed(lines_of(request.prefix)):
        if line.strip() and indent_of(line) < width:
            width = indent_of(line)
            if owner.match(line.strip()):
                return width
            if line.rstrip().endswith("{") or owner is _BRANCH:  # Only its brace ends this body; only of a branch.
                return None
    return None
