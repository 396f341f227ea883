"""A Unix socket that one process at a time listens on and only its user can open. Knows nothing of what is served."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from diffusion.api import EngineError


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket | None]:
    """The listening socket at `path`, or None if another process has it. An exclusive lock beside it is held meanwhile,
    so a socket file that is found is a dead process's. Raises EngineError when the socket cannot be had."""
    with contextlib.ExitStack() as stack:
        try:
            _check_folder(path.parent)
            lock = filelock.FileLock(path.with_suffix(".lock"), timeout=0, mode=0o600)
            stack.enter_context(lock.acquire())
            listener = stack.enter_context(_bound(path))
        except filelock.Timeout:
            listener = None
        except OSError as error:
            hint = "set MIDFILL_RUNTIME_DIR to a folder of yours with a short path"
            raise EngineError(f"no socket at {path}: {error.strerror or error}", hint, "unavailable") from error
        yield listener


def _check_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        hint = "it must be yours alone (mode 0700)"
        raise EngineError(f"the folder {folder} can be entered by others", hint, "unavailable")


@contextlib.contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(128)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)
