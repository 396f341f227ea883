"""Settings from the client: at `initialize`, after it, whenever they change, and for single files where it has such.

What they mean stands in settings.py, which source counts more in sources.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server.settings import Settings

if TYPE_CHECKING:
    from lsp_server.server import Server

SECTION = "midfill"


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Read `initializationOptions`. The engine is not needed for the answer and not asked."""
    ls.sources.reread()
    ls.sources.set_options(params.initialization_options)
    apply(ls)
    if params.process_id is not None:
        ls.watch_parent(params.process_id)


async def initialized(ls: Server, params: types.InitializedParams) -> None:
    """Ask for the settings, and to be told when they change; start the engine early, since it takes its time."""
    workspace = ls.client_capabilities.workspace
    if workspace and workspace.did_change_configuration and workspace.did_change_configuration.dynamic_registration:
        registration = types.Registration(
            id=SECTION,
            method=types.WORKSPACE_DID_CHANGE_CONFIGURATION,
            register_options=types.DidChangeConfigurationRegistrationOptions(section=SECTION),
        )
        ls.client_register_capability(types.RegistrationParams([registration]))
    await pull(ls, ls.files.documents)
    ls.reporter.follow_engine()


async def did_change(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Settings come along with the notification, or have to be asked for."""
    if params.settings:
        ls.sources.set_client(params.settings)
        apply(ls)
    await pull(ls, ls.files.documents, window=not params.settings)


def opened(ls: Server, uri: str) -> None:
    """A file may have settings of its own. The cells of a notebook are asked for together."""
    if _can_be_asked(ls):
        ls.unasked.append(uri)
        if len(ls.unasked) == 1:
            ls.in_background(_pull_of_opened(ls))


async def _pull_of_opened(ls: Server) -> None:
    uris, ls.unasked = ls.unasked, []
    await pull(ls, uris, window=False)


async def pull(ls: Server, uris: Iterable[str], *, window: bool = True) -> None:
    """Ask the client for our section, if it can be asked: that of the window and those of files, in one question."""
    scopes = [*([None] if window else []), *uris]
    if not scopes or not _can_be_asked(ls):
        return
    items = [types.ConfigurationItem(section=SECTION, scope_uri=scope) for scope in scopes]
    answers = await ls.workspace_configuration_async(types.ConfigurationParams(items))
    for scope, answer in zip(scopes, answers or (), strict=False):
        if scope is None:
            ls.sources.set_client(answer)
        elif scope in ls.files.documents:
            _take_over(ls, scope, answer)
    if window:
        apply(ls)


def _take_over(ls: Server, uri: str, body: Any) -> None:
    before = ls.sources.of(uri)
    ls.sources.set_of_file(uri, body)
    if (now := ls.sources.of(uri)) != before:
        ls.completer.cache.clear()
        _say(ls, f"settings of {uri.rsplit('/', 1)[-1]}", before, now)
    _name_problems(ls, uri)


def refresh(ls: Server) -> None:
    """config.toml may have changed: it is looked at whenever something is asked for."""
    if ls.sources.reread():
        apply(ls)


def apply(ls: Server) -> None:
    """Take over what the sources say now, and say so in the client's log."""
    before, ls.settings = ls.settings, ls.sources.of()
    _say(ls, "settings", before, ls.settings)
    _name_problems(ls, "")


def _can_be_asked(ls: Server) -> bool:
    workspace = ls.client_capabilities.workspace
    return bool(workspace and workspace.configuration)


def _say(ls: Server, what: str, before: Settings, now: Settings) -> None:
    old = dataclasses.asdict(before)
    changed = [f"{name} = {value}" for name, value in dataclasses.asdict(now).items() if value != old[name]]
    if changed:
        message = f"midfill: {what}: {', '.join(changed)}"
        ls.window_log_message(types.LogMessageParams(type=types.MessageType.Info, message=message))


def _name_problems(ls: Server, uri: str) -> None:
    """Each once, whichever source repeats it."""
    for problem in ls.sources.problems(uri):
        ls.reporter.warn(problem.message, key=problem.key)
