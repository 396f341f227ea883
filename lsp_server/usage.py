"""How a subcommand says that it was called wrongly: one line that says what to do. Knows no subcommand."""

from __future__ import annotations

import argparse
from collections.abc import Callable
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


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """The `type` of an argument that is a whole number within bounds."""

    def parse(text: str) -> int:
        if not text.isdecimal() or len(text) > 20 or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"a whole number from {low} to {high} is needed, not {text!r}")
        return int(text)

    return parse
