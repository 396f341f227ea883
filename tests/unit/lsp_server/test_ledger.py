"""The file that several processes append to: nothing is lost, it stays small, and whatever is in it does no harm."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsp_server.ledger import Ledger, Line

LIMIT = 2_000


def total(lines: list[Line]) -> list[Line]:
    return [{"n": sum(line["n"] for line in lines if type(line.get("n")) is int)}]


def ledger(folder: Path) -> Ledger:
    return Ledger(folder / "sub/counts.jsonl", limit=LIMIT, fold=total)


WRITER = """
import sys
from pathlib import Path
from lsp_server.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]), limit=2000, fold=lambda lines: [{"n": sum(line["n"] for line in lines)}])
for _ in range(500):
    ledger.add({"n": 1})
ledger.close()
"""


def test_processes_that_write_at_once_lose_nothing(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(book.path)]) for _ in range(4)]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    assert total(book.lines()) == [{"n": 2000}]
    assert book.path.stat().st_size <= LIMIT + 10


def test_what_is_kept_is_the_newest_within_the_limit(tmp_path: Path) -> None:
    book = Ledger(tmp_path / "lines.jsonl", limit=LIMIT, fold=lambda lines: lines)
    for number in range(1_000):
        book.add({"n": number, "text": "é" * 10})
        assert book.path.stat().st_size <= LIMIT + 100
    numbers = [line["n"] for line in book.lines()]
    assert numbers == list(range(numbers[0], 1_000))
    assert len(numbers) > 5


def test_nobody_waits_for_the_lock_and_the_lines_come_later(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.add({"n": 1})
    other = filelock.FileLock(book.path.with_suffix(".lock"))
    with other:
        book.add({"n": 2})
        book.add({"n": 3})
        assert book.lines() == [{"n": 1}]
    book.close()
    assert book.lines() == [{"n": 1}, {"n": 2}, {"n": 3}]
    book.close()
    assert len(book.lines()) == 3


def test_kept_lines_are_written_together(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    book.keep({"n": 1})
    book.keep({"n": 2})
    assert book.lines() == []
    book.write()
    assert book.lines() == [{"n": 1}, {"n": 2}]
    book.keep({"n": 3})
    book.close()
    assert book.lines() == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_only_the_user_can_read_it(tmp_path: Path) -> None:
    book = ledger(tmp_path)
    for _ in range(1_000):
        book.add({"n": 1})
    for path in book.path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(book.path.parent.stat().st_mode) == 0o700


@given(st.binary(max_size=200))
def test_whatever_stands_in_it_does_no_harm(tmp_path_factory: pytest.TempPathFactory, rubbish: bytes) -> None:
    book = ledger(tmp_path_factory.mktemp("ledger"))
    book.path.parent.mkdir()
    book.path.write_bytes(rubbish + b"\n" + b"[" * 100_000 + b"\n")
    book.add({"n": 5})
    assert {"n": 5} in book.lines()


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "sub").write_text("")
    book = ledger(tmp_path)
    for _ in range(3):
        book.add({"n": 1})
    book.close()
    assert len(caplog.records) == 1
