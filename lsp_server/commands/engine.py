"""`midfill engine start|status|stop`: the process that holds the model, seen from the command line.

Knows the engine client; nothing of models and requests.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console

from diffusion.api import Status, to_json
from lsp_server.chosen_model import chosen_model
from lsp_server.commands import render
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import EnginePaths, make_private, stored_key
from lsp_server.engine_start import engine_command
from lsp_server.usage import Parser, UsageError

KEY_VARIABLE = "MIDFILL_API_KEY"
"""Where a foreground engine finds its key."""

EPILOG = """\
examples:
  midfill engine start                 load the model now, so that the first completion is fast
  midfill engine status                what it is doing, how much memory it takes, where its log is
  midfill engine stop                  free the memory; the next completion starts it again
  midfill engine start --foreground    run it in this terminal with its log (end with Ctrl-C)
  midfill engine start --listen 127.0.0.1:8012
                                       let other completion plug-ins use it as well: http://127.0.0.1:8012 speaks
                                       /v1/completions (OpenAI) and /infill (llama.cpp), with the key it prints

You need none of these: editors start the engine when they need it, and it ends when nobody has used it for a while.
"""


def main(argv: Sequence[str]) -> int:
    """Run one of the three. Raises UsageError, EngineError."""
    arguments = _parser().parse_args(argv)
    if arguments.action == "start" and arguments.api_key_env and not arguments.listen:
        raise UsageError("--api-key-env needs --listen", "--listen 127.0.0.1:8012")
    out, err = render.consoles()
    if arguments.action == "start":
        return _start(arguments, out, err)
    if arguments.action == "status":
        return asyncio.run(_status(arguments.profile, arguments.json, out))
    return asyncio.run(_stop(arguments.profile, out))


def _start(arguments: argparse.Namespace, out: Console, err: Console) -> int:
    client = EngineClient(arguments.profile, idle=arguments.idle)
    key, said = _key(arguments, client.paths) if arguments.listen else ("", "")
    if arguments.foreground:
        _become_engine(arguments, client.paths, key, said, err)

    async def start() -> tuple[Status, str]:
        if (running := await client.running()) and running.state == "errored":
            await client.stop()  # what kept it from loading may have been put right
        if arguments.listen:
            await client.listen(arguments.listen, key)
        with err.status("starting the engine") as shown:
            try:
                await client.wait_ready(lambda status: shown.update(render.loading_line(status)))
                return await client.status(), await client.listening()
            finally:
                await client.close()

    _print_status(*asyncio.run(start()), client.paths, out)
    if said:
        out.print(f"{'key':<8} {said}")
    return 0


def _become_engine(arguments: argparse.Namespace, paths: EnginePaths, key: str, said: str, err: Console) -> None:
    """Turn this process into the engine. The key goes along in the environment, which other users cannot read."""
    make_private(paths.socket.parent)
    os.chdir(paths.socket.parent)
    command = [*engine_command(paths, arguments.profile, arguments.idle), "--foreground"]
    if key:
        err.print(f"key: {said}")
        os.environ[KEY_VARIABLE] = key
        command += ["--listen", arguments.listen, "--api-key-env", KEY_VARIABLE]
    if os.name == "nt":  # where exec would give the terminal back at once
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def _key(arguments: argparse.Namespace, paths: EnginePaths) -> tuple[str, str]:
    """The key of the port for other tools and what to say about it. Raises UsageError, EngineError."""
    name = arguments.api_key_env
    if name:
        if not (key := os.environ.get(name, "")):
            raise UsageError(
                f"the environment variable {name} is empty", "put the key into it, or leave out --api-key-env"
            )
        return key, f"the one in {name}"
    key, new = stored_key(paths.key)
    return key, f"{key} (shown this once; it stays in {paths.key})" if new else f"the one in {paths.key}"


async def _status(profile: str, as_json: bool, out: Console) -> int:
    """Exit code 0: an engine runs; 1: none does, or its model could not be loaded."""
    client = EngineClient(profile)
    status = await client.running()
    address = await client.listening() if status else ""
    if as_json:
        log = str(client.paths.log)
        said = to_json(status or Status(state="stopped", model=profile, log=log))
        print(json.dumps({**said, "socket": str(client.paths.socket), "listening": address}))
    elif status:
        _print_status(status, address, client.paths, out)
    else:
        out.print(f"no engine is running for the profile {profile}; it starts when it is needed")
    return 0 if status and status.state != "errored" else 1


async def _stop(profile: str, out: Console) -> int:
    client = EngineClient(profile, start=False)
    status = await client.running()
    if status is None:
        out.print(f"no engine is running for the profile {profile}")
        return 0
    try:
        await client.stop()
    finally:
        await client.close()
    out.print(f"stopped (process {status.pid})")
    return 0


def _print_status(status: Status, address: str, paths: EnginePaths, out: Console) -> None:
    progress = f", {status.progress.done} of {status.progress.total}" if status.progress else ""
    lines = {
        "state": status.state + progress + (f": {status.detail}" if status.detail else ""),
        "model": status.model + (f" on {status.device}" if status.device else ""),
        "process": f"{status.pid}, up {status.uptime:.0f} s, {status.memory / 1e6:.0f} MB",
        "clients": f"{status.clients}, {status.requests} requests so far",
        "ends": f"after {status.idle:.0f} s without clients" if status.idle else "when it is told to",
        "version": f"{status.version}, protocol {status.protocol}",
        "log": status.log or "none: its folder cannot be written",
        "socket": str(paths.socket),
        "port": f"http://{address} for other tools" if address else "none open for other tools",
    }
    for name, value in lines.items():
        out.print(f"{name:<8} {value}")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill engine",
        description="The process that holds the model, one for all editor windows.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="start|status|stop")
    start = actions.add_parser("start", help="start it and wait until the model is loaded")
    start.add_argument("--foreground", action="store_true", help="run in this terminal and show the log")
    start.add_argument(
        "--idle", type=_seconds, metavar="SECONDS", help="end when unused for so long (0: never; at first 300)"
    )
    start.add_argument("--listen", metavar="127.0.0.1:PORT", help="open a port for other tools; it runs until stopped")
    start.add_argument(
        "--api-key-env", metavar="NAME", help="the port's key is in this variable (default: a random one)"
    )
    status = actions.add_parser("status", help="show what it is doing")
    status.add_argument("--json", action="store_true", help="print one JSON object instead")
    stop = actions.add_parser("stop", help="end it, after the request that runs")
    for action in (start, status, stop):
        action.add_argument("--profile", default=chosen_model(), help="model profile (default: %(default)s)")
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 1e8:
        raise argparse.ArgumentTypeError(f"a number of seconds is needed, not {text!r}")
    return seconds
