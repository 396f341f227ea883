"""`midfill doctor`: what is installed and where everything is, each with ok, warn or fail and what to do.

Starts no engine and loads no model; torch is looked at in a child process. Knows nothing of requests.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import platformdirs
from rich.console import Console
from rich.text import Text

from diffusion.api import DISTRIBUTION, PROTOCOL_VERSION, EngineError
from grammars.languages import grammar, languages
from lsp_server.chosen_model import chosen_model
from lsp_server.commands import render
from lsp_server.config_file import ConfigFile
from lsp_server.engine_client import EngineClient
from lsp_server.engine_paths import RUNTIME_DIR_VARIABLE, EnginePaths, engine_paths, last_line, make_private
from lsp_server.settings import Settings, read
from lsp_server.usage import Parser, UsageError, whole_number

Verdict = Literal["ok", "warn", "fail"]
STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
CHILD_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Check:
    """One line of the report. `hint` says what to do unless all is well."""

    name: str
    verdict: Verdict = "ok"
    value: str
    hint: str = ""


def main(argv: Sequence[str]) -> int:
    """Print the report; 1 if a check failed. Raises UsageError."""
    arguments = _parser().parse_args(argv)
    out, err = render.consoles()
    if arguments.model:
        return _plan(arguments, out)
    if arguments.vram or arguments.tokens:
        raise UsageError("--vram and --tokens need --model", "--model diffusiongemma --vram 24GB")
    with err.status("looking at torch and the model"):
        checks = list(_checks(arguments.profile))
    failed = any(check.verdict == "fail" for check in checks)
    if arguments.json:
        print(json.dumps({"ok": not failed, "checks": [asdict(check) for check in checks]}))
        return int(failed)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = Text.assemble((f"{check.verdict:<5}", STYLES[check.verdict]), f"{check.name:<{width}}  ", check.value)
        out.print(line)
        if check.hint:
            out.print(f"{'':<{5 + width}}  -> {check.hint}")
    out.print("something is wrong: see above" if failed else "all is well", style="bold")
    return int(failed)


def _plan(arguments: argparse.Namespace, out: Console) -> int:
    """How much memory a model would take and of what; 1 if that is more than there is."""
    plan = _child("diffusion.plan_report", arguments.model, str(arguments.vram), str(arguments.tokens))
    if "error" in plan:
        raise EngineError(plan["error"], plan["hint"])
    if arguments.json:
        print(json.dumps(plan))
        return int(not plan["fits"])
    width = max((len(what) for what, _ in plan["lines"]), default=0)
    for what, much in plan["lines"]:
        out.print(f"{what:<{width}}  {much:>10}")
    if plan["fits"]:
        out.print(f"{arguments.model} fits", style="bold")
        return 0
    out.print(plan["message"], style="bold red")
    for alternative in plan["hint"].split("; "):
        out.print(f"  -> {alternative}")
    return 1


def _checks(profile: str) -> Iterator[Check]:
    yield Check(name=DISTRIBUTION, value=f"{_version(DISTRIBUTION)}, protocol {PROTOCOL_VERSION}")
    yield Check(name="python", value=f"{platform.python_version()} ({sys.executable}) on {platform.platform()}")
    yield _packages()
    yield from _grammars()
    yield from _model(profile)
    try:
        yield from _engine(engine_paths(profile), profile)
    except EngineError as error:
        yield Check(name="runtime folder", verdict="fail", value=error.message, hint=error.hint)
    yield _settings()
    yield Check(name="state folder", value=str(platformdirs.user_state_path(DISTRIBUTION)))
    yield Check(name="own profiles", value=str(platformdirs.user_config_path(DISTRIBUTION) / "profiles"))


def _settings() -> Check:
    file = ConfigFile()
    file.reread()
    problems = read(file.body, Settings(), strict=True)[1]
    said = "; ".join(message for message in (file.problem, *(problem.message for problem in problems)) if message)
    if said:
        return Check(name="settings", verdict="warn", value=f"{file.path}: {said}", hint="see `midfill settings`")
    return Check(name="settings", value=str(file.path) if file.path.exists() else f"none in {file.path}")


def _packages() -> Check:
    needed = [name for name in importlib.metadata.requires(DISTRIBUTION) or [] if "extra ==" not in name]
    versions = {name: _version(name) for name in (re.split(r"[^\w.-]", text)[0] for text in needed)}
    if missing := [name for name, version in versions.items() if not version]:
        hint = "install midfill again, in an environment of its own"
        return Check(name="packages", verdict="fail", value=f"missing: {', '.join(missing)}", hint=hint)
    return Check(name="packages", value=", ".join(f"{name} {version}" for name, version in versions.items()))


def _grammars() -> Iterator[Check]:
    works = {row.id: grammar(row) is not None for row in languages() if row.grammar}
    if broken := [name for name, fine in works.items() if not fine]:
        hint = "these languages are treated as plain text; install midfill again"
        yield Check(name="grammars", verdict="warn", value=f"not working: {', '.join(broken)}", hint=hint)
    else:
        yield Check(name="grammars", value=", ".join(works))


def _model(profile: str) -> Iterator[Check]:
    facts = _facts(profile)
    torch, model = facts["torch"], facts["profile"]
    if "error" in torch:
        yield Check(name="torch", verdict="fail", value=torch["error"], hint=torch["hint"])
    else:
        yield Check(name="torch", value=f"{torch['version']}, {torch['threads']} threads")
        cuda = f", built for CUDA {torch['cuda']}" if torch["cuda"] else ""
        yield Check(name="device", value=f"{torch['device']}{cuda}")
    if "error" in model:
        yield Check(name="model", verdict="fail", value=model["error"], hint=model["hint"])
        return
    yield Check(name="model", value=f"{model['name']}: {model['title']}")
    if "server" in model:
        verdict: Verdict = "warn" if model["note"] else "ok"
        yield Check(name="server", verdict=verdict, value=model["server"], hint=model["note"])
        return
    if model["missing"]:
        value = f"missing in {model['weights']}: {', '.join(model['missing'])}"
        hint = f"midfill model pull {model['name']}" if model.get("repository") else "install midfill again, or train"
        yield Check(name="weights", verdict="fail", value=value, hint=hint)
    else:
        yield Check(name="weights", value=f"{model['weights']}, {model['bytes'] / 1e6:.1f} MB")


def _facts(profile: str) -> dict[str, Any]:
    facts = _child("diffusion.facts", profile)
    return {"torch": facts, "profile": facts} if "error" in facts else facts


def _child(module: str, *arguments: str) -> dict[str, Any]:
    """What a module prints, as JSON, when it is run in a process of its own; else {"error": ..., "hint": ...}."""
    command = [sys.executable, "-I", "-m", module, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=CHILD_SECONDS, stdin=subprocess.DEVNULL,
            cwd=sys.prefix,  # torch cannot be loaded in a folder that has been deleted
        )  # fmt: skip
        told: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {CHILD_SECONDS} s", "hint": "is the machine busy?"}
    except json.JSONDecodeError:
        said = next(iter(reversed(done.stderr.strip().split("\n"))), "") or f"exit code {done.returncode}"
        return {"error": said, "hint": f"install midfill again; to see more: {' '.join(command)}"}
    return told


def _engine(paths: EnginePaths, profile: str) -> Iterator[Check]:
    folder = paths.socket.parent
    make_private(folder)
    writable = os.access(folder, os.W_OK | os.X_OK)
    yield Check(
        name="runtime folder",
        verdict="ok" if writable else "fail",
        value=str(folder),
        hint="" if writable else f"make it writable, or set {RUNTIME_DIR_VARIABLE} to a folder of yours",
    )
    yield Check(name="socket", value=str(paths.socket))
    yield asyncio.run(_running(profile))
    said = last_line(paths.log)
    yield Check(name="log", value=f"{paths.log}" + (f" (last: {said})" if said else " (empty)"))


async def _running(profile: str) -> Check:
    try:
        status = await EngineClient(profile).running()
    except EngineError as error:
        return Check(name="engine", verdict="fail", value=error.message, hint=error.hint)
    if status is None:
        return Check(name="engine", value="not running; it starts when it is needed")
    if status.state == "errored":
        hint = "then `midfill engine stop`, so that the next request tries again"
        return Check(name="engine", verdict="fail", value=status.detail, hint=hint)
    return Check(
        name="engine",
        value=f"{status.state}, {status.model} on {status.device}, process {status.pid}, {status.memory / 1e6:.0f} MB",
    )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="midfill doctor",
        description="Show what is installed, which device and model are used, and where sockets and logs are.",
        epilog="If something does not work, run this first; the lines with -> say what to do.",
    )
    parser.add_argument("--profile", default=chosen_model(), help="model profile (default: %(default)s)")
    parser.add_argument("--model", help="show the memory that the model of this profile would take, and nothing else")
    parser.add_argument(
        "--vram",
        type=_bytes,
        default=0,
        metavar="24GB",
        help="of a device that has so much (default: what is free here)",
    )
    parser.add_argument(
        "--tokens", type=whole_number(1, 1_000_000), default=0, help="of context (default: the profile's)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    return parser


def _bytes(text: str) -> int:
    """24GB, 24 GiB, 24576MiB -> bytes."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?)\s*([MG])(i?)B?", text.strip(), re.IGNORECASE)
    if not match or not float(match[1]):
        raise argparse.ArgumentTypeError(f"an amount of memory such as 24GB is needed, not {text!r}")
    base, power = (1024 if match[3] else 1000), {"M": 2, "G": 3}[match[2].upper()]
    return int(float(match[1]) * base**power)
