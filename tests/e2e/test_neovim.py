"""A real Neovim, a real `midfill lsp`, a scripted engine: type, see ghost text, accept it, read the buffer."""

from __future__ import annotations

import os
from pathlib import Path

import psutil
import pytest

from tests.editors.conftest import NewNeovim
from tests.editors.neovim import SAFETY

pytestmark = pytest.mark.slow


def test_the_rest_of_a_line(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "return a ", "fill": "+ b"}, text="def add(a, b):\n    \n")
    neovim.type("jAreturn a ")
    neovim.wait_ghost("+ b")
    neovim.wait(lambda: "    return a + b" in neovim.screen.rows())
    neovim.accept()
    assert neovim.lines() == ["def add(a, b):", "    return a + b"]
    assert neovim.ghost() is None
    neovim.type("!<Esc>")
    neovim.wait(lambda: neovim.lines()[1] == "    return a + b!")
    assert neovim.messages() == ""


def test_a_block_of_several_lines(new_neovim: NewNeovim) -> None:
    block = "for item in items:\n        total += item\n    return total"
    neovim = new_neovim({"after": "total = 0\n    ", "fill": block}, text="def add(items):\n    total = 0\n")
    neovim.type("Go")
    neovim.wait_ghost(block)
    neovim.wait(lambda: "        total += item" in neovim.screen.rows())
    assert neovim.lines()[2:] == ["    "]
    neovim.accept()
    assert neovim.lines()[2:] == ["    for item in items:", "        total += item", "    return total"]
    neovim.type(" + 1")
    neovim.wait(lambda: neovim.lines()[-1] == "    return total + 1")


def test_inside_closed_brackets_the_suffix_is_kept(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "max(", "fill": "a, b"}, text="value = ()[0]\n")
    neovim.type("fa0f(imax<Right>")
    neovim.wait_ghost("a, b")
    neovim.accept()
    assert neovim.lines() == ["value = max(a, b)[0]"]


def test_a_closer_that_the_text_brings_is_not_doubled(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "max(", "fill": "a, b)"}, text="value = max()\n")
    neovim.type("$i")
    neovim.wait(neovim.ghost)
    neovim.accept()
    assert neovim.lines() == ["value = max(a, b)"]


def test_a_dedent_rewrites_the_blanks_before_the_cursor(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(
        {"after": "total += item\n        ", "fill": "    return total", "replace_before": 8},
        text="def add(items):\n    for item in items:\n        total += item\n",
    )
    neovim.type("Go")
    neovim.wait(neovim.ghost)
    neovim.accept()
    assert neovim.lines()[3:] == ["    return total"]


def test_characters_outside_ascii_before_the_cursor(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": '"größe 𝔘 漢字", ', "fill": "α, β)"}, text='print("größe 𝔘 漢字", )\n')
    assert neovim.lua("return vim.lsp.get_clients()[1].offset_encoding") == "utf-8"
    neovim.type("$i")
    neovim.wait(neovim.ghost)
    neovim.accept()
    assert neovim.lines() == ['print("größe 𝔘 漢字", α, β)']


def test_a_file_with_crlf(new_neovim: NewNeovim, tmp_path: Path) -> None:
    neovim = new_neovim(
        {"after": "if a:\r\n        ", "fill": "b()\n        c()"}, text=b"def f(a):\r\n    if a:\r\n        d()\r\n"
    )
    assert neovim.nvim.current.buffer.options["fileformat"] == "dos"
    neovim.type("jo")
    neovim.wait_ghost("b()\n        c()")
    neovim.accept()
    neovim.type("<Esc>:w<CR>")
    file = tmp_path / "project/app.py"
    expected = b"def f(a):\r\n    if a:\r\n        b()\r\n        c()\r\n        d()\r\n"
    neovim.wait(lambda: file.read_bytes() == expected)


def test_typing_on_keeps_the_ghost_text_shortened(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "result = ", "fill": "compute(value)"}, text="result = \n")
    neovim.type("A")
    neovim.wait_ghost("compute(value)")
    for typed, rest in (("c", "ompute(value)"), ("omp", "ute(value)")):
        neovim.type(typed)
        neovim.wait_ghost(rest)
        neovim.wait_answer()  # The script has no second entry: this is what is left of the first answer.
        assert neovim.ghost() == rest
    neovim.accept()
    assert neovim.lines() == ["result = compute(value)"]


