"""`:Midfill` and its subcommands, the state for status lines, and `:checkhealth midfill`, in real Neovims."""

from __future__ import annotations

import re
from functools import partial

import psutil
import pytest

from .conftest import NewNeovim
from .neovim import SAFETY, Neovim

pytestmark = pytest.mark.slow

COLLECT = """
_G.seen = {}
vim.api.nvim_create_autocmd('User', { pattern = 'MidfillStatus', callback = function()
  table.insert(_G.seen, require('midfill').statusline())
end })
"""
STATUSLINE = "return require('midfill').statusline()"


def completions(neovim: Neovim, line: str) -> list[str]:
    return list(neovim.nvim.call("getcompletion", line, "cmdline"))


def health(neovim: Neovim) -> str:
    neovim.nvim.command("checkhealth midfill")
    return "\n".join(neovim.lines())


def test_subcommands_are_completed(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    everything = [
        *("accept", "discard", "edit", "fill", "log", "model"),
        *("restart", "retry", "stats", "status", "toggle", "why"),
    ]
    assert completions(neovim, "Midfill ") == everything
    assert completions(neovim, "'<,'>Midfill f") == ["fill"]
    assert completions(neovim, "Midfill toggle ") == ["language"]
    assert completions(neovim, "Midfill why f") == ["full"]
    assert completions(neovim, "Midfill log ") == ["server"]
    assert completions(neovim, "Midfill model emb") == ["embedded"]
    assert completions(neovim, "Midfill fill ") == []


def test_an_unknown_subcommand_is_named(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    neovim.type(":Midfill flil<CR>")
    neovim.wait_message("no subcommand flil; there are accept, discard, edit")


def test_without_a_server_it_is_said_where_to_look(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    assert neovim.lua(STATUSLINE) != ""
    neovim.type(":enew | Midfill why<CR>")
    neovim.wait_message("not attached to this buffer (see :checkhealth midfill)")
    assert neovim.lua(STATUSLINE) == ""


def test_off_and_on_everywhere_and_for_a_language(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n")
    for command, what in (("toggle", "all languages"), ("toggle language", "python")):
        neovim.type(f"<Esc>:Midfill {command}<CR>")
        neovim.wait_message(f"off for {what}")
        neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: off")
        neovim.type("ccx = ")
        neovim.wait_answer()
        assert neovim.ghost() is None
        neovim.type(f"<Esc>:Midfill {command}<CR>")
        neovim.wait_message(f"on for {what}")
        neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: ready")
        neovim.type("ccx = ")
        neovim.wait_ghost("1")


def test_the_state_for_status_lines(new_neovim: NewNeovim) -> None:
    loading = {"statuses": [{"state": "loading", "progress": {"done": 1, "total": 4}}]}
    neovim = new_neovim(loading, {"after": "x = ", "error": "no such tensor"}, text="\n")
    neovim.lua(COLLECT)
    neovim.lua("vim.lsp.get_clients()[1]:exec_cmd({ command = 'midfill.restart' })")
    neovim.wait(lambda: "midfill: loading 25%" in neovim.lua("return _G.seen"))
    neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: ready")
    neovim.type("ix = ")
    neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: warning")
    assert "midfill: busy" in neovim.lua("return _G.seen")
    assert "no such tensor" in neovim.lua("return vim.g.midfill_status.detail")
    neovim.type("<Esc>:messages clear | Midfill status<CR>")
    neovim.wait_message("the last request failed: no such tensor")


def test_why_in_full_and_statistics_are_pages(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1", "confidence": 0.75}, text="\n")
    neovim.type("ix = ")
    neovim.wait_ghost("1")
    neovim.type("<Esc>:Midfill why full<CR>")
    neovim.wait(lambda: re.search("confidence +0.75", "\n".join(neovim.lines())))
    neovim.type("q")
    neovim.wait_lines("x = ")
    neovim.type(":Midfill stats<CR>")
    neovim.wait(lambda: re.search("sent nowhere|nothing has been counted", "\n".join(neovim.lines())))
    neovim.type("q")
    neovim.wait_lines("x = ")


def test_logs_are_opened(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")

    def opened(name: str) -> bool:
        return re.search(name, neovim.nvim.current.buffer.name) is not None

    for command, name in (("log", r"/midfill/log/engine-.*\.log$"), ("log server", r"/lsp\.log$")):
        neovim.type(f":Midfill {command}<CR>")
        neovim.wait(partial(opened, name))


def test_a_model_is_chosen_for_this_neovim(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n")
    neovim.lua("""vim.ui.select = function(items, options, done)
      _G.asked = vim.tbl_map(options.format_item, items)
      done(vim.iter(items):find(function(item) return item.name == 'embedded' end))
    end""")
    neovim.type(":Midfill model<CR>")
    neovim.wait_message("embedded completes in this Neovim")
    assert any(line.startswith("* embedded: ready") for line in neovim.lua("return _G.asked"))
    assert neovim.lua("return vim.lsp.get_clients()[1].settings.midfill.model") == "embedded"
    neovim.type("ix = ")
    neovim.wait_ghost("1")


def test_a_restart_starts_another_server_and_ghost_text_comes_again(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n")
    before = neovim.servers()
    neovim.attached(lambda: neovim.type(":Midfill restart<CR>"))
    _, alive = psutil.wait_procs(before, timeout=SAFETY)
    assert not alive
    assert len(neovim.servers()) == 1
    neovim.type("ix = ")
    neovim.wait_ghost("1")


def test_a_server_that_is_killed_is_an_error_until_it_is_restarted(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", own=True)
    neovim.nvim.command("set cmdheight=4")  # Neovim tells of it in more than one line.
    for server in neovim.servers():
        server.kill()
    neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: error")
    assert "ERROR the server has ended by itself; :Midfill restart" in health(neovim)
    neovim.type(":bwipeout<CR>")
    neovim.attached(lambda: neovim.type(":Midfill restart<CR>"))
    neovim.wait(lambda: neovim.lua(STATUSLINE) == "midfill: ready")
    neovim.type("ix = ")
    neovim.wait_ghost("1")


def test_health_of_a_neovim_that_is_well(new_neovim: NewNeovim, version: str) -> None:
    report = health(new_neovim(text="\n"))
    assert "ERROR" not in report
    assert "WARNING" not in report
    assert version in report
    assert re.search(r"OK /.*/midfill: midfill \d", report)
    assert "OK running for 1 buffer" in report
    assert "<Tab> accept" in report


def test_health_where_the_program_is_missing(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n")
    neovim.lua("vim.lsp.config('midfill', { cmd = { '/nowhere/midfill', 'lsp' } })")
    report = health(neovim)
    assert "ERROR /nowhere/midfill cannot be run" in report
    assert "setup({ cmd = " in report
    neovim.type(":Midfill stats<CR>")
    neovim.wait_message("the program cannot be run (see :checkhealth midfill)")
