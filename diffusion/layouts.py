"""How prefix, suffix and context become encoder ids and a canvas. Native layout, for the embedded model:

    encoder (causal, cached)                                          canvas (bidirectional, denoised)
    [bos][language]([context] ids)[file|window][prefix window]        [slot: W free positions] ... [suffix head, pinned]
                                                                      at cut, cut+1 ...        at cut+gap, whatever W is

Where only blanks stand before the cursor on its line, they and the newline before them are not encoded: the model
writes the newline and the indentation itself, so that it can propose another one. Knows ids; knows no torch.
"""

from __future__ import annotations

from collections.abc import Iterable

from diffusion.profiles import ModelProfile


def encoder_head(profile: ModelProfile, language: str, context: list[int], at_file_start: bool) -> list[int]:
    """The ids before the prefix window. `context`: ids of context_text(), cut to the layout's limit."""
    tokens = profile.tokens
    language_id = profile.languages.get(language, profile.languages["plaintext"])
    marked = [tokens["context"], *context[: profile.layout.context]] if context else []
    return [tokens["bos"], language_id, *marked, tokens["file" if at_file_start else "window"]]


def context_text(path: str, texts: Iterable[str]) -> str:
    """The context as the model reads it: the path's last two parts on the first line, then one text after the other."""
    return "\n".join(["/".join(path.replace("\\", "/").split("/")[-2:]), *(text.strip("\n") for text in texts)])