def test_typing_something_else_takes_the_ghost_text_away(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "result = ", "fill": "compute(value)"}, text="result = \n")
    neovim.type("A")
    neovim.wait_ghost("compute(value)")
    neovim.type("x")
    neovim.wait(lambda: neovim.ghost() is None)
    neovim.wait_answer()
    assert neovim.ghost() is None
    assert neovim.messages() == ""


def test_typing_on_while_the_engine_is_at_work(new_neovim: NewNeovim) -> None:
    neovim = new_neovim(
        {"after": "x = ", "fill": "slow", "delay_ms": 60_000}, {"after": "x = f", "fill": "ast()"}, text="\n"
    )
    neovim.type("ix = ")
    neovim.wait(lambda: "pending" in neovim.requests.values())
    neovim.type("f")
    neovim.wait_ghost("ast()")
    assert neovim.messages() == ""


def test_an_answer_that_comes_after_insert_mode_is_not_shown(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x =", "fill": " 1"}, {"after": "y = ", "fill": "2"}, text="\n")
    neovim.type("ix = <Esc>")  # The cursor is on the last blank now, and Neovim 0.12 asks all the same.
    neovim.wait(lambda: neovim.requests and "pending" not in neovim.requests.values())
    assert neovim.lua("return require('midfill').accept()") is False
    assert neovim.ghost() is None
    neovim.type("oy = ")
    neovim.wait_ghost("2")


def test_nothing_offered_is_silence(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "none": True}, {"after": "y = ", "fill": "2"}, text="\n")
    neovim.type("ix = ")
    neovim.wait_answer()
    assert neovim.ghost() is None
    neovim.type("<CR>y = ")
    neovim.wait_ghost("2")
    assert neovim.messages() == ""


def test_an_error_of_the_engine_is_told_once_and_the_next_request_works(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "error": "out of memory"}, {"after": "y = ", "fill": "2"}, text="\n")
    neovim.type("ix = ")
    neovim.wait_answer()
    neovim.type("<CR>x = ")
    neovim.wait_answer()
    neovim.type("<CR>y = ")
    neovim.wait_ghost("2")
    assert neovim.messages().count("out of memory") == 1


def test_undo_takes_back_exactly_what_was_accepted(new_neovim: NewNeovim) -> None:
    text = "def f(a):\n    if a:\n        d()\n"
    neovim = new_neovim({"after": "if a:\n        ", "fill": "b()\n        c()"}, text=text)
    neovim.type("jo")
    neovim.wait_ghost("b()\n        c()")
    typed = neovim.lines()
    neovim.accept()
    neovim.type("<Esc>u")
    neovim.wait(lambda: neovim.lines() == typed)
    neovim.type("u")
    neovim.wait(lambda: neovim.lines() == text.splitlines())
    neovim.type("<C-r><C-r>")
    neovim.wait(lambda: neovim.lines()[2:4] == ["        b()", "        c()"])


def test_a_workspace_with_packages_of_our_names_runs_no_code(new_neovim: NewNeovim, poisoned: Path) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1"}, text="\n", own=True)
    neovim.type("ix = ")
    neovim.wait_ghost("1")
    (server,) = neovim.servers()
    assert Path(server.cwd(), "diffusion", "api.py").exists()
    assert not poisoned.exists(), f"code of the workspace ran: {poisoned.read_text()}"


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL")
def test_the_server_ends_when_neovim_is_killed(new_neovim: NewNeovim) -> None:
    neovim = new_neovim({"after": "x = ", "fill": "1", "delay_ms": 60_000}, text="\n", own=True)
    neovim.type("ix = ")
    neovim.wait(lambda: "pending" in neovim.requests.values())
    servers = neovim.servers()
    assert len(servers) == 1
    neovim.kill()
    _, alive = psutil.wait_procs(servers, timeout=SAFETY)
    assert not alive
