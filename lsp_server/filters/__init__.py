"""What a raw middle goes through before it is offered: FILTERS, in their order, each one pure function in one file.

Knows the request and the text. A filter gets the text that was left by the filter before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from diffusion.api import Candidate, FillRequest
from lsp_server.insertion import Insertion


@dataclass(frozen=True, kw_only=True)
class Rejected:
    reason: str


def insertion(candidate: Candidate, request: FillRequest) -> Insertion | Rejected:
    if not candidate.text.strip():
        return Rejected(reason="only whitespace")
    return Insertion(text=candidate.text, before=candidate.replace_before, confidence=candidate.confidence)
