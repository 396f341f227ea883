"""Sockets to listen on: a Unix one that one process at a time has and only its user can open, and a port of 127.0.0.1.

Knows nothing of what is served.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import filelock

from diffusion import crashes
from diffusion.api import BadRequest, EngineError


@contextlib.contextmanager
def listening(path: Path) -> Iterator[socket.socket | None]:
    """The listening socket at `path`, or None if another process has it. An exclusive lock beside it is held meanwhile,
    so a socket file that is found is a dead process's, and counted as a crash. Raises EngineError when there can be no
    socket."""
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


def on_loopback(address: str) -> socket.socket:
    """The listening socket for "127.0.0.1:PORT" (0: any free port). Raises EngineError: no other host is ever bound."""
    host, _, number = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost") or not (number.isascii() and number.isdigit() and int(number) < 65536):
        raise BadRequest(f"cannot listen on {address!r}", "only on this machine itself: 127.0.0.1:PORT")
    listener = socket.socket(socket.AF_INET)
    try:
        if os.name == "posix":  # elsewhere the option would let two programs have the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", int(number)))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise EngineError(
            f"cannot listen on {address}: {error.strerror}", "choose another port", "unavailable"
        ) from error
    return listener


def _check_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        hint = "it must be yours alone (mode 0700)"
        raise EngineError(f"the folder {folder} can be entered by others", hint, "unavailable")


@contextlib.contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    if path.exists():
        crashes.note(path)
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
        except EngineError:
            path.unlink(missing_ok=True)
            raise
        path.unlink(missing_ok=True)  # not after an error that nobody foresaw: that is a crash
        crashes.forget(path)
