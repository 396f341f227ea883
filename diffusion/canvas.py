"""The canvas: what the decoder sees beside its cache. A slot of free positions, and the pinned head of the suffix.

Values only, no torch: ids, which positions are free, and where each stands. Knows nothing of text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from diffusion.profiles import ModelProfile


@dataclass(frozen=True, kw_only=True)
class Canvas:
    """`slot` ids stand at cut, cut + 1, ...; `pins` at cut + gap, ... and never change.

    `free`: positions of the slot that the model still has to write. A position that is neither free nor a pin is
    committed. `end` fills the slot from the end of the middle on, once that is known.
    """

    slot: tuple[int, ...]
    free: tuple[bool, ...]
    pins: tuple[int, ...]
    cut: int
    gap: int
    end: int

    def __post_init__(self) -> None:
        if len(self.slot) != len(self.free) or not 0 < len(self.slot) <= self.gap:
            raise ValueError(f"a slot of {len(self.slot)} with {len(self.free)} marks does not fit a gap of {self.gap}")

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids, slot first."""
        return self.slot + self.pins

    @property
    def positions(self) -> tuple[int, ...]:
        """Where each id stands, counted from the first encoder id."""
        pins = range(self.cut + self.gap, self.cut + self.gap + len(self.pins))
        return (*range(self.cut, self.cut + len(self.slot)), *pins)

    @property
    def middle(self) -> tuple[int, ...]:
        """The slot up to its first end-of-middle."""
        return self.slot[: self.slot.index(self.end)] if self.end in self.slot else self.slot

    def written(self, slot: tuple[int, ...], free: tuple[bool, ...]) -> Canvas:
        """The same canvas with another slot of the same width. Raises ValueError if a committed id would change."""
        if len(slot) != len(self.slot) or any(
            before != after for before, after, open_ in zip(self.slot, slot, self.free, strict=True) if not open_
        ):
            raise ValueError("a committed position cannot change")
        return replace(self, slot=slot, free=free)


def open_canvas(profile: ModelProfile, width: int, cut: int, pins: tuple[int, ...]) -> Canvas:
    """A slot of `width` free positions whose middle may end anywhere, or go on past it."""
    mask = (profile.tokens["mask"],) * width
    return Canvas(
        slot=mask,
        free=(True,) * width,
        pins=pins,
        cut=cut,
        gap=profile.layout.gap,
        end=profile.tokens["end"],
    )


def closed_canvas(canvas: Canvas, length: int, width: int) -> Canvas:
    """The middle has `length` ids: commit the end behind them and shrink the slot to `width` (at least `length`).

    Ids already committed stay. Raises ValueError if `length` cuts into the text or `width` is too small.
    """
    if width < length or length < 0:
        raise ValueError(f"{length} ids do not fit a slot of {width}")
    filler = (canvas.slot[0] if canvas.free[0] else canvas.end,) * length
    slot = (canvas.slot + filler)[:length] + (canvas.end,) * (width - length)
    free = (canvas.free + (True,) * length)[:length] + (False,) * (width - length)
    return replace(canvas, slot=slot, free=free)


def span_canvas(profile: ModelProfile, length: int, cut: int, pins: tuple[int, ...]) -> Canvas:
    """A free slot of exactly `length` ids, at least one, with `pins` directly behind it: the chat layout."""
    end = profile.tokens["turn_end"]
    return Canvas(slot=(end,) * length, free=(True,) * length, pins=pins, cut=cut, gap=length, end=end)
