"""How much of what goes into a request, and which sources are worth it for which model. Numbers and names only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lsp_server.context.around import Around

SOURCES: tuple[str, ...] = ("imports", "signatures", "cells", "files", "edits", "lines")
"""Where the context of a request can come from:

imports     of the file
signatures  headers of the enclosing scopes and of what stands beside them
cells       earlier cells of the notebook, in front of the prefix
files       chunks of open and recently viewed files that resemble the cursor's neighbourhood
edits       lines changed lately, elsewhere
lines       lines of the open files that continue the cursor's line: not read by the model, but tried as answers
"""

AUTO = "auto"
DEFAULTS: Mapping[str, frozenset[str]] = {"embedded": frozenset({"cells", "lines"})}
"""By profile; one that is not listed gets them all. Measured with `midfill eval repo DIR --context` (166 holes in five
held-out packages): lines gained similarity, 1.4 points [0.2, 2.9]; imports, signatures, files and edits gained nothing.
Cells were not measured."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Code points at most: text before and after the cursor, and from every source. `max_lines`: lines of an answer.
    `lines` counts texts, not code points."""

    prefix_chars: int = 8_000
    suffix_chars: int = 4_000
    context_chars: int = 1_500
    """Imports and signatures together."""
    files_chars: int = 2_000
    edits_chars: int = 800
    cells_chars: int = 40_000
    """The whole text of earlier cells that is looked at; of it, as much as fits goes into the prefix."""
    lines: int = 3
    max_lines: int = 12
    sources: frozenset[str] = frozenset({"imports", "signatures", "cells", "lines"})

    def lead(self, around: Around) -> str:
        """What of the earlier cells is put in front of a document: the nearest, from a line start."""
        if "cells" not in self.sources or len(around.lead) <= self.cells_chars:
            return around.lead if "cells" in self.sources else ""
        return around.lead[-self.cells_chars :].partition("\n")[2]


def sources_of(names: Sequence[str], profile: str) -> frozenset[str]:
    """The sources that a setting names; "auto" among them stands for what is worth it for the profile."""
    chosen = frozenset(names) & frozenset(SOURCES)
    return chosen | DEFAULTS.get(profile, frozenset(SOURCES)) if AUTO in names else chosen
