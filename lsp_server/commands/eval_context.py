"""What the surroundings of a cut would be in an editor: other files of the repository open, some lines just edited.

Knows cuts and texts; nothing of engines. Simulated, and the same every time: the files nearest by path are open, the
nearest last viewed; the edits are a few seeded spans of lines in them and in the file itself.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from lsp_server.commands.eval_cuts import Cut, Text
from lsp_server.context import SOURCES, Around, EditedLines, OpenFile
from lsp_server.documents import Document

OPEN_FILES = 6
EDITS = 6
EDITED_LINES = (1, 4)
"""Lines of an edit, from and to."""

MEASURED = tuple(source for source in SOURCES if source != "cells")
"""Files have no cells."""


@dataclass(frozen=True, kw_only=True)
class Repository:
    """The files that may be open beside the one with the hole."""

    texts: Sequence[Text]
    _documents: dict[str, Document] = field(default_factory=dict)

    def around(self, cut: Cut) -> Around:
        """What an editor would know at the cut."""
        files = tuple(self._open(text) for text in self._nearest(cut))
        rng = random.Random(f"{cut.path}/{len(cut.prefix)}")
        here = Document(uri="cut:").with_text(cut.prefix + cut.suffix, 0)
        places = [OpenFile(path=cut.path, document=here), *files]
        return Around(files=files, edits=tuple(_edit(rng.choice(places), rng) for _ in range(EDITS)))

    def _nearest(self, cut: Cut) -> list[Text]:
        others = [text for text in self.texts if text.path != cut.path and text.language == cut.language]
        return sorted(others, key=lambda text: (-_shared(text.path, cut.path), text.path))[:OPEN_FILES]

    def _open(self, text: Text) -> OpenFile:
        if text.path not in self._documents:
            self._documents[text.path] = Document(uri=text.path, language=text.language).with_text(text.text, 0)
        return OpenFile(path=text.path, document=self._documents[text.path])


def conditions(sources: Sequence[str]) -> Mapping[str, frozenset[str]]:
    """What is compared, by name: nothing, each source by itself, all of them if there are several."""
    alone = {source: frozenset({source}) for source in sources}
    together = {"together": frozenset(sources)} if len(sources) > 1 else {}
    return {"none": frozenset(), **alone, **together}


def _shared(one: str, other: str) -> int:
    """How many folders two paths have in common."""
    count = 0
    for a, b in zip(PurePosixPath(one).parent.parts, PurePosixPath(other).parent.parts, strict=False):
        if a != b:
            break
        count += 1
    return count


def _edit(file: OpenFile, rng: random.Random) -> EditedLines:
    first = rng.randrange(len(file.document.lines))
    last = min(first + rng.randint(*EDITED_LINES), len(file.document.lines)) - 1
    return EditedLines(document=file.document, path=file.path, first=first, last=max(first, last))
