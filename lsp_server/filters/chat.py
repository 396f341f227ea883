"""Takes the code out of a chat answer: out of its fence, without the prose around it, or not at all where there is only
prose."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from grammars.languages import PLAIN, language_for, languages
from lsp_server.filters.brackets import balance_in_place, before_cursor
from lsp_server.filters.surroundings import MARKUP, PROSE, Rejected, line_before, split_indent

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[ \t]*$", re.MULTILINE)
_FENCE_AT_END = re.compile(r"(?<=[^`\s])[ \t]*`{3,}[ \t]*\Z")
_QUOTED = re.compile(r"(\s*)(```|`)([^`\n]+)\2\s*")
_NO_BACKTICKS = frozenset({"python", "c", "cpp", "csharp", "java", "rust", "lua", "css", "html", "json"})
_DATA = frozenset({"yaml", "json", "jsonc", "toml", "dockercompose"})
_COMMENT = re.compile(r"#|//|/\*|--|<!--|^\s*\*|[\"'`]")
_OPENING = re.compile(
    r"\s*(?:(?:sure|certainly|of course|okay|absolutely|great)[!,.:]"
    r"|here(?:'s| is| are)\b.*(?::|\bcode\b|\bcompletion\b)"
    r"|the (?:completed?|missing|following|corrected|final)\b.*:?$"
    r"|(?:i'm|i am|i've|i have|i'd|i would|i'll|i will|i can(?:'t|not)?|i think|i believe) \w+"
    r"|as an ai\b|to complete (?:the|this)\b|below is\b|this (?:code|function|completion) \w+s\b"
    r"|(?:note|explanation|output|solution|answer|description)s?:(?:\s*$|\s+[a-z`]+ [a-z`]+\b))",
    re.IGNORECASE | re.MULTILINE,
)
# A sentence: it begins with a capital letter, has no sign of code in it, and says some of the commonest words.
_SENTENCE = re.compile(r"\s*(?:\d+\. |[*-] )?\**[A-Z][a-z']*(?:[ ,]+[\w'’`\"./()*-]+){3,}[,.:!?]*\**\s*")
_COMMON = re.compile(
    r"\b(?:the|this|that|these|to|you|your|is|are|be|which|we|should|can|will|would|an|me|it|of|and|here)\b"
)


def chat(text: str, request: FillRequest) -> str | Rejected:
    if request.language in PROSE:
        return text
    if (fence := _FENCE.search(text)) and not re.search(r"`{3}|~{3}", request.prefix + request.suffix):
        return _inside(text, fence)
    if _in_running_text(request) or request.language in _DATA:
        return text
    if (quoted := _QUOTED.fullmatch(text)) and (quoted[2] == "```" or request.language in _NO_BACKTICKS):
        return quoted[1] + (_without_name(quoted[3]) if quoted[2] == "```" else quoted[3])
    first, *later = text.split("\n")
    if _OPENING.match(text) or _is_sentence(first, request):
        return Rejected(reason="it is prose, not code")
    for number, line in enumerate(later, start=1):
        kept = "\n".join([first, *later[: number - 1]])
        after_blank = not later[number - 2].strip() if number > 1 else False
        if after_blank and (_OPENING.match(line) or _is_sentence(line, request)) and _ends_in_code(kept, request):
            return kept.rstrip()
    return text


def _inside(text: str, fence: re.Match[str]) -> str:
    """What the first fence encloses; what stands before it if it only closes."""
    before, behind = text[: fence.start()], text[fence.end() :]
    if not fence[2] and before.strip() and len(_FENCE.findall(text)) % 2 and not _OPENING.match(before):
        return before.rstrip()
    closing = next((found for found in _FENCE.finditer(behind) if found[1][:3] == fence[1][:3]), None)
    code = (behind[: closing.start()] if closing else _FENCE_AT_END.sub("", behind.rstrip())).strip("\n")
    indent, _ = split_indent(text)
    return code if code.startswith((" ", "\t")) else indent + code


def _without_name(code: str) -> str:
    """Code on the line of its fence, without the name of its language."""
    name, space, rest = code.partition(" ")
    known = {name for language in languages() for name in language.language_ids}
    return rest if space and name.lower() in known else code


def _is_sentence(line: str, request: FillRequest) -> bool:
    if request.language in MARKUP or language_for(request.language) is PLAIN:
        return False
    return bool(_SENTENCE.fullmatch(line)) and len(set(_COMMON.findall(line.lower()))) > 1


def _ends_in_code(text: str, request: FillRequest) -> bool:
    end = balance_in_place(text, request)
    return not end.quote and end.comment is None


def _in_running_text(request: FillRequest) -> bool:
    """Whether the cursor may stand in a comment, a string or an element, where a sentence is what is wanted."""
    prefix = request.prefix
    if (
        request.language in MARKUP
        and request.suffix.lstrip().startswith("</")
        and prefix.rfind(">") > prefix.rfind("<")
    ):
        return True
    line = line_before(request)
    before = before_cursor(request)
    inside = before.comment is not None or before.quote in ('"""', "'''", "`")
    return inside or bool(_COMMENT.search(line)) or request.prefix.count('"""') % 2 == 1
