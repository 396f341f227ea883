"""`midfill.toggle`, `midfill.restart`, `midfill.trigger`: what an editor can have done on a key press.

Knows LSP params and the server. Editors announce them under their own names; see editors/README.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams

from diffusion.api import EngineError
from lsp_server import convert
from lsp_server.features import configuration
from lsp_server.features.asking import ask_at
from lsp_server.journal import sentence

if TYPE_CHECKING:
    from lsp_server.server import Server


def toggle(ls: Server, language: Any = None) -> dict[str, bool]:
    """Completion on or off, everywhere or (while typing) in one language; `{enabled}`, as it is now.

    It holds until the server ends, or until the same setting is changed elsewhere.
    """
    settings = ls.sources.of()
    if language is None or language == "":
        enabled = not settings.enabled
        ls.sources.toggle("enabled", enabled)
    elif isinstance(language, str):
        language = language.lower()
        enabled = language in settings.disabled_languages
        others = tuple(other for other in settings.disabled_languages if other != language)
        ls.sources.toggle("disabledLanguages", others if enabled else (*others, language))
    else:
        raise JsonRpcInvalidParams("midfill.toggle takes the id of a language, or nothing")
    configuration.apply(ls)
    ls.reporter.tell()
    return {"enabled": enabled}


async def restart(ls: Server) -> None:
    """End the engine, of all windows, and start another: for a model that has been mended, or memory that is short."""
    try:
        await ls.new_engine(stop=True)
    except EngineError as error:
        ls.reporter.warn(sentence(error.as_failure()))


async def trigger(ls: Server, where: Any = None) -> bool:
    """Complete explicitly at `{textDocument, position}` and put the best completion into the text, for editors with
    neither ghost text nor a menu; whether there was one."""
    uri, position = _place(where)
    document = ls.files.documents.get(uri)
    if document is None:
        return False
    ask = ask_at(ls, document, position, explicit=True)
    insertions = await ls.completer.complete(ask)
    if not insertions:
        return False
    edit = convert.workspace_edit(document, ask.offset, insertions[0], ls.protocol.encoding())
    answer = await ls.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit=edit, label="midfill"))
    return answer.applied


def _place(where: Any) -> tuple[str, types.Position]:
    document, position = (where.get(key) if isinstance(where, dict) else None for key in ("textDocument", "position"))
    uri = document.get("uri") if isinstance(document, dict) else None
    line, character = (position.get(key) if isinstance(position, dict) else None for key in ("line", "character"))
    if isinstance(uri, str) and isinstance(line, int) and isinstance(character, int) and min(line, character) >= 0:
        return uri, types.Position(line, character)
    raise JsonRpcInvalidParams("midfill.trigger takes {textDocument: {uri}, position: {line, character}}")
