"""A screen as an SVG picture: a window with a title, text that is drawn cell by cell. Knows nothing of Neovim."""

from __future__ import annotations

import itertools
import re
from html import escape
from typing import Any

from .screen import Cell, Screen

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 8.4, 18, 14
MARGIN, TITLE_HEIGHT = 14, 34
FONTS = "'JetBrains Mono', 'Fira Code', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
BUTTONS = ("#ff5f57", "#febc2e", "#28c840")


def picture(screen: Screen, title: str) -> str:
    """The SVG document; the cursor is a bar in insert mode, as Neovim's is in a terminal."""
    width = len(screen.cells[0]) * CELL_WIDTH + 2 * MARGIN
    height = len(screen.cells) * CELL_HEIGHT + TITLE_HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>text {{ font: {FONT_SIZE}px {FONTS}; }}</style>",
        f'<rect width="100%" height="100%" rx="9" fill="{_colour(screen.background)}"/>',
        *(f'<circle cx="{20 + 20 * at}" cy="17" r="6" fill="{fill}"/>' for at, fill in enumerate(BUTTONS)),
        f'<text x="50%" y="22" text-anchor="middle" fill="{_colour(screen.foreground)}" opacity=".7">'
        f"{escape(title)}</text>",
    ]
    for row, cells in enumerate(screen.cells):
        column = 0
        for _, group in itertools.groupby(cells, key=lambda cell: sorted(cell.style.items())):
            run = list(group)
            parts += _run(screen, row, column, run)
            column += len(run)
    row, column = screen.cursor
    bar = 2 if screen.mode == "insert" else CELL_WIDTH
    parts.append(f'<rect x="{_x(column)}" y="{_y(row)}" width="{bar}" height="{CELL_HEIGHT}" fill="#ffffff"/>')
    return "\n".join([*parts, "</svg>", ""])


def _run(screen: Screen, row: int, column: int, cells: list[Cell]) -> list[str]:
    """Neighbouring cells of one style: their background, and their text stretched to exactly their width, since every
    viewer has another font."""
    style = cells[0].style
    foreground, background = style.get("foreground", screen.foreground), style.get("background", screen.background)
    if style.get("reverse"):
        foreground, background = background, foreground
    parts = []
    if background != screen.background:
        parts.append(
            f'<rect x="{_x(column)}" y="{_y(row)}" width="{len(cells) * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}" '
            f'fill="{_colour(background)}"/>'
        )
    # Blanks are left out where there are several: viewers draw them as one.
    for words in re.finditer(r"x+( x+)*", "".join(" " if cell.text == " " else "x" for cell in cells)):
        text = "".join(cell.text for cell in cells[words.start() : words.end()])
        parts.append(
            f'<text x="{_x(column + words.start())}" y="{_y(row) + 13}" fill="{_colour(foreground)}"{_font(style)} '
            f'textLength="{len(words.group()) * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        )
    return parts


def _font(style: dict[str, Any]) -> str:
    bold = ' font-weight="bold"' if style.get("bold") else ""
    return bold + (' font-style="italic"' if style.get("italic") else "")


def _x(column: int) -> str:
    return f"{MARGIN + column * CELL_WIDTH:.1f}"


def _y(row: int) -> int:
    return TITLE_HEIGHT + row * CELL_HEIGHT


def _colour(rgb: int) -> str:
    return f"#{rgb:06x}"
