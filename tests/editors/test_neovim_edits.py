"""Inline edits in a real Neovim: the preview, accept, discard, retry, undo, and what is said where nothing is done."""

from __future__ import annotations

import pytest

from .conftest import NewNeovim
from .neovim import Neovim

pytestmark = pytest.mark.slow

PREVIEW = """
local namespace = vim.api.nvim_get_namespaces()['midfill.edits']
local shown = { lines = {}, group = '' }
for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
  shown.group = mark[4].hl_group or shown.group
  for _, chunks in ipairs(mark[4].virt_lines or {}) do
    table.insert(shown.lines, chunks[1][1])
  end
end
return shown
"""
HINT = ":Midfill accept | retry | discard"
TEXT = "def f(xs):\n    total = 0\n    for x in xs:\n        total += x\n    return total\n"


def preview(neovim: Neovim) -> list[str]:
    return list(neovim.lua(PREVIEW)["lines"])


def proposed(neovim: Neovim, keys: str) -> list[str]:
    """The lines of the preview that come of some keys."""
    neovim.type(keys)
    neovim.wait(lambda: "proposed" in neovim.edits)
    *lines, hint = preview(neovim)
    assert hint == HINT
    return lines


def test_an_edit_is_previewed_and_accepted_as_one_undo_step(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "    n = 1\n    for x in xs:\n        n *= x\n    return n\n"}, text=TEXT)
    lines = proposed(neovim, "jVG:Midfill edit use a product<CR>")
    assert lines == ["    n = 1", "    for x in xs:", "        n *= x", "    return n"]
    assert neovim.lines() == TEXT.splitlines()
    neovim.type(":Midfill accept<CR>")
    neovim.wait_lines("def f(xs):", *lines)
    assert preview(neovim) == []
    neovim.type("u")
    neovim.wait(lambda: neovim.lines() == TEXT.splitlines())
    assert neovim.messages().count("midfill") == 0


def test_a_fill_of_a_part_of_a_line(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "é = f(", "fill": "ü, b"}, text="é = f(ä) + 1\n")
    assert proposed(neovim, "0fäv:Midfill fill<CR>") == ["ü, b"]
    neovim.type(":Midfill accept<CR>")
    neovim.wait_lines("é = f(ü, b) + 1")


def test_drafts_are_shown_and_discarding_leaves_everything_as_it_was(new_neovim: NewNeovim) -> None:
    drafts = [f"    x = {step}\n" for step in range(1000)]
    neovim = new_neovim({"fill": "never", "drafts": drafts, "delay_ms": 60_000}, text=TEXT)
    neovim.type("jV:Midfill edit whatever<CR>")
    neovim.wait(lambda: "draft" in neovim.edits)
    assert preview(neovim)[0].startswith("    x = ")
    neovim.type(":Midfill discard<CR>")
    neovim.wait(lambda: "ended" in neovim.edits)
    assert preview(neovim) == []
    assert neovim.lines() == TEXT.splitlines()


def test_retry_gives_another_answer(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "a = ", "fill": ["1", "2"]}, text="a = 0\n")
    assert proposed(neovim, "$v:Midfill fill<CR>") == ["1"]
    assert proposed(neovim, ":Midfill retry<CR>") == ["2"]
    neovim.type(":Midfill accept<CR>")
    neovim.wait_lines("a = 2")


def test_a_change_meanwhile_takes_the_proposal_away(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "a = 1"}, text="a = 0\nb\n")
    proposed(neovim, ":Midfill edit one<CR>")
    neovim.type("Gx")
    neovim.wait(lambda: "ended" in neovim.edits)
    assert preview(neovim) == []
    neovim.type(":Midfill accept<CR>")
    neovim.wait_message("there is no edit to accept")
    assert neovim.lines() == ["a = 0", ""]


@pytest.mark.parametrize(
    ("change", "kept", "edited"),
    [
        ("0, 0, false, { 'new' }", ["new", "a = 0", "b = 0"], ["new", "a = 0", "b = 1"]),
        ("1, 2, false, { 'b = 5' }", ["a = 0", "b = 5"], None),
    ],
    ids=["elsewhere", "of-the-selection"],
)
def test_27_a_change_before_the_answer(
    new_neovim: NewNeovim, change: str, kept: list[str], edited: list[str] | None
) -> None:
    """It depends on what reaches the server first whether the edit moves along or is refused."""
    neovim = new_neovim({"fill": "b = 1"}, text="a = 0\nb = 0\n")
    neovim.lua(f"""
    local line = {{ line = 1, character = 0 }}
    require('midfill.edits').start(vim.api.nvim_get_current_buf(), {{ start = line, ['end'] = line }}, 'make it one')
    vim.api.nvim_buf_set_lines(0, {change})
    """)
    neovim.wait(lambda: neovim.edits[-1:] in (["proposed"], ["ended"]))
    if neovim.edits[-1] == "proposed":
        assert edited is not None
        neovim.type(":Midfill accept<CR>")
        neovim.wait_lines(*edited)
    else:
        neovim.wait_message("changed")
        assert neovim.lines() == kept
    assert preview(neovim) == []


def test_line_ends_and_tabs_are_those_of_the_file(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "if a:\n    b()\n"}, text=b"def f():\r\n\ta()\r\n\tc()\r\n")
    tab = " " * neovim.lua("return vim.bo.tabstop")
    assert proposed(neovim, "jV:Midfill edit a condition<CR>") == [tab + "if a:", tab + tab + "b()"]
    neovim.type(":Midfill accept<CR>")
    neovim.wait_lines("def f():", "\tif a:", "\t\tb()", "\tc()")


def test_where_the_model_takes_no_instructions_it_can_fill_instead(new_neovim: NewNeovim) -> None:
    refusal = {"code": "unsupported", "message": "it takes no instructions", "hint": "choose big-model"}
    neovim = new_neovim({"error": refusal}, {"fill": "1"}, text="a = 0\n")
    neovim.lua("vim.ui.select = function(items, options, done) _G.asked = options.prompt; done(items[1]) end")
    assert proposed(neovim, "$v:Midfill edit one<CR>") == ["1"]
    assert "big-model" in neovim.lua("return _G.asked")


def test_the_instruction_is_asked_for(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "a = 1"}, text="a = 0\n")
    neovim.type(":Midfill edit<CR>")
    assert proposed(neovim, "make it one<CR>") == ["a = 1"]


def test_a_long_message_does_not_wait_for_a_key(new_neovim: NewNeovim) -> None:
    message = "the engine has ended unexpectedly " + "and its log is somewhere in a very long folder " * 9
    neovim = new_neovim({"after": "x = ", "error": message}, {"after": "y = ", "fill": "2"}, text="\n")
    neovim.type("ix = ")
    neovim.wait_answer()
    neovim.wait_message("the engine has ended")
    assert neovim.messages().endswith("… (:Midfill why)")
    assert neovim.nvim.api.get_mode() == {"mode": "i", "blocking": False}
    neovim.type("<CR>y = ")
    neovim.wait_ghost("2")


def test_code_actions_do_it_without_a_word_of_ours(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"fill": "a = [1, 2]"}, {"fill": "a = [3]"}, text="# sort it\na = [2, 1]\n")
    action = """
    vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find(...) ~= nil end,
      range = { start = { 2, 0 }, ['end'] = { 2, 9 } } })
    """
    for title, line in (("edit the selection: sort it", "a = [1, 2]"), ("fill the selection", "a = [3]")):
        neovim.lua(action.replace("...", f"'{title}'"))
        neovim.wait_lines("# sort it", line)
    neovim.type("uu")
    neovim.wait_lines("# sort it", "a = [2, 1]")
