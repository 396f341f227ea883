"""Instructions for chat models, and the text in their answers: fill the middle, write a selection anew.

The wanted text stands between two marks, so that its blanks survive and talk around it does no harm. What else is
wrong with an answer, the filters of the language server see. Pure text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from diffusion.api import ContextItem, EditRequest, FillRequest

Messages = list[dict[str, str]]

BEGIN, END = "<middle>", "</middle>"

_FILL = f"""You complete code in an editor. You are given the text before the cursor and the text after it.
Write the text that belongs between them, {{size}}, and nothing that stands there already.
Keep the style and the indentation of the file. Where nothing is missing, write nothing.
Answer with {BEGIN}, then exactly the text to insert, blanks and line breaks included, then {END}. Explain nothing."""

_EDIT = f"""You edit code in an editor. You are given a selection, the text around it, and an instruction.
Write the selection anew as the instruction says; change nothing else. Keep the style and the indentation of the file.
Answer with {BEGIN}, then exactly the text that replaces the selection, blanks and line breaks included, then {END}.
Explain nothing."""


def fill_messages(request: FillRequest) -> Messages:
    """What a chat model is told for a fill."""
    size = "on one line, without a line break" if request.mode == "line" else f"{request.max_lines} lines at most"
    around = (_tagged("before_cursor", request.prefix), _tagged("after_cursor", request.suffix))
    return _messages(_FILL.format(size=size), request.path, request.language, request.context, around)


def edit_messages(request: EditRequest) -> Messages:
    """What a chat model is told for an edit."""
    parts = {
        "before_selection": request.before,
        "selection": request.selected,
        "after_selection": request.after,
        "instruction": request.instruction,
    }
    around = [_tagged(name, text) for name, text in parts.items()]
    return _messages(_EDIT, request.path, request.language, request.context, around)


def said_middle(answer: str, *, complete: bool) -> str:
    """The text between the marks as far as it has come; `complete`: no more will come, so an answer without marks is
    taken for the text itself, without its thoughts, and without a fence around all of it."""
    answer = re.sub(r"\A\s*<think>.*?(</think>\s*|\Z)", "", answer, flags=re.DOTALL)
    _, begun, text = answer.partition(BEGIN)
    if begun:
        middle, ended, _ = text.partition(END)
        return middle if ended or complete else _without_partial_end(text)
    if not complete:
        return ""
    fenced = re.fullmatch(r"\s*```[^\n`]*\n(.*?)\n?```\s*", answer, flags=re.DOTALL)
    return fenced[1] if fenced else answer


def without_frame(text: str, request: FillRequest | EditRequest) -> str:
    """Without the line breaks that some models put behind the opening mark and before the closing one."""
    if isinstance(request, EditRequest):
        text = text if request.selected.startswith("\n") else text.removeprefix("\n")
        return text if request.selected.endswith("\n") else text.removesuffix("\n")
    blank = not request.prefix.rpartition("\n")[2].strip()
    return text.removeprefix("\n") if blank or request.mode == "line" else text


def middle_ended(answer: str) -> bool:
    """Has the model said all that was asked for?"""
    return END in answer.partition(BEGIN)[2]


def _without_partial_end(text: str) -> str:
    """Without the first characters of the closing mark at the end, which have come before the others."""
    sizes = range(len(END) - 1, 0, -1)
    return next((text[:-size] for size in sizes if text.endswith(END[:size])), text)


def _messages(rule: str, path: str, language: str, context: Sequence[ContextItem], parts: Sequence[str]) -> Messages:
    head = f"File: {path or 'unnamed'} ({language})"
    texts = [head, *(_tagged("context", item.text, item.path) for item in context), *parts]
    return [{"role": "system", "content": rule}, {"role": "user", "content": "\n\n".join(texts)}]


def _tagged(name: str, text: str, path: str = "") -> str:
    return f"<{name}{f' file={path!r}' if path else ''}>{text}</{name}>"
