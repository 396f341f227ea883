"""Neovim, `midfill lsp` as users start it, the real engine process and the embedded model with the weights that ship.

What the model says is not judged here: an answer must arrive, fit, and leave no trace of trouble.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from lsp_server.engine_client import EngineClient
from tests.editors.conftest import NewNeovim

pytestmark = pytest.mark.slow

PATTERN = """\
def get_name(self):
    return self.name


def get_size(self):
    return self.size


"""
EASY_PLACES = (
    "def get_color(self):<CR>return self.",
    "<CR>if __name__ == ",
    "<CR>def get_width(self):<CR>return ",
    "<CR>for index in range(",
)

once = pytest.mark.parametrize("version", ["0.12"], indirect=True)
"""With one version of Neovim: the other does the same, and every engine takes its time."""

WHY = "return vim.lsp.get_clients()[1]:request_sync('midfill/why', vim.empty_dict()).result"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineClient]:
    """The engine of this test alone, started by the language server and killed afterwards."""
    monkeypatch.setenv("MIDFILL_RUNTIME_DIR", str(tmp_path / "run"))
    client = EngineClient(start=False)
    yield client
    for process in psutil.process_iter(["cmdline"]):
        if str(client.paths.socket) in (process.info["cmdline"] or ()):
            process.kill()


def test_the_embedded_model_completes_in_neovim(engine: EngineClient, new_neovim: NewNeovim, poisoned: Path) -> None:
    neovim = new_neovim(text=PATTERN, engine="auto", settings={"minConfidence": 0, "deadlineMs": 20_000})
    neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
    neovim.type("Go")
    for keys in EASY_PLACES:
        neovim.type(keys)
        neovim.wait_answer()
        ghost = neovim.ghost()
        decision = neovim.lua(WHY)["decisions"][0]
        assert decision["outcome"] == ("shown" if ghost else "nothing"), decision
        if ghost:
            neovim.accept()
            assert "\n".join(neovim.lines()).endswith(ghost)
            break
    assert neovim.messages() == ""
    status = asyncio.run(engine.status())
    assert (status.model, status.clients) == ("embedded", 1)
    assert status.requests > 0
    assert not poisoned.exists(), f"code of the workspace ran: {poisoned.read_text()}"


@once
def test_the_engine_can_be_stopped_while_an_editor_is_open(engine: EngineClient, new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text="\n", engine="auto")
    neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
    asyncio.run(engine.stop())
    neovim.wait(lambda: neovim.lua("return vim.g.midfill_status.state") == "stopped")
    assert neovim.messages() == ""


@once
def test_29_the_embedded_model_cannot_edit_and_fills_instead(engine: EngineClient, new_neovim: NewNeovim) -> None:
    neovim = new_neovim(text=PATTERN, engine="auto")
    neovim.lua("vim.ui.select = function(items, options, done) _G.asked = options.prompt; done(items[1]) end")
    neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
    neovim.type(":2Midfill edit call it something else<CR>")
    neovim.wait(lambda: neovim.lua("return _G.asked"))
    asked = neovim.lua("return _G.asked")
    assert "takes no instructions" in asked
    assert "diffusiongemma" in asked
    neovim.wait(lambda: neovim.edits[-1:] in (["proposed"], ["ended"]) and neovim.edits.count("asking") == 2)
    (filled, edited) = neovim.lua(WHY)["decisions"][:2]
    assert (filled["outcome"] == "shown") == (neovim.edits[-1] == "proposed"), filled
    assert edited["outcome"] == "failed"
    if neovim.edits[-1] == "proposed":
        before = neovim.lines()
        neovim.type(":Midfill accept<CR>")
        neovim.wait(lambda: neovim.lines() != before)
        assert neovim.lines()[:1] + neovim.lines()[2:] == before[:1] + before[2:]


@once
def test_16_an_engine_that_is_killed_in_the_middle_of_an_edit(engine: EngineClient, new_neovim: NewNeovim) -> None:
    """Neovim goes on, with one line said; the next request starts an engine."""
    neovim = new_neovim(text=PATTERN, engine="auto")
    neovim.wait(lambda: neovim.lua("return (vim.g.midfill_status or {}).state") == "ready")
    process = psutil.Process(asyncio.run(engine.status()).pid)
    neovim.type(":2Midfill fill<CR>")
    neovim.wait(lambda: "asking" in neovim.edits)
    process.kill()
    neovim.wait(lambda: neovim.edits[-1] in ("proposed", "ended"))
    assert neovim.nvim.api.get_mode()["blocking"] is False
    neovim.type(":2Midfill fill<CR>")
    neovim.wait(lambda: neovim.edits.count("asking") == 1 and neovim.edits[-1] in ("proposed", "ended"))
    assert neovim.lua(WHY)["decisions"][0]["source"] == "engine"
