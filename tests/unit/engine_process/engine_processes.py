"""The fake engine as a command line, and the engine processes that a test has started."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil

FAKE = (sys.executable, "-I", str(Path(__file__).with_name("fake_engine.py")))


def engines_in(folder: Path) -> list[psutil.Process]:
    """The engine processes whose socket lies below a folder."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and "--socket" in words and str(folder) in " ".join(words):
            found.append(process)
    return found
