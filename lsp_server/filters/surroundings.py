"""What stands around the cursor of a request, line by line, and the verdict of a filter. Knows no filter."""

from __future__ import annotations

import re
from dataclasses import dataclass

from diffusion.api import FillRequest
from grammars.languages import language_for
from grammars.lines import LINE_END, indent_of, line_end, line_start, style

WORD = re.compile(r"\w")
PROSE = frozenset({"plaintext", "markdown", "mdx", "restructuredtext", "asciidoc", "latex", "git-commit"})
"""Languages for people."""
MARKUP = frozenset({"html", "xhtml", "xml", "svg", "javascriptreact", "typescriptreact", "vue", "svelte"})
"""Languages with tags."""
_INDENTED = re.compile(r"^(?:\t| {2})[ \t]*\S", re.MULTILINE)
_COMMENT = re.compile(r"\s*(?://|#|/\*|\*|--|<!--).*[^{(\[\s]\s*\Z")
_OPENS = re.compile(r"(?:[:{(\[]|=>|->|\b(?:do|then|else|begin)|\bdo\s*\|[^|]*\|)\s*\Z")
# Where blocks end with a word, they begin with one, which stands at the line's start.
_BLOCK_WORDS = {
    "ruby": re.compile(r"\s*(?:if|elsif|unless|while|until|for|def|class|module|case|when|rescue|ensure)\b"),
    "lua": re.compile(r"\s*(?:(?:local\s+)?function|repeat)\b"),
    "julia": re.compile(r"\s*(?:if|elseif|for|while|function|(?:mutable\s+)?struct|module|try|catch|let|macro)\b"),
}


@dataclass(frozen=True, kw_only=True)
class Rejected:
    """Nothing of the text can be offered; `filter` is the name of the one that found that."""

    reason: str
    filter: str = ""


def lines_of(text: str) -> list[str]:
    """Lines without their ends, of a text with any line ends."""
    return LINE_END.split(text) if "\r" in text else text.split("\n")


def line_before(request: FillRequest) -> str:
    """What stands on the cursor's line before the cursor."""
    return request.prefix[line_start(request.prefix, len(request.prefix)) :]


def rest_of_line(request: FillRequest) -> str:
    """What stands on the cursor's line behind the cursor, without the line's end."""
    return request.suffix[: line_end(request.suffix, 0)]


def following_lines(request: FillRequest) -> list[str]:
    """The lines below the cursor's that hold anything."""
    return [line for line in lines_of(request.suffix)[1:] if line.strip()]


def previous_line(request: FillRequest) -> str:
    """The last line above the cursor's that holds anything, or an empty one."""
    return next((line for line in reversed(lines_of(request.prefix)[:-1]) if line.strip()), "")


def at_line_start(request: FillRequest) -> bool:
    """Whether the text starts its line, and so holds the white space that stands before the cursor."""
    return not line_before(request).strip(" \t")


def compact(text: str) -> str:
    """The text without any white space."""
    return "".join(text.split())


def split_indent(line: str) -> tuple[str, str]:
    """A line's indentation and the rest of it."""
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)], body


def indent_unit_of(request: FillRequest) -> tuple[str, bool]:
    """The document's unit of indentation, and whether it shows one: also by the white space before the cursor."""
    # Of the cursor's line only its indentation matters: so the text stays the same while the line is typed.
    typed = split_indent(line_before(request))[1]
    around = f"{request.prefix[: len(request.prefix) - len(typed)]}x{request.suffix}"
    return style(around, language_for(request.language).indent_unit)[0], bool(_INDENTED.search(around))


def opens_block(line: str, language: str) -> bool:
    """Whether the next line has to be deeper."""
    if _OPENS.search(line):
        return not _COMMENT.match(line)
    word = _BLOCK_WORDS.get(language)
    return bool(word and word.match(line)) and not line.rstrip().endswith(("end", ";"))


def goes_on(line: str, language: str) -> bool:
    """Whether the next line may be deeper: the line opens a block, or ends in the middle of something."""
    return opens_block(line, language) or line.rstrip().endswith((",", "=", "\\", "|", "&", "+"))


def narrowed(indent: str, width: int) -> str:
    """The longest part of an indentation that is no wider than `width` columns."""
    while indent and indent_of(indent) > width:
        indent = indent[:-1]
    return indent


def shifted(lines: list[str], columns: int) -> list[str]:
    """The lines, moved to the left by so many columns, or as far as they can be."""
    moved = []
    for line in lines:
        indent, body = split_indent(line)
        moved.append(narrowed(indent, max(0, indent_of(line) - columns)) + body if body else line)
    return moved
