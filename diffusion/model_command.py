"""The command `midfill model`: which models there are, fetching, choosing, quantising and removing them.

Knows options and the terminal; what is done stands in model_store.py and loader.py. Torch is loaded by `quantize` only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from diffusion import checkpoint, memory_plan, model_store, profiles, snapshot
from diffusion.api import BadRequest, EngineError
from diffusion.memory_plan import amount
from diffusion.plan_report import text_config
from diffusion.profiles import load_profile

DEFAULT = "embedded"
EPILOG = """\
examples:
  midfill model list                     what there is, and which one is in use
  midfill model pull diffusiongemma      fetch it (50 GB; an interrupted download goes on where it was)
  midfill model pull diffusiongemma --from ~/checkpoints/diffusiongemma
                                         take over files that are here already
  midfill model quantize diffusiongemma  make the quantised snapshot now rather than at the first start
  midfill model use diffusiongemma       complete with it from now on, in all editors
  midfill model info diffusiongemma      where it lies, how it is quantised, how much memory it takes

A model is a profile: a TOML file of midfill's, or one in the folder `profiles` of your configuration folder.
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise BadRequest(message, "see `midfill model --help`")


def main(argv: Sequence[str]) -> int:
    """Run one of the actions; 0 when it is done. Raises EngineError."""
    options = _parser().parse_args(argv)
    out = Console(highlight=False, soft_wrap=True, markup=False, emoji=False)
    actions: dict[str, Callable[[argparse.Namespace, Console], None]] = {
        "list": _list, "pull": _pull, "use": _use, "quantize": _quantize, "remove": _remove, "info": _info,
    }  # fmt: skip
    actions[options.action](options, out)
    return 0


def _list(options: argparse.Namespace, out: Console) -> None:
    rows = []
    used = model_store.chosen() or DEFAULT
    for name in sorted(profiles.profile_files()):
        try:
            rows.append({"name": name, "state": _state(name), "used": name == used})
        except EngineError as error:
            rows.append({"name": name, "state": error.message, "used": name == used})
    if options.json:
        print(json.dumps(rows))
        return
    width = max(len(str(row["name"])) for row in rows)
    for row in rows:
        out.print(f"{'*' if row['used'] else ' '} {row['name']:<{width}}  {row['state']}")


def _state(name: str) -> str:
    """A few words on whether a model could be used now."""
    if profiles.backend_of(name) != "resident":
        return f"on a server ({profiles.backend_of(name)})"
    profile = load_profile(name)
    folder = profile.weights
    if folder.parent != profiles.models_folder():
        return f"ready, in {folder}" if (folder / checkpoint.SINGLE).is_file() else f"weights missing in {folder}"
    if not folder.is_dir():
        return f"not here; `midfill model pull {name}` fetches it" + (
            f" from {profile.repository}" if profile.repository else ""
        )
    made = snapshot.find(folder / snapshot.FOLDER)
    if made is not None and made.complete:
        return f"ready, quantised, {amount(made.bytes)} of {amount(model_store.size(folder))}"
    if model_store.pulled(folder) is None:
        return f"partly fetched, {amount(model_store.size(folder))}; `midfill model pull {name}` goes on"
    return f"fetched, {amount(model_store.size(folder))}; it will be quantised at the first start"


def _pull(options: argparse.Namespace, out: Console) -> None:
    profile = load_profile(options.name)
    source = options.source or profile.repository
    if not source:
        raise EngineError(f"the profile {profile.name} names no repository", "say --from OWNER/NAME or --from FOLDER")
    with _bars() as report:
        if Path(source).expanduser().is_dir():
            folder = model_store.pull_folder(profile, Path(source).expanduser().resolve(), report)
        else:
            folder = model_store.pull_repository(profile, source, options.revision, report)
    out.print(f"{profile.name} is in {folder}, {amount(model_store.size(folder))}")
    out.print(f"next: midfill model use {options.name}")


