"""How a fill or an edit becomes encoder ids and suffix ids in the chat layout, for an instruction-tuned checkpoint:

    encoder (causal, cached)                                                                canvas (denoised)
    [bos] system turn: the rule | user turn: path, language, other files, copy of the       [ slot, free ][ suffix head,
    suffix | model's turn: a closed, empty thought block, a fence, the prefix, healed       pinned, as it goes on ]

All ids are built by hand: the chat template trims its contents, and code must not lose its indentation. What changes
least comes first, so that typing appends to the cached ids: the copy of the suffix starts at the next line, since the
rest of the cursor's own line changes while one types. An edit's user turn shows the lines before, the selection, the
lines after and the instruction, its model's turn begins with the last lines before; they and the lines after stay.

Knows ids and text; knows no torch and no denoising. Never run with the tokenizer of the 26B checkpoint: role names,
"thought" and fences are encoded as ordinary text, as its chat template has them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from diffusion.api import BadRequest, ContextItem, EditRequest, FillRequest
from diffusion.healing import Healed, heal, unhealed
from diffusion.layouts import window_start
from diffusion.profiles import Chat, ModelProfile
from diffusion.vocabulary import normalise

SUFFIX_CHARS = 4000
"""More text than the pinned ids of the widest canvas need."""

OVERHEAD = 512
"""Ids of rules, roles and headings, at most: so the prefix window's share never depends on them."""

PATH_CHARS, LANGUAGE_CHARS = 160, 32
"""Of the path and of the language's name, at most."""

LINES_BEFORE_EDIT = 12
"""Unchanged lines with which the model's turn of an edit begins."""


class Texts(Protocol):
    """A tokenizer: `encode_line` gives the ids of any piece of text with line ends LF and remembers them, since between
    two keystrokes nearly all lines are the same; `decode` leaves out ids that are no text."""

    def encode_line(self, line: str) -> Sequence[int]: ...

    def decode(self, ids: Sequence[int]) -> str: ...


@dataclass(frozen=True, kw_only=True)
class ChatPrompt:
    """A request in ids. `suffix`: text that follows the middle; `suffix_ids`: its first ids, and where the file ends
    among them, what closes the model's turn, as `closing` ids, and then `fill` ids without end. `fences`: may the
    middle hold fences, since the text around has some?"""

    encoder: tuple[int, ...]
    healed: Healed
    suffix: str
    suffix_ids: tuple[int, ...]
    closing: tuple[int, ...]
    fill: int
    fences: bool

    @property
    def cut(self) -> int:
        """Where the canvas begins."""
        return len(self.encoder)

    @property
    def open_end(self) -> bool:
        """Does nothing follow the middle?"""
        return not self.suffix.strip()

    @property
    def ends(self) -> bool:
        """Does the file end among the suffix ids?"""
        return len(self.suffix) < SUFFIX_CHARS

    def after(self, count: int) -> tuple[int, ...]:
        """The `count` ids that follow the middle."""
        ids = (*self.suffix_ids, *self.closing)[:count]
        return ids + (self.fill,) * (count - len(ids))


def fill_prompt(
    request: FillRequest,
    texts: Texts,
    profile: ModelProfile,
    can_spell: Callable[[str], bool] = lambda _: True,
) -> ChatPrompt:
    """Lay out a fill. `can_spell`: are there ids that begin with this text? Else the prefix is not healed."""
    chat, layout = _chat(profile), profile.layout
    healed = _healed(normalise(request.prefix), can_spell)
    suffix = normalise(request.suffix)
    fence = fence_for(healed.kept, suffix, *(item.text for item in request.context))
    next_lines, language = suffix.partition("\n")[2], _language(request.language)
    user = [
        *_about(request.path, language, texts),
        *_elsewhere(request.context, fence, layout.context, texts),
        *_quoted("What follows the gap, from the next line on:", fence, language, next_lines, chat.suffix, texts),
    ]
    budget = layout.encoder - layout.context - chat.suffix - OVERHEAD
    head = [*_turns(chat.rule, user, texts, profile), *_ids(f"{fence}{language}\n", texts)]
    return _prompt(head + prefix_window(healed.kept, budget, texts), healed, suffix, fence, texts, profile)


