"""A text and an offset -> the FillRequest that the engine gets, within a budget; or the reason why there is none.

Knows text and syntax; no LSP, no settings object, no engine. `midfill complete` uses it as the server does.
"""

from __future__ import annotations

from dataclasses import dataclass

from diffusion.api import FillRequest, Mode
from lsp_server.documents import without_surrogates


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How much text before and after the cursor goes into a request, in code points; `max_lines` of an answer."""

    prefix_chars: int = 8_000
    suffix_chars: int = 4_000
    max_lines: int = 12


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Why nothing can be completed at a place."""

    reason: str


def window(text: str, offset: int, budget: Budget) -> tuple[str, str]:
    """What of the text around `offset` a request may hold, cut at line starts where there is one.

    The start of the prefix lies on a grid of half a window, so that it does not slide with every keystroke: the
    engine's cache of the prefix stays useful.
    """
    start = 0
    if offset > budget.prefix_chars:
        half = budget.prefix_chars // 2
        start = ((offset - budget.prefix_chars) // half + 1) * half
        line = text.find("\n", start, offset)
        start = line + 1 if line >= 0 else start
    end = min(len(text), offset + budget.suffix_chars)
    if end < len(text):
        line = text.rfind("\n", offset, end)
        end = line + 1 if line >= 0 else end
    return without_surrogates(text[start:offset]), without_surrogates(text[offset:end])


def build_request(
    text: str,
    offset: int,
    *,
    language: str,
    path: str = "",
    budget: Budget,
    request_id: str = "",
    client: str = "",
    n: int = 1,
    deadline_ms: float | None = None,
    seed: int = 0,
    drafts: bool = False,
) -> FillRequest | Nothing:
    """The request for the middle at `offset` (code points) of `text`. `path` is relative to the workspace."""
    if not text.strip():
        return Nothing(reason="the document is empty")
    prefix, suffix = window(text, offset, budget)
    rest = suffix.split("\n", 1)[0].strip()
    mode: Mode = "line" if rest and not all(char in ")]}>\"'`;,:" for char in rest) else "block"
    return FillRequest(
        id=request_id,
        client=client,
        language=language,
        path="/".join(path.replace("\\", "/").split("/")[-2:]),
        prefix=prefix,
        suffix=suffix,
        mode=mode,
        max_lines=1 if mode == "line" else budget.max_lines,
        n=n,
        deadline_ms=deadline_ms,
        seed=seed,
        drafts=drafts,
    )
