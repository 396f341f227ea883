"""How a subcommand says that it was called wrongly: one line that says what to do. Knows no subcommand."""

from __future__ import annotations

import argparse
from typing import NoReturn


class UsageError(Exception):
    """The command line itself is wrong. `message` says what, `hint` what to do about it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Parser(argparse.ArgumentParser):
    """argparse, but a wrong argument raises UsageError, so that every command reports it alike."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=f"see `{self.prog} --help`")
