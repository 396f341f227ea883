"""An engine process with a model made of commands: the real server around it, started as a child like the real one.

The prefix of a fill or the instruction of an edit says what to do: "drafts 3", "flood 3" (drafts of 20 kB), "hang"
(until cancelled), "echo", "raise", "crash", "say TEXT", "gate FIFO" (waits until it is opened). The environment says
how loading goes: FAKE_LOAD_FIFO (a FIFO that is opened before loading ends), FAKE_LOAD_ERROR (the file of an error's
message, if it exists); and with FAKE_CLOCK the time of day jumps by hours, back and forth, whenever it is asked for.
FAKE_TRACE names a FIFO or file to which a line is written when a hanging fill starts, when it sees its cancellation,
and when a client's things are given up.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from diffusion import server
from diffusion.api import Candidate, Cost, Draft, EditRequest, EngineError, Event, FillRequest, Progress, Result


class CommandedModel:
    device = "cpu"

    def __init__(self, name: str) -> None:
        self.name = name

    def fill(
        self, request: FillRequest | EditRequest, *, arrived: float, cancelled: Callable[[], bool]
    ) -> Iterator[Event]:
        fills = isinstance(request, FillRequest)
        asked, rest = (request.prefix, request.suffix) if fills else (request.instruction, request.selected)
        command, _, argument = asked.partition(" ")
        if command == "drafts":
            for step in range(1, int(argument) + 1):
                yield Draft(step=step, text=f"draft {step}")
        elif command == "flood":
            for step in range(1, int(argument) + 1):
                yield Draft(step=step, text=f"{step:020000}")
                time.sleep(0.0002)  # lets the loop have its turn, as a real denoising step does
        elif command == "hang":
            trace(f"started {request.id}")
            step = 0
            try:
                while not cancelled():
                    step += 1
                    yield Draft(step=step, text="…")
                    time.sleep(0.005)
            finally:  # also where the scheduler sees the cancellation first and closes this generator
                trace(f"cancelled {request.id}")
            return
        elif command == "raise":
            raise ValueError(f"secret code: {rest}")
        elif command == "gate":
            trace(f"started {request.id}")
            Path(argument).read_text()
        elif command == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        text = argument if command == "say" else f"{asked}|{rest}"
        answer = Candidate(text=text, confidence=0.5)
        yield Result(candidates=(answer,), cost=Cost(forwards=1), model=self.name)

    def forget(self, client: str) -> None:
        trace(f"forgotten {client}")


def trace(line: str) -> None:
    with Path(os.environ["FAKE_TRACE"]).open("a") as file:
        file.write(line + "\n")


def load(profile: str, on_progress: Callable[[Progress], None]) -> CommandedModel:
    on_progress(Progress(done=1, total=2))
    if fifo := os.environ.get("FAKE_LOAD_FIFO"):
        Path(fifo).read_text()
    if (file := Path(os.environ.get("FAKE_LOAD_ERROR", ""))).is_file():
        raise EngineError(file.read_text(), "run midfill doctor", "model")
    return CommandedModel(profile)


def jumping_clock() -> float:
    return 1.7e9 + random.uniform(-1e6, 1e6)


if __name__ == "__main__":
    if os.environ.get("FAKE_CLOCK"):
        time.time = jumping_clock
    server.leave(server.main(load=load))
