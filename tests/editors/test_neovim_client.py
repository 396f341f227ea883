"""What midfill's client adds to Neovim: accepting parts, accepting while typing, asking, saying why; its help."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from lsp_server.statistics import statistics_file, summed

from .conftest import NewNeovim
from .neovim import CLIENT

pytestmark = pytest.mark.slow

HELP = CLIENT / "doc" / "midfill.txt"


def test_accepting_directly_after_typing_a_part_of_it(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "max(", "fill": "a, b)"}, text="value = max()\n")
    neovim.type("$i")
    neovim.wait(neovim.ghost)
    neovim.type("a,<Tab>")  # Faster than Neovim asks again: it still holds the text and the range from before.
    neovim.wait_lines("value = max(a, b)")
    neovim.type("!")
    neovim.wait_lines("value = max(a, b)!")


def test_accepting_directly_after_typing_something_else_does_nothing(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "compute()"}, text="\n")
    neovim.type("ix = ")
    neovim.wait_ghost("compute()")
    neovim.type("y<Tab>!")
    neovim.wait_lines("x = y!")
    neovim.wait_answer()
    assert neovim.lines() == ["x = y!"]


def test_word_by_word_and_line_by_line(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "def ", "fill": "größe(a):\n    b = c\n    return b"}, text="def \n")
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
    neovim = new_neovim({"after": "max(", "fill": "first, second)"}, text="value = max()\n")
    neovim.type("$i")
    neovim.wait(lambda: neovim.ghost() and "value = max(first, second)" in neovim.screen.rows())
    neovim.accept("accept_word")
    assert neovim.lines() == ["value = max(first)"]
    neovim.wait(lambda: neovim.ghost() and "value = max(first, second)" in neovim.screen.rows())
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


def test_settings_reach_the_server_and_why_says_so(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", settings={"enabled": False})
    neovim.type("ix = ")
    neovim.wait_answer()
    assert neovim.ghost() is None
    neovim.type("<Esc>:Midfill why<CR>")
    neovim.wait_message("setting enabled")


@pytest.mark.parametrize("version", ["0.11"], indirect=True)
@pytest.mark.parametrize(
    ("text", "keys", "entry", "rows"),
    [
        ("f()[0]\n", "f(a", {"after": "f(", "fill": "a, b)"}, ["f(a, b)[0]"]),
        ("f()\n", "f)i", {"after": "f(", "fill": "\n    a,\n)"}, ["f(", "    a,", ")", "~"]),
        (
            "if a:\n    if b:\n        c()\n",
            "Go",
            {"after": "c()\n        ", "fill": "    d()", "replace_before": 8},
            ["if a:", "    if b:", "        c()", "    d()", "~"],
        ),
        ("x = (, b)\n", "f(a", {"after": "(", "fill": "größe\tä"}, ["x = (größe    ä, b)"]),
    ],
    ids=["bracket", "lines-over-a-bracket", "dedent", "tab"],
)
def test_what_we_draw_ourselves_looks_as_if_it_were_there(
    new_neovim: NewNeovim, text: str, keys: str, entry: dict[str, object], rows: list[str]
) -> None:
    neovim = new_neovim(entry, text=text)
    neovim.lua("vim.bo.tabstop = 4")
    neovim.type(keys)
    neovim.wait(lambda: neovim.ghost() and neovim.screen.rows()[: len(rows)] == rows)
    assert "\n".join(neovim.lines()).strip() == text.strip()


def test_leaving_the_place_takes_the_ghost_text_away(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="a\n")
    for leave in ("<Left>", "<Up>", "<Esc>"):
        neovim.type("<Esc>ggox = ")
        neovim.wait_ghost("1")
        neovim.type(leave)
        neovim.wait(lambda: neovim.ghost() is None)
    assert neovim.lines() == ["a", "x = ", "x = ", "x = "]


def test_who_waits_for_the_model_need_not_press_another_key(new_neovim: NewNeovim) -> None:
    loading = {"code": "loading", "message": "the model is still being loaded"}
    neovim = new_neovim({"after": "x = ", "error": loading}, text="\n")
    neovim.type("ix = ")
    neovim.wait(lambda: neovim.lua("return require('midfill').statusline()") == "midfill: loading")
    neovim.wait_answer()
    asked = len(neovim.requests)
    neovim.lua("""local client = vim.lsp.get_clients()[1]
    client.handlers['midfill/status'](nil, { state = 'ready', model = 'scripted' })""")
    neovim.wait(lambda: len(neovim.requests) > asked)


def test_what_is_shown_and_accepted_is_counted(
    new_neovim: NewNeovim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "größe(𝔘, b)"}, {"after": "y = ", "fill": "2"}, text="\n", own=True)
    neovim.type("ix = ")
    neovim.wait_ghost("größe(𝔘, b)")
    neovim.accept("accept_word")
    neovim.wait_ghost("(𝔘, b)")
    neovim.accept()
    neovim.type("<CR>y = ")
    neovim.wait_ghost("2")
    neovim.quit()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    total = summed(statistics_file().lines())
    assert [asdict(count) for count in total.values()] == [{"shown": 2, "accepted": 1, "partial": 1, "chars": 12}]


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
    assert {"midfill", ":Midfill", "midfill.accept()"} <= set(links)
    neovim.lua("vim.opt.runtimepath:prepend(...)", str(copy.parent))
    neovim.nvim.command(f"helptags {copy}")
    for link in links:
        neovim.nvim.command(f"help {link}")
    assert neovim.messages() == ""
