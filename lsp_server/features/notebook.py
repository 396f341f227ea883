"""`notebookDocument/*`: the cells of a notebook are documents, and the notebook says in which order they stand.

Knows LSP types and what is open; what earlier cells are good for is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lsprotocol import types

from lsp_server import convert
from lsp_server.files import Cell, Files

SYNC = types.NotebookDocumentSyncOptions(notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")])
"""Every kind of notebook, all cells."""

Change = Callable[[types.VersionedTextDocumentIdentifier, Sequence[types.TextDocumentContentChangeEvent]], None]


def opened(files: Files, params: types.DidOpenNotebookDocumentParams) -> None:
    files.set_notebook(params.notebook_document.uri, map(_cell, params.notebook_document.cells))
    for item in params.cell_text_documents:
        files.open(convert.document(item))


def changed(files: Files, params: types.DidChangeNotebookDocumentParams, change: Change) -> None:
    """Cells come, go or move; cells become code or prose; texts change."""
    uri, cells = params.notebook_document.uri, params.change.cells
    if cells is None:
        return
    now = list(files.cells(uri))
    if cells.structure:
        array = cells.structure.array
        now[array.start : array.start + array.delete_count] = map(_cell, array.cells or ())
    told = {cell.document: _cell(cell) for cell in cells.data or ()}
    files.set_notebook(uri, [told.get(cell.uri, cell) for cell in now])
    if cells.structure:
        for item in cells.structure.did_open or ():
            files.open(convert.document(item))
        for closed_cell in cells.structure.did_close or ():
            files.close(closed_cell.uri)
    for content in cells.text_content or ():
        change(content.document, content.changes)


def closed(files: Files, params: types.DidCloseNotebookDocumentParams) -> None:
    cells: list[Any] = [cell.uri for cell in files.cells(params.notebook_document.uri)]
    for uri in {*cells, *(item.uri for item in params.cell_text_documents)}:
        files.close(uri)
    files.drop_notebook(params.notebook_document.uri)


def _cell(cell: types.NotebookCell) -> Cell:
    return Cell(uri=cell.document, code=cell.kind == types.NotebookCellKind.Code)
