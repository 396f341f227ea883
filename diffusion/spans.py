"""What floating.py and clamping.py work on: the task of a fill or an edit in the chat layout, and the place where its
next canvas stands. Knows ids and tensors; knows no requests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from diffusion.canvas import Canvas, span_canvas
from diffusion.chat_layout import ChatPrompt, Texts, pieces
from diffusion.opening import Desk
from diffusion.profiles import Chat
from diffusion.span_rules import Alphabet, SpanRules
from diffusion.stopping import Limits
from diffusion.uniform import SpanStep, denoise

POSITIONS = 256
"""Of a batch, at most, where predictions are kept for the next step: half a megabyte each in bfloat16 for the 26B
checkpoint's vocabulary, and logits in float32 of one canvas beside them."""


@dataclass(frozen=True, kw_only=True)
class SpanTask:
    """What to write. `width`: of the canvas that floats. `one_line`: no newline in the middle. `canvases`: so many may
    follow one another; with one, a length is searched where no suffix is found. `hints`: middles that may be right,
    with what the prompt's healing took; `length`: the true one, if it is known. Lengths and hints in ids."""

    prompt: ChatPrompt
    texts: Texts
    alphabet: Alphabet
    width: int
    one_line: bool
    candidates: int
    steps: int
    canvases: int = 1
    seed: int = 0
    hints: tuple[tuple[int, ...], ...] = ()
    length: int | None = None


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the next canvas stands: behind the prompt and the ids that are `written` already."""

    task: SpanTask
    desk: Desk
    limits: Limits
    written: tuple[int, ...] = ()

    @property
    def forced(self) -> str:
        """How the slot begins: with what healing took, where it is the first one."""
        return "" if self.written else self.task.prompt.healed.forced

    @property
    def hints(self) -> tuple[tuple[int, ...], ...]:
        """Those of the task, which are about its first slot."""
        return () if self.written else self.task.hints

    @property
    def chat(self) -> Chat:
        assert self.desk.profile.chat is not None
        return self.desk.profile.chat

    @property
    def pins(self) -> int:
        """Ids of the suffix behind the longest slot of a batch, at least."""
        return self.desk.profile.layout.pins

    @property
    def longest(self) -> int:
        """The longest slot, in ids."""
        return self.desk.profile.layout.widths[-1] - self.pins

    def encode(self) -> None:
        """Make the cache hold everything before the canvas."""
        self.desk.encode(self.task.prompt.encoder + self.written)

    def rules(self, *, one_line: bool, may_end: bool = False) -> SpanRules:
        """What may be written."""
        fences = self.task.prompt.fences
        return self.task.alphabet.rules(one_line=one_line, fences=fences, forced=self.forced, may_end=may_end)

    def width(self, length: int) -> int:
        """The smallest canvas of the profile for a slot of `length` ids and its pins, or its widest one."""
        widths = self.desk.profile.layout.widths
        return next((width for width in widths if width >= length + self.pins), widths[-1])

    def canvas(self, length: int, width: int) -> Canvas:
        """A free slot of `length` ids and behind it as much of what follows as fills up `width`."""
        prompt = self.task.prompt
        pins = () if prompt.open_end else prompt.after(width - length)
        return span_canvas(self.desk.profile, length, prompt.cut + len(self.written), pins)

    def denoise(
        self, canvases: Sequence[Canvas], starts: Sequence[Sequence[int]], rules: SpanRules, steps: int
    ) -> Iterator[SpanStep]:
        """The loop of uniform.py, its calls counted."""
        for step in denoise(
            self.desk.model,
            self.desk.cache,
            canvases,
            rules=rules,
            sampler=self.desk.profile.sampler,
            steps=steps,
            seed=self.task.seed,
            limits=self.limits,
            starts=starts,
        ):
            self.desk.tally.forwards += 1
            yield step


def still_open(step: SpanStep) -> tuple[bool, ...]:
    """Which positions of the first slot were not accepted: what a client may be shown as masked."""
    return tuple(not accepted for accepted in step.accepted[0])


def encode(text: str, texts: Texts) -> tuple[int, ...]:
    """Ids of `text`, which has line ends LF."""
    return tuple(token for piece in pieces(text) for token in texts.encode_line(piece))
