"""What happens to files and folders: saved, renamed, added to the workspace and taken out of it. Knows LSP types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

if TYPE_CHECKING:
    from lsp_server.server import Server

RENAMES = types.FileOperationRegistrationOptions(
    filters=[types.FileOperationFilter(pattern=types.FileOperationPattern(glob="**/*"))]
)


def did_save(ls: Server, params: types.DidSaveTextDocumentParams) -> None:
    """It may be a .gitignore."""
    ls.files.rules_changed()


def did_rename(ls: Server, params: types.RenameFilesParams) -> None:
    for file in params.files:
        ls.files.rename(file.old_uri, file.new_uri)


def folders_changed(ls: Server, params: types.DidChangeWorkspaceFoldersParams) -> None:
    """Which folders there are is known already; what was decided with the former ones is not valid any more."""
    ls.files.rules_changed()
