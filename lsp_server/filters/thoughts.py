"""Takes out what a model has thought aloud before its answer, and the tags that it may have put around the answer."""

from __future__ import annotations

import re

from diffusion.api import FillRequest
from lsp_server.filters.surroundings import MARKUP, Rejected, split_indent

_NAMES = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis"
_THOUGHT = re.compile(
    rf"[ \t]*<({_NAMES})>.*?</\1>[ \t]*\n*|<\|channel>\w*\n.*?<channel\|>|<\|channel>\w*\n?<channel\|>", re.DOTALL
)
_OPEN = re.compile(rf"<(?:{_NAMES})>|<\|channel>\w*\n|<\|channel\|>")
_CLOSE = re.compile(rf"\A.*</(?:{_NAMES})>[ \t]*\n*", re.DOTALL)
_FINAL = re.compile(r"\A.*<\|channel\|>final(?:[^<]*)<\|message\|>", re.DOTALL)
_ANSWER = re.compile(
    r"\s*<(answer|output|code|completion|solution|fill|middle|insert|result|response|tool_call)>\n?(.*?)\s*</\1>\s*",
    re.DOTALL,
)


def thoughts(text: str, request: FillRequest) -> str | Rejected:
    indent, _ = split_indent(text)
    around = request.prefix + request.suffix
    if "<" not in text or _OPEN.search(around):
        return text
    said = _FINAL.sub("", text)
    said = _CLOSE.sub("", _THOUGHT.sub("", said))
    opened = _OPEN.search(said)
    if opened:
        said = said[: opened.start()]
        if not said.strip():
            return Rejected(reason="it is a thought that has not come to an end")
    answer = _ANSWER.fullmatch(said) if request.language not in MARKUP else None
    if answer and f"<{answer[1]}>" not in around:
        said = answer[2]
    return said if said == text or split_indent(said)[0] else indent + said
