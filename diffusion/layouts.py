"""How prefix, suffix and context become encoder ids and a canvas. Native layout, for the embedded model:

    encoder (causal, cached)                                          canvas (bidirectional, denoised)
    [bos][language]([context] ids)[file|window][prefix window]        [slot: W free positions] ... [suffix head, pinned]
                                                                      at cut, cut+1 ...        at cut+gap, whatever W is

Where only blanks stand before the cursor on its line, they and the newline before them are not encoded: the model
writes the newline and the indentation itself, so that it can propose another one. Elsewhere the token that the cursor
may stand inside of is not encoded, and the middle has to begin with it (healing.py). Knows ids; knows no torch.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from diffusion.api import FillRequest
from diffusion.healing import heal
from diffusion.profiles import ModelProfile
from diffusion.vocabulary import Vocabulary, normalise

SUFFIX_CHARS = 800
"""More text than the suffix head needs: 32 ids of about 3 characters, or a few very long ones."""


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """A request in ids. `held_back`: text before the cursor that the middle writes anew: blanks and the newline before
    them, or, as `forced`, a token that may be unfinished, whose text it has to begin with; `typed` are the ids of that
    by itself. `before` and `after`: all of the prefix without that, and of the suffix, that the request brings."""

    encoder: tuple[int, ...]
    pins: tuple[int, ...]
    held_back: str
    forced: str = ""
    typed: tuple[int, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()

    @property
    def cut(self) -> int:
        """Where the slot begins."""
        return len(self.encoder)

    @property
    def starts_line(self) -> bool:
        """Must the middle begin with a newline?"""
        return self.held_back.startswith("\n")


def native(
    request: FillRequest,
    vocabulary: Vocabulary,
    profile: ModelProfile,
    can_spell: Callable[[str], bool] = lambda _: True,
) -> Prompt:
    """Lay out `request`. Work is bounded by the text that the language server sends. `can_spell`: are there ids that
    begin with this text? Else the prefix is not healed."""
    prefix, suffix = normalise(request.prefix), normalise(request.suffix)
    blanks = _blanks(prefix)
    forced = "" if blanks else _unfinished(prefix)
    forced = forced if can_spell(forced) else ""
    lines = _lines(prefix[: len(prefix) - len(blanks or forced)])
    layout = profile.layout
    # The window's share is fixed, or it would move whenever the context changes its length. The line being typed takes
    # no part in it, since its ids come and go.
    sizes = [len(vocabulary.encode_line(line)) for line in lines[:-1]]
    first = window_start(sizes, layout.encoder - layout.context - 4)
    window = "".join(lines[first:]).removeprefix("\n") if first else "".join(lines)
    visible = set(window.split("\n"))
    texts = [text for item in request.context if (text := normalise(item.text)).rstrip() not in visible]
    context = vocabulary.encode(context_text(request.path, texts)) if request.path or texts else []
    head = encoder_head(profile, request.language, context, at_file_start=first == 0)
    ids = _ids(_lines(window), vocabulary)
    return Prompt(
        encoder=(*head, *_last(ids, layout.encoder - len(head))),
        pins=suffix_head(suffix, vocabulary, profile),
        held_back=blanks or forced,
        forced=forced,
        typed=tuple(vocabulary.encode_line(forced)),
        before=tuple(_ids(lines, vocabulary)),
        after=tuple(_ids(_lines(suffix), vocabulary)),
    )


def encoder_head(profile: ModelProfile, language: str, context: list[int], at_file_start: bool) -> list[int]:
    """The ids before the prefix window. `context`: ids of context_text(), cut to the layout's limit."""
    tokens = profile.tokens
    language_id = profile.languages.get(language, profile.languages["plaintext"])
    marked = [tokens["context"], *context[: profile.layout.context]] if context else []
    return [tokens["bos"], language_id, *marked, tokens["file" if at_file_start else "window"]]


def context_text(path: str, texts: Iterable[str]) -> str:
    """The context as the model reads it: the path's last two parts on the first line, then one text after the other."""
    return "\n".join(["/".join(path.replace("\\", "/").split("/")[-2:]), *(text.strip("\n") for text in texts)])


def suffix_head(suffix: str, vocabulary: Vocabulary, profile: ModelProfile) -> tuple[int, ...]:
    """The pinned ids: the first of `suffix` (line ends LF), and the end-of-file id where the file ends among them."""
    ids = vocabulary.encode(suffix[:SUFFIX_CHARS])
    if len(suffix) <= SUFFIX_CHARS:
        ids.append(profile.tokens["eof"])
    return tuple(ids[: profile.layout.pins])


def window_start(sizes: list[int], budget: int) -> int:
    """Index of the line with which the prefix window starts; `sizes` are ids per line, at most `budget` in all.

    Lines fill blocks of a third of the window, and the window is the last three of them. So its start stays where it is
    while the last block grows: typing appends to the cached prefix, whatever the file's length.
    """
    starts, filled = [0], 0
    for index, size in enumerate(sizes):
        if filled and filled + size > budget // 3:
            starts.append(index)
            filled = 0
        filled += size
    return starts[max(0, len(starts) - 3)]


def held_back(prefix: str) -> str:
    """What of `prefix` (line ends LF) the middle writes anew, if it can be spelled."""
    return _blanks(prefix) or _unfinished(prefix)


def _blanks(prefix: str) -> str:
    blanks = re.search(r"(?:\A|\n)[ \t]*\Z", prefix)
    return blanks.group() if blanks else ""


def _unfinished(prefix: str) -> str:
    """The token at the end of `prefix` that may go on, but an indentation, which belongs to the newline before it."""
    healed = heal(prefix)
    return healed.taken.removeprefix(" ") if healed.kept.endswith("\n") else healed.taken


def _lines(text: str) -> list[str]:
    """Lines with the newline at their start, as the tokenizer has them: no token spans these borders."""
    return re.findall(r"\A[^\n]+|\n[^\n]*", text)


def _ids(lines: Iterable[str], vocabulary: Vocabulary) -> list[int]:
    return [token for line in lines for token in vocabulary.encode_line(line)]


def _last(ids: list[int], count: int) -> list[int]:
    """The end of `ids`, at most `count`; in a line longer than the window its start moves by half a window too."""
    if len(ids) <= count:
        return ids
    step = max(1, count // 2)
    return ids[-(-(len(ids) - count) // step) * step :]
