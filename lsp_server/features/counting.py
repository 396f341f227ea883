"""What clients tell about completions: shown, accepted, accepted in part. Counted on this machine, sent nowhere.

The notifications have the names and shapes that the Copilot language server made common; an item is recognised by the
argument of the command that it carries. Whatever else a client sends is ignored. Knows LSP params.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lsp_server.documents import Document, units
from lsp_server.insertion import Insertion

if TYPE_CHECKING:
    from lsp_server.server import Server


def offered(ls: Server, document: Document, insertions: tuple[Insertion, ...]) -> None:
    """The client is about to get these."""
    for item in insertions:
        ls.counts.offered(
            item.id, document.language, length=units(item.text, "utf-16"), before=item.before + item.after
        )


def shown(ls: Server, params: Any) -> None:
    """`textDocument/didShowCompletion {item}`: an item is on the screen."""
    ls.counts.shown(_name(params))


def accepted_part(ls: Server, params: Any) -> None:
    """`textDocument/didPartiallyAcceptCompletion {item, acceptedLength}`: the length counts from the start of the
    item's text, in UTF-16 units."""
    length = params.get("acceptedLength") if isinstance(params, dict) else None
    if isinstance(length, int):
        ls.counts.accepted_part(_name(params), length)


def accepted(ls: Server, name: Any = None, *rest: Any) -> None:
    """The command of every item, which clients run when it has been accepted."""
    ls.counts.accepted(str(name))


def _name(params: Any) -> str:
    """The first argument of `params.item.command`."""
    for key in ("item", "command"):
        params = params.get(key) if isinstance(params, dict) else None
    arguments = params.get("arguments") if isinstance(params, dict) else None
    return str(arguments[0]) if isinstance(arguments, list) and arguments else ""
