"""Where nothing is offered while typing, and why: the user's switches for documents, and what the cursor stands in.

Knows settings, names of files and syntax; no text, no model. An answer is the sentence for the journal, or "" where the
gate is open. What was asked for explicitly passes the gates of switches and of places, but not that of `enabled`.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from pathspec import GitIgnoreSpec

from grammars.syntax import SyntaxContext

if TYPE_CHECKING:
    from lsp_server.settings import Settings


UNMEASURED = 0.35
"""The least confidence in the answers of a model that states its confidence, but not what it is worth."""


def document(settings: Settings, language: str, path: str, *, explicit: bool = False) -> str:
    """Why nothing is offered in a document: `language` is its LSP language id, `path` relative to the workspace."""
    if not settings.enabled:
        return "completion is switched off (setting enabled)"
    if explicit:
        return ""
    language = language.lower()
    if language in settings.disabled_languages:
        return f"switched off while typing in {language} (setting disabledLanguages)"
    for glob in settings.disabled_globs:
        if path and _spec(glob).match_file(path.replace("\\", "/").lstrip("/")):
            return f"switched off while typing in files like {glob} (setting disabledGlobs)"
    return ""


def confidence(setting: float, model: float | None) -> float:
    """The confidence from which on an answer is shown: the setting minConfidence, or where that is negative what the
    model's profile says, if it says something."""
    if setting >= 0:
        return setting
    return UNMEASURED if model is None else model


def place(around: SyntaxContext, *, comments: bool = True, strings: bool = True) -> str:
    """Why nothing is offered at a place."""
    if around.kind == "none":
        return around.reason
    if around.position == "comment" and not comments:
        return "switched off while typing in comments (setting comments)"
    if around.position == "string" and not strings:
        return "switched off while typing in strings (setting strings)"
    return ""


@functools.lru_cache(maxsize=64)
def _spec(glob: str) -> GitIgnoreSpec:
    """A pattern as in .gitignore: `*.lock` at any depth, `docs/**` below the workspace. A bad one matches nothing."""
    try:
        return GitIgnoreSpec.from_lines([glob])
    except (ValueError, re.error):
        return GitIgnoreSpec.from_lines([])
