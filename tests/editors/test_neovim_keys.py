"""The keys that `setup` maps in Neovim, and that none of them takes anything away; plain `vim.lsp.enable`."""

from __future__ import annotations

import re

import pytest

from .conftest import NewNeovim

pytestmark = pytest.mark.slow

BEFORE = """
vim.keymap.set('i', '<F2>', function() return 'expression' end, { expr = true })
vim.keymap.set('i', '<F3>', function() vim.api.nvim_put({ 'function' }, 'c', true, true) end)
vim.cmd.inoremap('<F4> text')
vim.cmd.imap('<F5> <F4>')
"""
SETUP_KEYS = """
local start = ...
require('midfill').setup({ cmd = start.cmd, keys = { accept = { '<F2>', '<F3>', '<F4>', '<F5>' } } })
require('midfill').setup({ cmd = start.cmd, keys = { accept = { '<F2>', '<F3>', '<F4>', '<F5>' } } })
"""
OURS = """
return vim.iter(vim.api.nvim_get_keymap('i')):map(function(mapping)
  return vim.startswith(mapping.desc or '', 'midfill: ') and mapping.lhs or nil
end):totable()
"""


def test_tab_accepts_ghost_text_and_is_a_tab_without(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n")
    neovim.type("ix = ")
    neovim.wait_ghost("1")
    neovim.type("<Tab>")
    neovim.wait_lines("x = 1")
    neovim.type("<Tab>2")
    neovim.wait(lambda: re.fullmatch(r"x = 1\s+2", neovim.lines()[0]))


def test_in_front_of_the_first_character_tab_indents(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "def f():\n    ", "fill": "return 1"}, text="def f():\n")
    neovim.type("o")
    neovim.wait_ghost("return 1")
    neovim.type("<Tab>")
    neovim.wait(lambda: neovim.lines()[1] == " " * 8)
    neovim.type("<BS>")
    neovim.wait_ghost("return 1")
    neovim.type("<M-y>")
    neovim.wait(lambda: neovim.lines()[1] == "    return 1")


def test_while_a_menu_is_open_tab_is_not_ours(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = alpha", "fill": "bet()"}, text="alpha = alps = 1\n")
    neovim.type("ox = al<C-n>")
    neovim.wait_ghost("bet()")
    assert neovim.nvim.call("pumvisible")
    neovim.type("<Tab>.")
    neovim.wait(lambda: re.fullmatch(r"x = alpha\s+\.", neovim.lines()[1]))


def test_a_key_does_what_it_did_before_where_there_is_no_ghost_text(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", setup=BEFORE + SETUP_KEYS)
    for key, did in (("<F2>", "expression"), ("<F3>", "function"), ("<F4>", "text"), ("<F5>", "text")):
        neovim.type(f"<Esc>ccy{key}")
        neovim.wait_lines("y" + did)
        neovim.type("<Esc>ccx = ")
        neovim.wait_ghost("1")
        neovim.type(key)
        neovim.wait_lines("x = 1")


def test_tab_goes_through_snippets_as_before(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    neovim.type("ia = ")
    neovim.lua("vim.snippet.expand('f(${1:one}, ${2:two})')")
    neovim.type("x<Tab>")
    neovim.wait(lambda: neovim.lines() == ["a = f(x, two)"] and "-- SELECT --" in neovim.screen.rows()[-1])
    neovim.type("y")
    neovim.wait_lines("a = f(x, y)")


def test_candidates_are_gone_through_and_asked_for_by_keys(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": ["1", "22", "333"], "confidence": 0.01}, text="\n")
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
    neovim.wait_lines("x = 333")


def test_what_setup_does_not_know_is_named(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    for options, complaint in (
        ("{ key = {} }", "setup has no option key; there are cmd, filetypes, keys, settings"),
        ("{ keys = { swallow = '<F6>' } }", "there is no key for swallow; there are accept, "),
        ("{ settings = 3 }", "settings: expected table, got number"),
    ):
        said = neovim.lua(f"return select(2, pcall(require('midfill').setup, {options}))")
        assert complaint in said


def test_plain_enable_shows_ghost_text_and_maps_nothing(new_neovim: NewNeovim) -> None:
    plain = "local start = ...; vim.lsp.config('midfill', { cmd = start.cmd }); vim.lsp.enable('midfill')"
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", setup=plain)
    assert neovim.lua(OURS) == []
    neovim.type("ix = ")
    neovim.wait_ghost("1")
    neovim.accept()
    assert neovim.lines() == ["x = 1"]
