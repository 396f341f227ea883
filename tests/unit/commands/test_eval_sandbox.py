"""The sandbox: what passes, what does not, what a program cannot do, and that nothing of it stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsp_server.commands.eval_sandbox import CHILD, Sandbox, Verdict


@pytest.fixture
def sandbox() -> Sandbox:
    return Sandbox(seconds=20, megabytes=300)


PASSING = {
    "ends": "x = 1\nassert x == 1",
    "library": "import collections, hashlib, math, re, typing\nassert hashlib.md5(b'a').hexdigest()[:2] == '0c'",
    "prints": "print('x' * 100_000)",
    "writes in its folder": "from pathlib import Path\nPath('a').write_text('1')\nassert Path('a').read_text() == '1'",
    "leaves a thread": "import threading, time\ntry: threading.Thread(target=time.sleep, args=(99,)).start()\n"
    "except RuntimeError: pass",
    "reads the library": "import json, inspect\nassert inspect.getsource(json)",
}
FAILING = {
    "assertion": "assert False",
    "syntax": "def f(:",
    "null byte": "x = '\0'",
    "surrogate": "x = '\ud800'",
    "leaves early": "import sys\nsys.exit(0)",
    "leaves at once": "import os\nos._exit(0)",
    "recursion": "def f(): f()\nf()",
    "memory": "x = bytearray(1 << 30)",
    "memory in parts": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "standard input": "input()",
}
FORBIDDEN = {
    "socket": "import socket\nsocket.socket()",
    "address": "import socket\nsocket.getaddrinfo('localhost', 80)",
    "process": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', ''])",
    "shell": "import os\nassert os.system('true') == 0",
    "fork": "import os\nos.fork()",
    "writes outside": "open(PLACE, 'w')",
    "appends outside": "open(PLACE, 'ab')",
    "opens outside": "import os\nos.open(PLACE, os.O_RDWR | os.O_CREAT)",
    "writes beside it": "import os\nopen(os.path.join('..', os.path.basename(PLACE)), 'w')",
    "removes": "import os\nos.remove(PLACE)",
    "renames": "import os\nos.rename(PLACE, 'a')",
    "links": "import os\nos.symlink(PLACE, 'a')\nopen('a', 'w')",
    "kills": "import os\nos.kill(os.getppid(), 0)",
    "fills the disk": "with open('a', 'wb') as file: file.write(bytes(1 << 22))",
    "C": "import ctypes\nctypes.CDLL(None)",
}


@pytest.mark.parametrize("program", PASSING.values(), ids=PASSING)
async def test_what_comes_to_its_end_has_passed(sandbox: Sandbox, program: str) -> None:
    assert await sandbox.run(program) == "passed"


@pytest.mark.parametrize("program", FAILING.values(), ids=FAILING)
async def test_whatever_does_not_has_failed(sandbox: Sandbox, program: str) -> None:
    assert await sandbox.run(program) == "failed"


@pytest.mark.parametrize("program", FORBIDDEN.values(), ids=FORBIDDEN)
async def test_what_is_forbidden_raises(sandbox: Sandbox, tmp_path: Path, program: str) -> None:
    place = tmp_path / "kept"
    place.write_text("as it was")
    attempt = "\n".join(f"    {line}" for line in f"PLACE = {str(place)!r}\n{program}".split("\n"))
    # The same program passes if the attempt raises, and it is told apart from one that fails for another reason.
    assert await sandbox.run(f"try:\n{attempt}\nexcept OSError: pass\nelse: raise SystemExit") == "passed"
    assert place.read_text() == "as it was"


async def test_the_environment_is_empty_and_the_folder_too(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "1")
    program = "import os\nassert not set(os.environ) - {'LC_CTYPE'}, os.environ\nassert os.listdir('.') == []"
    assert await sandbox.run(program) == "passed"


@pytest.mark.skipif(not Path("/proc/self/ns/net").exists(), reason="network namespaces are a thing of Linux")
async def test_the_network_namespace_is_another_one_where_the_system_lends_one(sandbox: Sandbox) -> None:
    async def succeeds(*command: str) -> bool:
        return await (await asyncio.create_subprocess_exec(*command)).wait() == 0

    try:
        lent = await succeeds("unshare", "--net", "true") or await succeeds("unshare", "--user", "--net", "true")
    except FileNotFoundError:
        lent = False
    if not lent:
        pytest.skip("no namespaces for this user")
    ours = os.readlink("/proc/self/ns/net")  # noqa: PTH115
    assert await sandbox.run(f"import os\nassert os.readlink('/proc/self/ns/net') != {ours!r}") == "passed"


@pytest.mark.parametrize("program", ["while True: pass", "import time\ntime.sleep(1000)"])
async def test_a_program_that_does_not_end_runs_out_of_time(program: str) -> None:
    others = set(children())
    begun = time.monotonic()
    assert await Sandbox(seconds=1).run(program) == "out of time"
    assert time.monotonic() - begun < 20
    assert not set(children()) - others


async def test_no_program_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    async def once(self: Sandbox, program: str) -> Verdict:
        ran.append(program)
        return "failed"

    monkeypatch.setattr(Sandbox, "_run", once)
    sandbox = Sandbox()
    assert [await sandbox.run(program) for program in ("a", "b", "a")] == ["failed"] * 3
    assert ran == ["a", "b"]


async def test_a_cancelled_program_is_gone(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    started = asyncio.Event()
    original = asyncio.create_subprocess_exec

    async def start(*command: str, **options: Any) -> asyncio.subprocess.Process:
        process = await original(*command, **options)
        started.set()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", start)
    others = set(children())  # of other tests: multiprocessing keeps one for good
    running = asyncio.create_task(sandbox.run("import time\ntime.sleep(1000)"))
    await asyncio.wait_for(started.wait(), 60)
    assert len(set(children()) - others) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not set(children()) - others


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="no alarm on this system")
def test_a_program_that_nobody_waits_for_any_more_ends_by_itself(tmp_path: Path) -> None:
    order = {"program": "import time\ntime.sleep(1000)", "token": "t", "seconds": 1, "megabytes": 300}
    done = subprocess.run(CHILD, input=json.dumps(order).encode(), cwd=tmp_path, timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGALRM


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)
