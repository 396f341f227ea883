"""The engine process: one resident model, served until nobody needs it. Options, lock, log, end.

    python -I -m diffusion.server --socket PATH --profile NAME [--idle SECONDS] [--log FILE] [--foreground]
                                  [--listen 127.0.0.1:PORT --api-key-env NAME]

PATH is a Unix socket, or a file that tells a port and its key (see listening.py). It is bound before the model is
loaded, so that `loading` can be answered. The process keeps an exclusive lock beside it while it lives; a second one
for the same path ends at once and quietly. A model that cannot be loaded leaves a process that says why. Code is never
written to the log. What is served stands in routes.py.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import logging.handlers
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from diffusion.api import EngineError, Progress
from diffusion.http_server import allow_many_clients
from diffusion.listening import listening
from diffusion.model_files import lack_of_memory_told
from diffusion.profiles import backend_of
from diffusion.routes import VERSION, EngineServer, Load, Options
from diffusion.scheduler import ModelEngine

log = logging.getLogger("midfill.engine")


def serve(options: Options, load: Load) -> int:
    """Run an engine until it ends; the exit code. Another engine on the same socket: 0 at once, nothing is done.

    Raises EngineError when the socket cannot be had.
    """
    _start_log(options)
    with listening(options.socket) as listener:
        if listener is None:
            log.info("another engine serves %s", options.socket)
            return 0
        allow_many_clients()
        log.info("version %s, pid %d, profile %s", VERSION, os.getpid(), options.profile)
        asyncio.run(EngineServer(options, load).serve(listener))
    log.info("stopped")
    return 0


def _start_log(options: Options) -> None:
    """To the file, rotated, and in the foreground to the terminal. No file, no log: that must not stop an engine."""
    handlers: list[logging.Handler] = [logging.StreamHandler()] if options.foreground else []
    if options.log:
        with contextlib.suppress(OSError):
            options.log.parent.mkdir(parents=True, exist_ok=True)
            handlers.append(logging.handlers.RotatingFileHandler(options.log, maxBytes=1_000_000, backupCount=2))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=handlers)
    logging.raiseExceptions = False  # a full disk
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of every client that goes away
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # it logs messages of exceptions, which may quote code


def parse_options(argv: Sequence[str] | None) -> Options:
    parser = argparse.ArgumentParser(prog="python -I -m diffusion.server", description="The engine process of midfill.")
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--profile", required=True)
    parser.add_argument("--idle", type=float, default=300.0, help="seconds without a client until it ends; 0: never")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--foreground", action="store_true", help="log to the terminal as well")
    parser.add_argument("--listen", default="", metavar="127.0.0.1:PORT", help="open a port for other tools")
    parser.add_argument("--api-key-env", default="", metavar="NAME", help="environment variable with the port's key")
    return Options(**vars(parser.parse_args(argv)))


def main(argv: Sequence[str] | None = None, load: Load | None = None) -> int:
    """The process: options, then an engine until it ends. `load` stands in for the real model in tests."""
    options = parse_options(argv)
    try:
        return serve(options, load or _load)
    except EngineError as error:
        print(f"{error.message}: {error.hint}", file=sys.stderr)
        return 1


def _load(profile: str, on_progress: Callable[[Progress], None]) -> ModelEngine:
    if backend_of(profile) != "resident":
        from diffusion.remote import engine as remote

        return remote.load(profile)
    with lack_of_memory_told(profile):
        from diffusion import engine  # seconds of torch, after the socket answers

        return engine.load(profile, on_progress)


def leave(code: int) -> NoReturn:
    """End now: an ordinary exit would wait for the model's thread, which may be loading for a long time."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    leave(main())
