"""Editors that have no client of ours, each with the configuration that editors/README.md gives, in a terminal.

Knows how each is installed, started and driven by keys, and the README's code blocks. Tests say what is to come of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from .terminal import SAFETY, Terminal

README = Path(__file__).parents[2] / "editors" / "README.md"
ESCAPE, CONTROL_N, CONTROL_Q, CONTROL_S, CONTROL_X, CONTROL_Y = "\x1b", "\x0e", "\x11", "\x13", "\x18", "\x19"
QUIET_EMACS = """
(setq inhibit-startup-screen t make-backup-files nil create-lockfiles nil auto-save-default nil)
(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil)
"""


def snippet(section: str, language: str, number: int = 0) -> str:
    """A code block of a section of the README: what a user copies."""
    parts = README.read_text(encoding="utf-8").split(f"\n### {section}\n")
    assert len(parts) == 2, f"editors/README.md has no section {section!r}"
    text = re.split(r"\n##+ ", parts[1])[0]
    blocks: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return blocks[number]


@dataclass(kw_only=True)
class Editor:
    """A running editor with one file open. `program` is what to look for, `hint` how to get it; `no_completion` and
    `no_lines` say why completions, or those of several lines, cannot be tested."""

    program = ""
    hint = ""
    no_completion, no_lines = "", ""
    terminal: Terminal
    file: Path
    sent_to_server: Path
    answered: bool = False

    @classmethod
    def missing(cls) -> str:
        """Why it cannot be tested here, or nothing."""
        return "" if shutil.which(cls.program) else f"{cls.program} is not installed: {cls.hint}"

    @classmethod
    def configure(cls, home: Path) -> None:
        """Write the configuration into the home folder."""
        raise NotImplementedError

    @classmethod
    def command(cls, file: Path, line: int, column: int) -> list[str]:
        """To edit a file with the cursor at a place, both from 1, in characters."""
        raise NotImplementedError

    def ready(self) -> None:
        """Wait until the server knows the file."""
        self.terminal.wait(lambda: self.has_sent("textDocument/didOpen"))

    def has_sent(self, method: str) -> bool:
        return self.sent_to_server.exists() and f'"{method}"' in self.sent_to_server.read_text("utf-8", "replace")

    def complete(self, typed: str, label: str) -> None:
        """Type, wait until the completion is offered, take it."""
        raise NotImplementedError

    def act(self, title: str) -> None:
        """Select the line of the cursor and choose a code action."""
        raise NotImplementedError

    def answer(self) -> None:
        """Agree, should the editor ask whether to make a change."""

    def save(self) -> None:
        raise NotImplementedError

    def quit(self) -> None:
        """As a user does, after saving."""
        raise NotImplementedError

    def wait_saved(self, text: str) -> None:
        """Wait until the lines are on the screen, then save, and wait until the file holds exactly the text."""

        def shown() -> bool:
            self.answer()
            return all(self.terminal.shows(line) for line in text.splitlines())

        self.terminal.wait(shown)
        self.save()
        with contextlib.suppress(AssertionError):
            self.terminal.wait(lambda: self.saved() == text)
        assert self.saved() == text, self.terminal.rows()

    def saved(self) -> str:
        """What the file holds; nothing while the editor puts a new one in its place."""
        with contextlib.suppress(FileNotFoundError):
            return self.file.read_text(encoding="utf-8")
        return ""


class Helix(Editor):
    program = "hx"
    hint = "Debian 13 and newer have it as the package hx"

    @classmethod
    def configure(cls, home: Path) -> None:
        (home / ".config" / "helix").mkdir(parents=True)
        (home / ".config" / "helix" / "languages.toml").write_text(snippet("Helix", "toml"))

    @classmethod
    def command(cls, file: Path, line: int, column: int) -> list[str]:
        return [cls.program, f"{file}:{line}:{column}"]

    def complete(self, typed: str, label: str) -> None:
        self.terminal.send("i")
        self.terminal.wait_for(" INS ")
        self.terminal.send(typed)
        self.terminal.wait(lambda: re.search(rf"{re.escape(label)}( …)? text", "\n".join(self.terminal.rows())))
        self.terminal.send("\t")
        self.terminal.wait_for(" midfill")
        self.terminal.send("\r")
        self.terminal.wait(lambda: not self.terminal.shows(" midfill"))
        self.terminal.send(ESCAPE)
        self.terminal.wait_for(" NOR ")

    def act(self, title: str) -> None:
        self.terminal.send("x a")
        self.terminal.wait_for(title)
        choices = [row for row in self.terminal.rows() if "midfill: " in row]
        self.terminal.send("\t" * next(at for at, row in enumerate(choices, start=1) if title in row) + "\r")

    def save(self) -> None:
        self.terminal.send(":w\r")

    def quit(self) -> None:
        self.terminal.send(":wq!\r")


class Emacs(Editor):
    program = "emacs"
    hint = "apt-get install emacs-nox elpa-eglot"
    number = 0
    action_command = "eglot-code-actions"

    @classmethod
    def missing(cls) -> str:
        library = cls.action_command.partition("-")[0].replace("lsp", "lsp-mode")
        probe = [cls.program, "--batch", "--eval", f"(progn (package-initialize) (require '{library}))"]
        there = not super().missing() and not subprocess.run(probe, capture_output=True, check=False).returncode
        return "" if there else f"{cls.program} with {library} is not installed: {cls.hint}"

    @classmethod
    def version(cls) -> int:
        said = subprocess.run([cls.program, "--version"], capture_output=True, text=True, check=True).stdout
        return int(said.removeprefix("GNU Emacs ").partition(".")[0])

    @classmethod
    def configure(cls, home: Path) -> None:
        (home / ".emacs.d").mkdir()
        (home / ".emacs.d" / "early-init.el").write_text(QUIET_EMACS)
        (home / ".emacs.d" / "init.el").write_text(snippet("Emacs", "elisp", cls.number))

    @classmethod
    def command(cls, file: Path, line: int, column: int) -> list[str]:
        go = f"(progn (goto-char 1) (forward-line {line - 1}) (forward-char {column - 1}))"
        return [cls.program, "-nw", str(file), "--eval", go]

    def complete(self, typed: str, label: str) -> None:
        self.terminal.send(typed)
        self.terminal.send(f"{ESCAPE}\t")  # The only candidate is inserted at once.
        self.terminal.wait_for(label)

    def act(self, title: str) -> None:
        self.terminal.send(f"\x00{CONTROL_N}{ESCAPE}x{self.action_command}\r")
        self.terminal.wait(lambda: self.terminal.shows("Pick an action") or self.terminal.shows("Select code action"))
        self.terminal.send(title.replace(" ", f"{CONTROL_Q} ") + "\r")

    def answer(self) -> None:
        if not self.answered and self.terminal.shows("Proceed? (y or n)"):
            self.terminal.send("y")
            self.answered = True

    def save(self) -> None:
        self.terminal.send(CONTROL_X + CONTROL_S)

    def quit(self) -> None:
        self.terminal.send(f"{CONTROL_X}{CONTROL_S}{CONTROL_X}\x03")


class LspMode(Emacs):
    hint = "apt-get install emacs-nox elpa-lsp-mode"
    no_completion = "lsp-mode's completion-at-point answers or not as it happens, and inserts labels"
    number = 1
    action_command = "lsp-execute-code-action"

    def ready(self) -> None:
        self.terminal.wait_for("Import project root")
        self.terminal.send("i")
        super().ready()
        self.terminal.wait_for("initialized successfully")


class VimAle(Editor):
    no_lines = "ALE takes one line only"
    program = "vim"
    hint = "apt-get install vim-nox vim-ale"

    @classmethod
    def missing(cls) -> str:
        there = shutil.which(cls.program) and Path("/usr/share/vim-ale").is_dir()
        return "" if there else f"Vim with ALE is not installed: {cls.hint}"

    @classmethod
    def configure(cls, home: Path) -> None:
        start = "set nocompatible noswapfile virtualedit=onemore\nset runtimepath+=/usr/share/vim-ale\nfiletype on\n"
        (home / ".vimrc").write_text(start + snippet("Vim with ALE", "vim"))

    @classmethod
    def command(cls, file: Path, line: int, column: int) -> list[str]:
        return [cls.program, "-c", f"call setcursorcharpos({line}, {column})", str(file)]

    def complete(self, typed: str, label: str) -> None:
        self.terminal.send("i")
        self.terminal.wait_for("INSERT")
        self.terminal.send(typed)
        self.terminal.wait_for(" midfill")
        self.terminal.send(CONTROL_N + CONTROL_Y)
        self.terminal.wait(lambda: not self.terminal.shows(" midfill"))
        self.terminal.send(ESCAPE)
        self.terminal.wait(lambda: not self.terminal.shows("INSERT"))

    def act(self, title: str) -> None:
        self.terminal.send("V:ALECodeAction\r")
        self.terminal.wait_for("Type number and <Enter>")
        row = next(row for row in self.terminal.rows() if title in row)
        self.terminal.send(row.strip().partition(")")[0] + "\r")

    def save(self) -> None:
        self.terminal.send(":w\r")

    def quit(self) -> None:
        self.terminal.send(":wq\r")


@contextlib.contextmanager
def opened(kind: type[Editor], folder: Path, text: str, *entries: dict[str, Any]) -> Iterator[Editor]:
    """An editor with project/app.py open, which holds `text` without its cursor mark │, and the cursor there. Its
    server answers with the entries."""
    home, project, programs = folder / "home", folder / "project", folder / "bin"
    for each in (home, project, programs):
        each.mkdir()
    kind.configure(home)
    (home / ".config" / "midfill").mkdir(parents=True)
    # Where other tests run too, an answer may take longer than a user waits for it.
    (home / ".config" / "midfill" / "config.toml").write_text("deadlineMs = 60000\n")
    before, _, behind = text.partition("│")
    file = project / "app.py"
    file.write_text(before + behind, encoding="utf-8")
    (folder / "script.json").write_text(json.dumps(entries))
    midfill = programs / "midfill"
    real = shutil.which("midfill", path=Path(sys.executable).parent)
    sent = folder / "sent"
    midfill.write_text(f"#!/bin/sh\ntee '{sent}' | '{real}' \"$@\" --engine 'scripted:{folder / 'script.json'}'\n")
    midfill.chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "EMACS", "VIM"))}
    env |= {"HOME": str(home), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1
    with Terminal(kind.command(file, line, column), cwd=project, env=env) as terminal:
        editor = kind(terminal=terminal, file=file, sent_to_server=sent)
        editor.ready()
        try:
            yield editor
        except AssertionError as error:
            error.add_note(f"the last that it sent: {sent.read_text('utf-8', 'replace')[-2000:]}")
            raise


def ended(processes: list[psutil.Process]) -> bool:
    """Wait until all of them have ended; whether they have."""
    _, alive = psutil.wait_procs(processes, timeout=SAFETY)
    return not alive
