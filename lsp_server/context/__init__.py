"""A text and an offset -> the FillRequest that the engine gets, within a budget; or the reason why there is none.

Knows text and syntax; no LSP, no settings object, no engine. `midfill complete` uses it as the server does.
"""

from lsp_server.context.around import Around, EditedLines, OpenFile
from lsp_server.context.budget import SOURCES, Budget, sources_of
from lsp_server.context.choice import Chooser
from lsp_server.context.request import Nothing, Window, build_request, parse, window

__all__ = [
    "SOURCES", "Around", "Budget", "Chooser", "EditedLines", "Nothing", "OpenFile", "Window", "build_request", "parse",
    "sources_of", "window",
]  # fmt: skip
