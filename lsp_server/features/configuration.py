"""Settings from the client: at `initialize`, after it, and whenever they change.

What they mean stands in settings.py."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from lsp_server import settings

if TYPE_CHECKING:
    from lsp_server.server import Server

SECTION = "midfill"


def initialize(ls: Server, params: types.InitializeParams) -> None:
    """Read `initializationOptions`. The engine is not needed for the answer and not asked."""
    apply(ls, params.initialization_options)
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
    await pull(ls)
    if ls.settings.enabled:
        ls.reporter.follow_engine()


async def did_change(ls: Server, params: types.DidChangeConfigurationParams) -> None:
    """Settings come along with the notification, or have to be asked for."""
    if params.settings:
        apply(ls, params.settings)
    else:
        await pull(ls)


async def pull(ls: Server) -> None:
    """Ask the client for our section, if it can be asked."""
    workspace = ls.client_capabilities.workspace
    if workspace and workspace.configuration:
        item = types.ConfigurationItem(section=SECTION)
        answers = await ls.workspace_configuration_async(types.ConfigurationParams([item]))
        apply(ls, answers[0] if answers else None)


def apply(ls: Server, body: Any) -> None:
    """Take over what can be used, and say so in the client's log; what cannot is named once."""
    before = dataclasses.asdict(ls.settings)
    ls.settings, problems = settings.read(body, ls.settings)
    changed = [f"{name} = {value}" for name, value in dataclasses.asdict(ls.settings).items() if value != before[name]]
    if changed:
        message = f"midfill: settings: {', '.join(changed)}"
        ls.window_log_message(types.LogMessageParams(type=types.MessageType.Info, message=message))
    for problem in problems:
        ls.reporter.warn(problem)