def _use(options: argparse.Namespace, out: Console) -> None:
    path = profiles.profile_file(options.name)
    name = path.stem
    if profiles.backend_of(name) == "resident":
        weights = load_profile(name).weights
        if not (weights / checkpoint.CONFIG).is_file():
            raise EngineError(f"the weights of {name} are not in {weights}", f"midfill model pull {options.name}")
    written = model_store.choose(name)
    out.print(f"{name} is used from now on, by every editor that is started after this ({written})")


def _quantize(options: argparse.Namespace, out: Console) -> None:
    profile = load_profile(options.name)
    if profile.quantisation is None:
        raise EngineError(f"the profile {profile.name} says nothing of quantisation", "add [quantisation] to it")
    import torch

    from diffusion import devices, loader

    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))  # as the engine does: the machine is used for more
    chosen = devices.choose()
    folder = model_store.own_folder(profile)
    if options.anew:
        loader.forget(folder)
    with _bars() as report:
        made = loader.prepared(
            folder, profile.quantisation, chosen.device, torch.bfloat16,
            lambda progress: report("quantising", progress.done, progress.total),
        )  # fmt: skip
    snapshot.verify(made)
    out.print(f"{made.folder}, {amount(made.bytes)}, made on {chosen}")
    if options.discard:
        out.print(f"{amount(model_store.discard_source(folder))} of unquantised weights removed")


def _remove(options: argparse.Namespace, out: Console) -> None:
    profile = load_profile(options.name)
    if profile.name == model_store.chosen():
        raise EngineError(f"{profile.name} is in use", "first choose another one: midfill model use embedded")
    out.print(f"{amount(model_store.remove(profile))} removed")


def _info(options: argparse.Namespace, out: Console) -> None:
    profile = load_profile(options.name)
    out.print(f"{profile.name}: {profile.title}")
    out.print(f"state       {_state(profile.name)}")
    out.print(f"folder      {profile.weights}")
    if record := model_store.pulled(profile.weights):
        out.print(f"source      {' at commit '.join(record.values())}")
    if profile.quantisation is not None:
        made = snapshot.find(profile.weights / snapshot.FOLDER)
        out.print(f"quantised   {_words(profile.quantisation)}")
        if made is not None and made.complete:
            snapshot.verify(made)
            out.print(f"snapshot    {len(made.parts)} parts, all checksums right")
    tokens = profile.layout.encoder
    for what, much in memory_plan.lines(memory_plan.plan(text_config(profile), profile.quantisation), tokens):
        out.print(f"memory      {what:<28}{much:>10}")


def _words(quantisation: Any) -> str:
    return f"linears {quantisation.linears}, experts {quantisation.experts} in groups of {quantisation.group}"


@contextlib.contextmanager
def _bars() -> Iterator[model_store.Report]:
    """A progress bar per thing that is told of, on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield report


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="midfill model",
        description="Fetch, quantise, choose and remove models.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|pull|use|quantize|remove|info")
    listing = actions.add_parser("list", help="show all models, a * before the one in use")
    listing.add_argument("--json", action="store_true", help="print one JSON list instead")
    pull = actions.add_parser("pull", help="fetch a model, or the rest of it")
    pull.add_argument("--from", dest="source", metavar="FOLDER|OWNER/NAME", help="instead of the profile's repository")
    pull.add_argument("--revision", help="a branch, tag or commit of the repository (default: the newest)")
    use = actions.add_parser("use", help="complete with this model from now on")
    quantize = actions.add_parser("quantize", help="make the quantised snapshot of a model that was fetched")
    quantize.add_argument("--anew", action="store_true", help="also if there is one")
    quantize.add_argument("--discard", action="store_true", help="then remove the unquantised weights")
    remove = actions.add_parser("remove", help="delete a model's files")
    info = actions.add_parser("info", help="show where a model lies and what it takes; check its snapshot")
    for action in (pull, use, quantize, remove, info):
        action.add_argument("name", help="a profile's name, or another name of it")
    return parser
