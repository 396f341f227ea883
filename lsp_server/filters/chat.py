"""Takes the code out of a chat answer: out of its fence, or not at all where there is only prose."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import Rejected, line_before, split_indent

_PROSE_LANGUAGES = frozenset({"plaintext", "markdown", "mdx", "restructuredtext", "asciidoc", "latex", "git-commit"})
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*([\w+#.-]*)[ \t]*$", re.MULTILINE)
_QUOTED = re.compile(r"(\s*)(```|`)([^`\n]+)\2\s*")
_NO_BACKTICKS = frozenset({"python", "c", "cpp", "csharp", "java", "rust", "lua", "css", "html", "json"})
_COMMENT = re.compile(r"#|//|/\*|--|<!--|^\s*\*|[\"'`]")
_OPENING = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay|absolutely|great)[!,.:]"
    r"|here(?:'s| is| are)\b.*(?::|\bcode\b|\bcompletion\b)"
    r"|the (?:completed?|missing|following|corrected|final)\b.*:?$"
    r"|(?:i'm|i am|i've|i have|i'd|i would|i'll|i will|i can(?:'t|not)?|i think|i believe) \w+"
    r"|as an ai\b|to complete (?:the|this)\b|below is\b|this (?:code|function|completion) \w+s\b)",
    re.IGNORECASE | re.MULTILINE,
)


def chat(text: str, request: FillRequest) -> str | Rejected:
    if request.language in _PROSE_LANGUAGES:
        return text
    if "```" not in request.prefix + request.suffix and (fence := _FENCE.search(text)):
        return _inside(text, fence)
    if (quoted := _QUOTED.fullmatch(text)) and (quoted[2] == "```" or request.language in _NO_BACKTICKS):
        return quoted[1] + quoted[3]
    if not _in_running_text(request) and _OPENING.match(text):
        return Rejected(reason="it is prose, not code")
    return text


def _inside(text: str, fence: re.Match[str]) -> str:
    """What the first fence encloses; what stands before it if it only closes."""
    before, behind = text[: fence.start()], text[fence.end() :]
    if not fence[1] and before.strip() and len(_FENCE.findall(text)) % 2:
        return before.rstrip()
    closing = _FENCE.search(behind)
    code = (behind[: closing.start()] if closing else behind).strip("\n")
    indent, _ = split_indent(text)
    return code if code.startswith((" ", "\t")) else indent + code


def _in_running_text(request: FillRequest) -> bool:
    """Whether the cursor may stand in a comment or a string, where a sentence is what is wanted."""
    line = line_before(request)
    return bool(_COMMENT.search(line)) or request.prefix.count('"""') % 2 == 1
