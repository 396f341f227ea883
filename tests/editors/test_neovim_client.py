"""What midfill's client adds to Neovim: accepting parts, accepting while typing, asking, saying why; its help."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .conftest import NewNeovim
from .neovim import CLIENT, Neovim

pytestmark = pytest.mark.slow

HELP = CLIENT / "doc" / "midfill.txt"


def use_keys_of_help(neovim: Neovim) -> None:
    """Run the set-up that the help shows, keys and all."""
    help_text = HELP.read_text()
    (setup,) = re.findall(r"\*midfill-setup\*\n>lua\n(.*?)\n<\n", help_text, re.DOTALL)
    neovim.lua(setup)


def test_tab_accepts_ghost_text_and_is_a_tab_without(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n")
    use_keys_of_help(neovim)
    neovim.type("ix = ")
    neovim.wait_ghost("1")
    neovim.type("<Tab>")
    neovim.wait(lambda: neovim.lines() == ["x = 1"])
    neovim.type("<Tab>2")
    neovim.wait(lambda: re.fullmatch(r"x = 1\s+2", neovim.lines()[0]))


def test_accepting_directly_after_typing_a_part_of_it(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "max(", "fill": "a, b)"}, text="value = max()\n")
    use_keys_of_help(neovim)
    neovim.type("$i")
    neovim.wait_ghost("a, b)")
    neovim.type("a,<Tab>")  # Faster than Neovim asks again: it still holds the text and the range from before.
    neovim.wait(lambda: neovim.lines() == ["value = max(a, b)"])
    neovim.type("!")
    neovim.wait(lambda: neovim.lines() == ["value = max(a, b)!"])


def test_accepting_directly_after_typing_something_else_does_nothing(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "compute()"}, text="\n")
    use_keys_of_help(neovim)
    neovim.type("ix = ")
    neovim.wait_ghost("compute()")
    neovim.type("y<Tab>!")
    neovim.wait(lambda: neovim.lines() == ["x = y!"])
    neovim.wait_answer()
    assert neovim.lines() == ["x = y!"]


def test_word_by_word_and_line_by_line(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "größe(a):\n    b = c\n    return b"}, text="def \n")
    neovim.type("A")
    for function, rest in (
        ("accept_word", "(a):\n    b = c\n    return b"),
        ("accept_word", "a):\n    b = c\n    return b"),
        ("accept_line", "\n    b = c\n    return b"),
        ("accept_line", "\n    return b"),
        ("accept_word", " b"),
    ):
        neovim.wait(neovim.ghost)
        neovim.accept(function)
        neovim.wait_ghost(rest)
    neovim.accept()
    assert neovim.lines() == ["def größe(a):", "    b = c", "    return b"]


def test_a_word_of_an_item_with_a_range_leaves_the_tail_of_the_line(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "first, second)"}, text="value = max()\n")
    neovim.type("$i")
    neovim.wait_ghost("first, second)")
    neovim.accept("accept_word")
    assert neovim.lines() == ["value = max(first)"]
    neovim.wait_ghost(", second)")
    neovim.accept()
    assert neovim.lines() == ["value = max(first, second)"]


def test_a_word_of_a_dedent(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(
        {"after": "total += item\n        ", "fill": "    return total", "replace_before": 8},
        text="def add(items):\n    for item in items:\n        total += item\n",
    )
    neovim.type("Go")
    neovim.wait(neovim.ghost)
    neovim.accept("accept_word")
    assert neovim.lines()[3:] == ["    return"]


def test_asking_offers_several_candidates(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": ["1", "22", "333"], "confidence": 0.01}, text="\n")
    use_keys_of_help(neovim)
    neovim.type("ix = ")
    neovim.wait_answer()
    assert neovim.ghost() is None
    neovim.type("<M-m>")
    neovim.wait_ghost("1")
    neovim.type("<M-]>")
    neovim.wait_ghost("22 (2/3)")
    neovim.type("<M-[><M-[>")
    neovim.wait_ghost("333 (3/3)")
    neovim.type("<Tab>")
    neovim.wait(lambda: neovim.lines() == ["x = 333"])


def test_settings_reach_the_server_and_why_says_so(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", settings={"enabled": False})
    neovim.type("ix = ")
    neovim.wait_answer()
    assert neovim.ghost() is None
    neovim.type("<Esc>:MidfillWhy<CR>")
    neovim.wait(lambda: "setting enabled" in neovim.messages())


def test_why_without_a_server_says_where_to_look(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    neovim.type(":enew | MidfillWhy<CR>")
    neovim.wait(lambda: "not attached" in neovim.messages())


def test_the_state_of_the_server_is_there_for_status_lines(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
    assert neovim.lua("return vim.g.midfill_status.model") == "scripted"
    (expression,) = re.findall(r"'statusline':\n>vim\n +(.*)\n<", HELP.read_text())
    assert neovim.nvim.api.eval_statusline(expression, {})["str"] == "ready"


def test_ghost_text_looks_like_a_comment_unless_the_colour_scheme_says_otherwise(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    link = "return vim.api.nvim_get_hl(0, { name = 'ComplHint' }).link"
    assert neovim.lua(link) == "Comment"
    neovim.nvim.command("colorscheme habamax")
    assert neovim.lua(link) == "Comment"
    neovim.nvim.command("highlight! link ComplHint Todo")
    neovim.nvim.command("doautocmd ColorScheme")
    assert neovim.lua(link) == "Todo"


def test_the_help_is_found_and_every_link_has_a_target(new_neovim: NewNeovim, tmp_path: Path) -> None:
    neovim = new_neovim(text="\n")
    text = HELP.read_text()
    copy = tmp_path / "client" / "doc"  # :helptags writes a file beside the help.
    copy.mkdir(parents=True)
    (copy / "midfill.txt").write_text(text)
    links = re.findall(r"\|([^|\s]+)\|", text) + re.findall(r"\*([^*\s]+)\*", text)
    assert {"midfill", ":MidfillWhy", "midfill.accept()"} <= set(links)
    neovim.lua("vim.opt.runtimepath:prepend(...)", str(copy.parent))
    neovim.nvim.command(f"helptags {copy}")
    for link in links:
        neovim.nvim.command(f"help {link}")
    assert neovim.messages() == ""
