"""What is offered to an editor: a text and the stretch of the cursor's line that it replaces.

Knows strings and counts of code points; neither LSP nor the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Insertion:
    """`text` replaces `before` code points before the cursor and `after` behind it, all on the cursor's line.

    `id` names what was offered; what is left of it after a few keystrokes keeps the name."""

    text: str
    before: int = 0
    after: int = 0
    confidence: float | None = None
    id: str = field(default="", compare=False)

    def applied(self, prefix: str, suffix: str) -> str:
        """The document once the insertion has been accepted between `prefix` and `suffix`."""
        return prefix[: len(prefix) - self.before] + self.text + suffix[self.after :]
