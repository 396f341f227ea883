"""The screen of an embedded Neovim, kept up to date from its `redraw` events: what a user sees, with its colours.

Knows the linegrid UI protocol (`:help ui-linegrid`); nothing of Neovim's buffers and nothing of midfill.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One place of the screen. `text` is empty behind a character that is two cells wide. `style` is as in
    `:help ui-event-hl_attr_define`: `foreground`, `background` (24-bit RGB), `bold`, `italic`, `reverse` ..."""

    text: str = " "
    style: dict[str, Any] = field(default_factory=dict)


@dataclass(kw_only=True)
class Screen:
    """A grid of cells, the cursor's row and column, the default colours and the mode's name."""

    cells: list[list[Cell]] = field(default_factory=list)
    cursor: tuple[int, int] = (0, 0)
    foreground: int = 0xFFFFFF
    background: int = 0
    mode: str = "normal"
    _styles: dict[int, dict[str, Any]] = field(default_factory=lambda: {0: {}})

    def redraw(self, events: list[Any]) -> None:
        """Take over the updates of one `redraw` notification."""
        for name, *calls in events:
            if handler := getattr(self, f"_{name}", None):
                for arguments in calls:
                    handler(*arguments)

    def rows(self) -> list[str]:
        """The text of the screen, without blanks at the ends of rows."""
        return ["".join(cell.text for cell in row).rstrip() for row in self.cells]

    def _grid_resize(self, grid: int, width: int, height: int) -> None:
        self.cells = [[Cell() for _ in range(width)] for _ in range(height)]

    def _grid_clear(self, grid: int) -> None:
        self.cells = [[Cell() for _ in row] for row in self.cells]

    def _grid_cursor_goto(self, grid: int, row: int, column: int) -> None:
        self.cursor = row, column

    def _grid_line(self, grid: int, row: int, column: int, cells: list[list[Any]], wrap: bool) -> None:
        style: dict[str, Any] = {}
        for text, *more in cells:
            if more:
                style = self._styles[more[0]]
            for _ in range(more[1] if len(more) > 1 else 1):
                self.cells[row][column] = Cell(text=text, style=style)
                column += 1

    def _grid_scroll(self, grid: int, top: int, bottom: int, left: int, right: int, rows: int, columns: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self.cells[row][left:right] = self.cells[row + rows][left:right]

    def _hl_attr_define(self, number: int, rgb: dict[str, Any], cterm: dict[str, Any], info: list[Any]) -> None:
        self._styles[number] = rgb

    def _default_colors_set(self, foreground: int, background: int, *rest: int) -> None:
        self.foreground, self.background = foreground, background

    def _mode_change(self, mode: str, number: int) -> None:
        self.mode = mode
