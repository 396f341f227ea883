"""Sockets to listen on: one for the user's own processes, which one engine at a time has, and ports of 127.0.0.1.

The former is a Unix socket in a folder of the user's. Where the path ends in ".tcp" it is a free port of 127.0.0.1, and
the file at the path is JSON, {port, key, pid}, that only the user can read: who knows the key may ask.
Knows nothing of what is served.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import filelock

from diffusion import crashes
from diffusion.api import BadRequest, EngineError


@dataclass(frozen=True, kw_only=True)
class Listener:
    """A socket that listens, and the key that clients must have, or "" where the file system lets no one else in."""

    socket: socket.socket
    key: str = ""

    @property
    def port(self) -> int:
        """The port's number; only where there is a key."""
        return int(self.socket.getsockname()[1])


@contextlib.contextmanager
def listening(path: Path) -> Iterator[Listener | None]:
    """What listens at `path`, or None if another process does. An exclusive lock beside it is held meanwhile, so a file
    that is found there is a dead process's, and counted as a crash. Raises EngineError when nothing can listen there.
    """
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
    # asyncio switches Nagle's delay off, 40 ms an answer, only where the protocol is named.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
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
    if os.name == "posix" and (found.st_uid != os.getuid() or found.st_mode & 0o077):
        hint = "it must be yours alone (mode 0700)"
        raise EngineError(f"the folder {folder} can be entered by others", hint, "unavailable")


@contextlib.contextmanager
def _bound(path: Path) -> Iterator[Listener]:
    if path.exists():
        crashes.note(path)
    path.unlink(missing_ok=True)
    listener = _port(path) if path.suffix == ".tcp" else _unix(path)
    with listener.socket:
        try:
            yield listener
        except EngineError:
            path.unlink(missing_ok=True)
            raise
        path.unlink(missing_ok=True)  # not after an error that nobody foresaw: that is a crash
        crashes.forget(path)


def _unix(path: Path) -> Listener:
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.listen(128)
    return Listener(socket=listener)


def _port(path: Path) -> Listener:
    """The file appears at once and whole, when the port can be asked."""
    listener = Listener(socket=on_loopback("127.0.0.1:0"), key=secrets.token_urlsafe(32))
    draft = path.with_suffix(f".{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as file:
            json.dump({"port": listener.port, "key": listener.key, "pid": os.getpid()}, file)
        draft.replace(path)
    except OSError:
        listener.socket.close()
        draft.unlink(missing_ok=True)
        raise
    return listener
