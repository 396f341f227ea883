"""Runs one program of an evaluation: the script of the process that eval_sandbox.py starts, isolated and alone.

The order comes as JSON on standard input; the token in it is written to standard output if the program ends normally.
What is forbidden: network, processes, files outside the working directory, more time and memory than ordered. That
guards against accidents with what a model has written; it is no jail for somebody who wants to get out. Knows the
standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

FORBIDDEN = (
    "socket.", "subprocess.", "shutil.", "ctypes.", "pty.", "webbrowser.", "os.system", "os.exec", "os.fork",
    "os.posix_spawn", "os.spawn", "os.startfile", "os.kill", "os.chmod", "os.chown", "os.link", "os.symlink",
    "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.utime", "os.setxattr", "os.removexattr",
    "signal.pthread_kill", "winreg.", "_winapi.",
)  # fmt: skip
"""Beginnings of the names of audit events (the table stands in the library reference)."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
NEW_USER, NEW_NETWORK = 0x1000_0000, 0x4000_0000
"""CLONE_NEWUSER and CLONE_NEWNET of Linux."""
FILE_BYTES = 1 << 20


def main() -> None:
    """Read the order, take everything away, run the program."""
    order = json.load(sys.stdin)
    answer = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    _without_network()
    _limited(order["seconds"], order["megabytes"])
    sys.addaudithook(_guard(os.path.realpath(".")))
    exec(compile(order["program"], "<program>", "exec"), {"__name__": "__main__"})
    os.write(answer, order["token"].encode())
    os._exit(0)  # whatever threads it has started


def _without_network() -> None:
    """An empty network namespace, where the system lends one; the audit hook is there in any case."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes

        unshare = ctypes.CDLL(None).unshare
        if unshare(NEW_NETWORK):
            unshare(NEW_USER | NEW_NETWORK)


def _limited(seconds: int, megabytes: int) -> None:
    """Bounds that hold even if nobody is there any more to end this process."""
    if hasattr(signal, "alarm"):
        signal.alarm(seconds + 1)
    try:
        import resource
    except ImportError:  # Windows has none of these
        return
    memory = megabytes << 20
    bounds = {"AS": memory, "DATA": memory, "CPU": seconds + 1, "FSIZE": FILE_BYTES, "NPROC": 0, "CORE": 0}
    for name, bound in bounds.items():
        with contextlib.suppress(AttributeError, ValueError, OSError):  # not every system has them all
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (bound, bound))


def _guard(folder: str) -> Any:
    """An audit hook; it cannot be taken out again."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & WRITING and not isinstance(path, int):
                place = os.path.realpath(os.fsdecode(path))
                if not place.startswith(folder + os.sep):
                    raise PermissionError(f"{place} lies outside the working directory")
        elif event.startswith(FORBIDDEN):
            raise PermissionError(f"{event} is not allowed here")

    return hook


if __name__ == "__main__":
    main()
