"""How the commands show code, canvases and progress, in colour on a terminal and in marks elsewhere.

Knows rich, texts and events; nothing of files, of engines, nor of where a fill comes from.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

from diffusion.api import Candidate, Draft, Status

FILLED = "bold black on green"
AROUND = "dim"
CELLS = {"masked": "yellow", "accepted": "bold green", "end": "dim"}
MASK, END, NEWLINE = "░", "·", "⏎"
OPEN, CLOSE = "⟦", "⟧"

# A file or a model may hold terminal escapes: control characters are shown as their pictures.
_VISIBLE = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {127: 0x2421}
_VISIBLE |= dict.fromkeys(range(128, 160), 65533)


def consoles() -> tuple[Console, Console]:
    """Standard output and standard error. What the terminal's encoding lacks is replaced, never an error."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    plain = {"highlight": False, "soft_wrap": True, "markup": False, "emoji": False}
    return Console(**plain), Console(stderr=True, **plain)  # type: ignore[arg-type]


def needs_marks(console: Console) -> bool:
    """Whether colour cannot tell the filled span from the rest."""
    return not console.color_system or console.no_color


def visible(text: str) -> str:
    """The text with \\n as the only line end and without anything that a terminal would obey."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_VISIBLE)


def around(prefix: str, suffix: str, before: int, after: int) -> tuple[str, str]:
    """The last `before` lines of the prefix and the first `after` lines of the suffix, the cursor's own included."""
    head = visible(suffix).split("\n")[: after + 1]
    return "\n".join(visible(prefix).split("\n")[-before - 1 :]), "\n".join(head).rstrip("\n")


def in_place(prefix: str, middle: Text, suffix: str, *, before: int = 5, after: int = 3) -> Text:
    """A middle between the lines around it."""
    left, right = around(prefix, suffix, before, after)
    return Text.assemble((left, AROUND), middle, (right, AROUND))


def filled(prefix: str, candidate: Candidate, suffix: str, *, marks: bool) -> Text:
    """The document around a candidate with it highlighted; `marks`: in brackets, for where no colour is."""
    kept = prefix[: len(prefix) - candidate.replace_before]
    middle = visible(candidate.text)
    return in_place(kept, Text(f"{OPEN}{middle}{CLOSE}" if marks else middle, FILLED), suffix)


def canvas(draft: Draft) -> Text:
    """The slot after a denoising step, on one line, a mask for every open position; the text if cells are unknown."""
    if draft.cells is None:
        return Text(visible(draft.text).replace("\n", NEWLINE), CELLS["accepted"])
    shown = Text()
    for cell in draft.cells:
        text = {"masked": MASK, "end": END}.get(cell.state) or visible(cell.text).replace("\n", NEWLINE)
        shown.append(text, CELLS[cell.state])
    return shown


def step_line(draft: Draft) -> Text:
    return Text.assemble((f"{draft.step:>4}  ", AROUND), canvas(draft))


def loading_line(status: Status) -> str:
    """How far an engine is, in a few words."""
    if status.progress and status.progress.total:
        return f"loading {status.model} {status.progress.done / status.progress.total:.0%}"
    return f"{status.state} {status.model}"


def effort(model: str, forwards: int, ms: float) -> str:
    return f"{model or 'engine'} · {forwards} {'forward' if forwards == 1 else 'forwards'} · {ms:.0f} ms"
