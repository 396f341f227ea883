"""Where the engine of a profile has its socket, lock and log, and whether the socket's folder can be trusted.

Every process of the user computes the same paths, so that all find the same engine; package and protocol version are
part of the names, so that two versions never meet. Where there are no Unix sockets (Windows), or where the environment
says MIDFILL_TRANSPORT=tcp, a file that only the user can read stands in the socket's place and names a port of
127.0.0.1 and its key. Knows no HTTP and starts nothing.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import re
import secrets
import socket
import stat
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from diffusion.api import DISTRIBUTION, PROTOCOL_VERSION, BadRequest, EngineError

RUNTIME_DIR_VARIABLE = "MIDFILL_RUNTIME_DIR"
TRANSPORT_VARIABLE = "MIDFILL_TRANSPORT"
TRANSPORTS = {"unix": ".sock", "tcp": ".tcp"}
"""How an engine is spoken to -> the end of the file's name by which it is met."""
SOCKET_PATH_LIMIT = 103
"""Bytes in a socket's address: 103 on macOS, 107 on Linux."""


@dataclass(frozen=True, kw_only=True)
class EnginePaths:
    """The files of one engine. `socket` is where it is met: a socket, or a file that names its port. `lock` is held by
    the engine as long as it lives; `key` holds the key of its port for other tools, once there is one."""

    socket: Path
    lock: Path
    key: Path
    log: Path


def engine_paths(profile: str) -> EnginePaths:
    """Raises BadRequest for names that are none, EngineError when no socket address is short enough."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", profile):
        raise BadRequest(f"not the name of a profile: {profile!r}", "for example: embedded")
    kind = transport()
    version = f"{importlib.metadata.version(DISTRIBUTION)}-p{PROTOCOL_VERSION}"
    stem = f"engine-{version}-{profile}" if kind == "unix" else f"engine-{version}+{kind}-{profile}"
    path = runtime_folder() / f"{stem}{TRANSPORTS[kind]}"
    if kind == "unix" and len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
        digest = hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        path = Path(tempfile.gettempdir()) / f"{DISTRIBUTION}-{os.getuid()}" / f"{digest}.sock"
        if len(os.fsencode(path)) > SOCKET_PATH_LIMIT:
            hint = f"set {RUNTIME_DIR_VARIABLE} to a folder of yours with a short path"
            raise EngineError(f"too long for the address of a socket: {path}", hint, "unavailable")
    log = platformdirs.user_log_path(DISTRIBUTION) / f"{stem}.log"
    return EnginePaths(socket=path, lock=path.with_suffix(".lock"), key=path.with_suffix(".key"), log=log)


def transport() -> str:
    """How the engine is spoken to. Raises BadRequest for a wish that cannot be met."""
    possible = [kind for kind in TRANSPORTS if kind == "tcp" or hasattr(socket, "AF_UNIX")]
    wanted = os.environ.get(TRANSPORT_VARIABLE) or ("tcp" if os.name == "nt" else "unix")
    if wanted not in possible:
        raise BadRequest(f"{TRANSPORT_VARIABLE} cannot be {wanted!r}", f"possible here: {', '.join(possible)}")
    return wanted


def runtime_folder() -> Path:
    """The user's folder for sockets, without making it. Raises EngineError."""
    try:
        if override := os.environ.get(RUNTIME_DIR_VARIABLE):
            return Path(override).absolute()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # often unset; the folder in its place is checked
            return platformdirs.user_runtime_path(DISTRIBUTION)
    except OSError as error:
        hint = f"set {RUNTIME_DIR_VARIABLE} to a folder of yours"
        raise EngineError(f"no folder for the engine's socket: {error}", hint, "unavailable") from error


def make_private(folder: Path) -> None:
    """Make a folder that only the user can enter. Raises EngineError when that is not possible."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        hint = f"make it writable, or set {RUNTIME_DIR_VARIABLE} to a folder of yours"
        raise EngineError(f"cannot make the folder {folder}: {error.strerror}", hint, "unavailable") from error
    check_private(folder)


def check_private(folder: Path) -> None:
    """Whether what lies in a folder is the user's own: else somebody else's socket would be read as ours.

    A folder that does not exist is in order. Raises EngineError.
    """
    try:
        found, above = folder.lstat(), folder.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        hint = f"set {RUNTIME_DIR_VARIABLE} to a folder of yours"
        raise EngineError(f"cannot look at {folder}: {error.strerror}", hint, "unavailable") from error
    private = stat.S_ISDIR(found.st_mode)
    if os.name == "posix":  # elsewhere the folders of a user are inherited as private
        mine = found.st_uid == os.getuid() and above.st_uid in (0, os.getuid())
        private = private and mine and not found.st_mode & 0o077
    if not private:
        hint = f"remove it, or set {RUNTIME_DIR_VARIABLE} to a folder that is yours alone (mode 0700)"
        raise EngineError(f"not a private folder: {folder}", hint, "unavailable")


def stored_key(file: Path) -> tuple[str, bool]:
    """The key in a file that only the user can read, and whether it has just been made. Raises EngineError."""
    make_private(file.parent)
    try:
        with contextlib.suppress(FileNotFoundError):
            if key := file.read_text(encoding="ascii").strip():
                return key, False
        key = secrets.token_urlsafe(32)
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as stored:
            stored.write(key)
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"no key can be kept in {file}: {error}", "remove that file", "unavailable") from error
    return key, True


def last_line(log: Path) -> str:
    """What a log says last, or nothing."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
