"""What a model wrote for a selection -> the text that takes the selection's place: no talk, the selection's own
indentation and blank edges, the line ends and tabs of the file.

Pure functions of texts. Knows neither LSP nor the engine; the filters of completions that find code in talk are used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from diffusion.api import FillRequest
from grammars.lines import LINE_END, indent_of
from lsp_server import filters
from lsp_server.filters.line_ends import line_ends
from lsp_server.filters.surroundings import indent_unit_of, line_before, opens_block, shifted, split_indent
from lsp_server.hunks import with_ends_of

_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")


@dataclass(frozen=True, kw_only=True)
class Place:
    """A selection and what stands around it, as much as is known; line ends as in the document."""

    before: str
    selected: str
    after: str
    language: str

    @cached_property
    def request(self) -> FillRequest:
        """The place as the filters see it: the selection is part of the document."""
        return FillRequest(id="", language=self.language, prefix=self.before, suffix=self.selected + self.after)

    @cached_property
    def given(self) -> str:
        """What stands before the selection on its first line."""
        return line_before(self.request)

    @cached_property
    def lines(self) -> list[str]:
        """Those of the selection; the first is whole."""
        return (self.given + _plain(self.selected)).split("\n")


def rewritten(answer: str, place: Place) -> str | filters.Rejected:
    """The text for the selection's place. An empty answer takes the selection away."""
    selected = _plain(place.selected)
    said = filters.code_of(_plain(answer), place.request, selected)
    if isinstance(said, filters.Rejected):
        return said
    if not said.strip():
        return ""
    if said == selected:
        return place.selected
    text = _between_edges(_indented(_body(said), place), selected)
    return with_ends_of(place.selected, text, line_ends("\n", place.request))


def _plain(text: str) -> str:
    return LINE_END.sub("\n", text)


def _body(text: str) -> str:
    """Without the blank lines at both ends."""
    return text[_matched(_BLANK_LINES, text) :].rstrip()


def _between_edges(body: str, selected: str) -> str:
    """The blank lines and the white space that the selection begins and ends with, around another body."""
    tail = selected[len(selected.rstrip()) :]
    if tail == selected:
        return body + selected[selected.find("\n") :] if "\n" in selected else body
    return selected[: _matched(_BLANK_LINES, selected)] + body + tail


def _matched(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


def _indented(body: str, place: Place) -> str:
    """The body as deep as the selection, where the model has left that to the editor: a body that begins and goes on in
    column 0 was written from there on, and a first line may lack the indentation that the others have."""
    lines = body.split("\n")
    below = _matched(_BLANK_LINES, _plain(place.selected)) > 0
    within = bool(place.given.strip(" \t")) and not below
    first, *later = [lines[0], *_in_unit(lines[1:], place)] if within else _in_unit(lines, place)
    if within:
        base = _shallowest(place.lines[1:])
        return "\n".join([first, *_moved(later, _white(place.given) if base is None else base)])
    lines = place.lines[1:] if place.given.strip(" \t") else place.lines
    base = _shallowest(lines)
    if base is None:
        base = max(map(_white, lines), key=indent_of)
    own = _white(_plain(place.selected))
    if own and own == _white(first) and not below:
        first = place.given + first  # Its part of the indentation, as the selection has it.
    if first.strip() and indent_of(first) < indent_of(base):
        top = next((_white(line) for line in lines if line.strip()), base)
        rest = min((indent_of(line) for line in later if line.strip()), default=indent_of(base))
        opens = opens_block(first, place.request.language)
        if rest < indent_of(base) or (opens and later and rest <= indent_of(top)):
            first, *later = _moved([first, *later], base)
        else:
            first = top + first.lstrip(" \t")
    if not below:  # What stands before the selection is there already, and stays also where less would do.
        first = first.removeprefix(place.given) if first.startswith(place.given) else first.lstrip(" \t")
    return "\n".join([first, *later])


def _moved(lines: list[str], base: str) -> list[str]:
    """The lines with the shallowest of them at `base`, if it is less deep."""
    origin = min((indent_of(line) for line in lines if line.strip()), default=indent_of(base))
    if origin >= indent_of(base):
        return lines
    return [base + line if line.strip() else line for line in shifted(lines, origin)]


def _in_unit(lines: list[str], place: Place) -> list[str]:
    """The lines indented with tabs where the file has tabs, with spaces where it has spaces, if the selection has
    only those."""
    unit, known = indent_unit_of(place.request)
    if not known or any((unit == "\t") != ("\t" in _white(line)) for line in place.lines if _white(line)):
        return lines
    if unit != "\t":
        return [_white(line).replace("\t", unit) + line.lstrip(" \t") for line in lines]
    widths = [len(_white(line)) for line in lines if line.strip() and "\t" not in _white(line)]
    step = min((width for width in widths if width > 1), default=0)
    if not step:
        return lines
    return [line if "\t" in _white(line) else "\t" * (len(_white(line)) // step) + line.lstrip(" \t") for line in lines]


def _shallowest(lines: list[str]) -> str | None:
    """The indentation of the least deep line that holds anything."""
    return min((_white(line) for line in lines if line.strip()), key=indent_of, default=None)


def _white(line: str) -> str:
    return split_indent(line)[0]