def edit_prompt(
    request: EditRequest,
    texts: Texts,
    profile: ModelProfile,
    can_spell: Callable[[str], bool] = lambda _: True,
) -> ChatPrompt:
    """Lay out an edit: the span is `selected` anew. The instruction comes last, since it is what changes.

    Raises BadRequest for a selection or an instruction that the model could not see as a whole.
    """
    chat, layout = _chat(profile), profile.layout
    before, selected, after = map(normalise, (request.before, request.selected, request.after))
    healed = _healed(before, can_spell)
    if healed.forced != healed.taken:  # what stands before a selection stays as it is
        healed = Healed(kept=healed.kept, taken=healed.taken, forced=healed.taken)
        healed = healed if can_spell(healed.taken) else unhealed(before)
    fence = fence_for(before, selected, after, *(item.text for item in request.context))
    room = layout.encoder - layout.context - chat.suffix - OVERHEAD
    language = _language(request.language)
    asked = _ids(f"What to change: {normalise(request.instruction).strip()}", texts)
    for name, size, most in (
        ("selection", len(_ids(selected, texts)), room // 2),
        ("instruction", len(asked), room // 4),
    ):
        if size > most:
            raise BadRequest(
                f"the {name} is too long: {size} tokens, and {profile.name} takes {most}", "make it shorter"
            )
    user = [
        *_about(request.path, language, texts),
        *_elsewhere(request.context, fence, layout.context, texts),
        *_quoted("What stands before the part:", fence, language, before, -room // 8, texts),
        *_quoted("What follows the part:", fence, language, after, chat.suffix, texts),
        *_quoted("The part to change:", fence, language, selected, room // 2, texts),
        *asked,
    ]
    head = [*_turns(chat.edit_rule, user, texts, profile), *_ids(f"{fence}{language}\n", texts)]
    shown = "".join(healed.kept.splitlines(keepends=True)[-LINES_BEFORE_EDIT:])
    return _prompt(head + prefix_window(shown, room // 8, texts), healed, after, fence, texts, profile)


def fence_for(*texts: str) -> str:
    """Backticks that no line of `texts` could close: three, or one more than the longest run in them."""
    return "`" * max(3, 1 + max((len(run) for text in texts for run in re.findall("`{3,}", text)), default=2))


def prefix_window(text: str, budget: int, texts: Texts) -> list[int]:
    """Ids of the end of `text`, at most `budget`. The window starts at a line and stays there while one types."""
    lines = pieces(text)
    first = window_start([len(texts.encode_line(line)) for line in lines[:-1]], budget)
    shown = lines[first:]
    if first:
        shown[0] = shown[0].lstrip("\n")
    ids = [token for line in shown for token in texts.encode_line(line)]
    if len(ids) <= budget:
        return ids
    step = max(1, budget // 2)  # one line longer than the window: its start moves by half a window
    return ids[-(-(len(ids) - budget) // step) * step :]


def pieces(text: str) -> list[str]:
    """Lines with all the newlines before them: a run of newlines may be one token, and none spans these borders."""
    return re.findall(r"\A[^\n]+|\n+[^\n]*", text)


def _chat(profile: ModelProfile) -> Chat:
    assert profile.chat is not None, "a profile without [chat] has no chat layout"
    return profile.chat


def _healed(prefix: str, can_spell: Callable[[str], bool]) -> Healed:
    healed = heal(prefix)
    return healed if not healed.forced or can_spell(healed.forced) else unhealed(prefix)


def _prompt(
    encoder: list[int], healed: Healed, suffix: str, fence: str, texts: Texts, profile: ModelProfile
) -> ChatPrompt:
    tokens = profile.tokens
    closing = _ids(fence if suffix.endswith("\n") else f"\n{fence}", texts)
    return ChatPrompt(
        encoder=tuple(encoder),
        healed=healed,
        suffix=suffix[:SUFFIX_CHARS],
        suffix_ids=tuple(_ids(suffix[:SUFFIX_CHARS], texts)),
        closing=(*closing, tokens["turn_end"]),
        fill=tokens["eos"],
        fences=len(fence) > 3,
    )


def _turns(rule: str, user: list[int], texts: Texts, profile: ModelProfile) -> list[int]:
    """The turns of system and user, and the beginning of the model's."""
    tokens = profile.tokens
    turn, turn_end = tokens["turn"], tokens["turn_end"]
    return [
        tokens["bos"], turn, *_ids(f"system\n{rule.strip()}", texts), turn_end, *_ids("\n", texts),
        turn, *_ids("user\n", texts), *user, turn_end, *_ids("\n", texts),
        turn, *_ids("model\n", texts), tokens["channel"], *_ids("thought\n", texts), tokens["channel_end"],
    ]  # fmt: skip


def _about(path: str, language: str, texts: Texts) -> list[int]:
    shown = "/".join(path.replace("\\", "/").split("/")[-2:])[-PATH_CHARS:]
    return _ids(f"File: {shown}\nLanguage: {language}\n", texts)


def _language(name: str) -> str:
    """`name` as it may stand behind a fence."""
    return re.sub(r"[^\w+#.-]", "", name)[:LANGUAGE_CHARS]


def _elsewhere(items: Sequence[ContextItem], fence: str, most: int, texts: Texts) -> list[int]:
    """Text from outside of the window, at most `most` ids: as many whole items as fit."""
    ids: list[int] = []
    for item in items:
        said = normalise(item.text).strip("\n")
        new = _ids(f"\nElsewhere ({item.path or item.kind}):\n{fence}\n{said}\n{fence}\n", texts)
        if said and len(ids) + len(new) <= most:
            ids += new
    return ids


def _quoted(title: str, fence: str, language: str, text: str, most: int, texts: Texts) -> list[int]:
    """`text` in a fence, cut to `most` ids and whole lines; of negative `most` ids the end is kept."""
    if not text.strip():
        return []
    lines = [texts.encode_line(line) for line in pieces(text)]
    kept: list[int] = []
    for line in lines if most > 0 else reversed(lines):
        if len(kept) + len(line) > abs(most):
            break
        kept = [*kept, *line] if most > 0 else [*line, *kept]
    return [*_ids(f"\n{title}\n{fence}{language}\n", texts), *kept, *_ids(f"\n{fence}\n", texts)]


def _ids(text: str, texts: Texts) -> list[int]:
    return [token for piece in pieces(text) for token in texts.encode_line(piece)]
