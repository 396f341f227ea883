"""What is evaluated on: HumanEval-Infilling files, the held-out part of a training corpus, the user's own files.

Knows files and their formats, and git; cutting holes is eval_cuts.py. Nothing here runs what it reads.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

from grammars.languages import PLAIN, language_for
from lsp_server import limits, secrets
from lsp_server.commands.eval_cuts import KINDS, Cut, Kind, Text, cut_list, usable
from lsp_server.documents import split_lines, without_surrogates
from lsp_server.settings import Settings
from lsp_server.usage import UsageError

HELD_OUT = ("python", "javascript", "typescript")
SPAN_LINES = 24
"""Lines that an answer to a random span may have."""
FIELDS = ("task_id", "prompt", "canonical_solution", "suffix", "test", "entry_point")


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A problem of HumanEval-Infilling: the cut, and what its program needs to be tested."""

    cut: Cut
    test: str
    entry_point: str

    def program(self, completed: str) -> str:
        """The program whose text up to the end of the middle is `completed`. It ends normally if the tests pass."""
        return f"{completed}{self.cut.suffix}\n{self.test}\ncheck({self.entry_point})\n"


def human_eval_infilling(path: Path) -> list[Problem]:
    """The problems of a file of HumanEval-Infilling (Bavarian et al. 2022, "Efficient Training of Language Models to
    Fill in the Middle"): gzipped or plain JSON lines. Raises UsageError.

    What is asked for follows from the benchmark a task id names, never from the solution: a line for single-line files,
    up to 24 lines for the others, random-span and multi-line. Single lines end in a newline in these files; an editor
    shows an empty line there, so the newline stays in the suffix.
    """
    try:
        data = path.read_bytes()
        lines = (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode().splitlines()
        problems = [_problem(json.loads(line)) for line in lines if line.strip()]
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}", _WHERE) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{path} is no HumanEval-Infilling file: {error!r}", _WHERE) from None
    if not problems:
        raise UsageError(f"{path} holds no problems", _WHERE)
    return problems


_WHERE = "the data is HumanEval-*Infilling*.jsonl.gz of the repository openai/human-eval-infilling"


def _problem(body: Any) -> Problem:
    task, prompt, middle, suffix, test, entry_point = (body[field] for field in FIELDS)
    if not all(isinstance(body[field], str) for field in FIELDS):
        raise TypeError("a field is no text")
    kind: Kind = "single-line" if task.startswith("SingleLine") else "random-span"
    if not prompt:
        raise ValueError("a prompt is empty")
    single = kind == "single-line"
    if single and middle.endswith("\n"):
        middle, suffix = middle.removesuffix("\n"), "\n" + suffix
    cut = Cut(
        kind=kind,
        language="python",
        path="solution.py",
        prefix=prompt,
        middle=middle,
        suffix=suffix,
        group="/".join(task.split("/")[1:3]),  # the lines of one function are not independent of each other
        mode="line" if single else "block",
        max_lines=1 if single else SPAN_LINES,
    )
    return Problem(cut=cut, test=test, entry_point=entry_point)


def heldout(corpus: Path, count: int, name: str = "heldout", kinds: Sequence[Kind] = tuple(KINDS)) -> list[Cut]:
    """The frozen list of cuts called `name` in the held-out files of a training corpus, languages and kinds in turn, or
    its beginning; only those of `kinds`. Raises UsageError."""
    lists = [cut_list(list(_records(corpus, language)), f"{name}/{language}") for language in HELD_OUT]
    cuts = list(islice((cut for row in zip_longest(*lists) for cut in row if cut and cut.kind in kinds), count))
    if not cuts:
        raise UsageError(f"{corpus} holds no held-out files", "name the folder of the training corpus")
    return cuts


def _records(corpus: Path, language: str) -> Iterator[Text]:
    path = corpus / f"{language}.heldout.jsonl"
    if not path.is_file():
        return
    try:
        for line in path.read_text(encoding="utf-8").split("\n"):
            if not line:
                continue
            record = json.loads(line)
            name = f"{record['package']}/{record['path']}"
            if usable(record["text"]):
                yield Text(language=language, path=name, text=record["text"])
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"a line of {path} is no record of a corpus: {error!r}", "build it again") from None


def repository(folder: Path, count: int) -> list[Cut]:
    """At most `count` cuts in the files below `folder` that git tracks and whose language is known, the kinds in turn.
    Raises UsageError."""
    cuts = list(islice(cut_list(list(tracked(folder)), "repo"), count))
    if not cuts:
        raise UsageError(f"git tracks no source files in {folder} that can be used", "Python, JavaScript, TypeScript")
    return cuts


def tracked(folder: Path) -> Iterator[Text]:
    """The files below `folder` that git tracks, whose language is known and that an editor would not leave alone, in
    the order of their names. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", "name one below which git tracks your files")
    # The configuration of a repository may name a program as its file system monitor: that one is not started.
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), "ls-files", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL).stdout
    except OSError:
        raise UsageError(
            "git was not found", "install it: the files of a repository are those that it tracks"
        ) from None
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().partition("\n")[0]
        raise UsageError(f"git lists no files in {folder}: {said}", "name a folder of a git repository") from None
    for name in sorted(listed.decode(errors="surrogateescape").split("\0")):
        language = language_for("", name)
        path = folder / name
        if language is PLAIN or language.id in Settings().disabled_languages or path.is_symlink():
            continue
        text = None if secrets.by_name(name) or limits.by_name(name) else source(path)
        if text is not None:
            yield Text(language=language.language_ids[0], path=without_surrogates(name), text=text)


def source(path: Path) -> str | None:
    """The text of a file that can be evaluated on, else None: it has gone, is huge, binary, not UTF-8, or what an
    editor would leave alone."""
    try:
        if not path.is_file() or path.stat().st_size > 1_000_000:
            return None
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, UnicodeDecodeError):
        return None
    left_alone = secrets.by_content(text) or limits.by_content(split_lines(text), text, len(text))
    return text if usable(text) and not left_alone else None
