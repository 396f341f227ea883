"""What the commands share of talking to an engine: which one, waiting until it is ready, one fill from start to end.

Knows the engine interface; nothing of files and of how things are shown.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import AsyncIterator, Callable

from diffusion.api import Draft, Engine, EngineError, Failure, FillRequest, Result, Status
from lsp_server.chosen_model import chosen_model
from lsp_server.engine_client import EngineClient
from lsp_server.engines import AUTO, make_engine


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """--profile and --engine."""
    parser.add_argument("--profile", default=chosen_model(), help="model profile (default: %(default)s)")
    parser.add_argument(
        "--engine",
        default=AUTO,
        metavar="scripted:FILE",
        help="answer from a JSON list in FILE instead of a model (for tests)",
    )


@contextlib.asynccontextmanager
async def opened_engine(
    spec: str, profile: str, on_status: Callable[[Status], None] = lambda status: None
) -> AsyncIterator[Engine]:
    """An engine that is ready; one is started if there is none. `on_status` hears how loading goes on.

    Raises UsageError for a `spec` that is not one, EngineError when no engine can be had.
    """
    if spec != AUTO:
        yield make_engine(spec)
        return
    client = EngineClient(profile)
    try:
        await client.wait_ready(on_status)
        yield client
    finally:
        await client.close()


async def run_fill(
    engine: Engine, request: FillRequest, on_draft: Callable[[Draft], None] = lambda draft: None
) -> Result:
    """One fill from start to end. Raises EngineError for a failure."""
    async for event in engine.fill(request):
        if isinstance(event, Draft):
            on_draft(event)
        elif isinstance(event, Failure):
            raise EngineError(event.message, event.hint, event.code)
        else:
            return event
    raise EngineError("the engine gave no answer", "see `midfill doctor`", "internal")
