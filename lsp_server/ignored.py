"""Which files git ignores, or a `.midfillignore`, told from the files that say so; git itself is not needed.

Knows the file system, and pathspec for what a pattern means. A file that git tracks although a pattern names it counts
as ignored: nothing here reads git's index.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pathspec import GitIgnoreSpec

GIT = ".gitignore"
OURS = ".midfillignore"
MAX_BYTES = 1_000_000
"""A larger file of patterns is not read."""
MAX_KEPT = 1_024
"""So many files of patterns, missing ones included, are remembered."""

Stamp = tuple[int, int]
"""When a file was changed (ns) and how large it is."""
MISSING: Stamp = (0, -1)
Patterns = tuple[Any, ...]


@dataclass(kw_only=True)
class Ignored:
    """Answers from the files as they are now: each is read once, and again when it has changed."""

    _kept: dict[Path, tuple[Stamp, Patterns]] = field(default_factory=dict)

    def reason(self, path: Path, folders: tuple[Path, ...] = ()) -> str:
        """Why `path` (absolute) is ignored, or "". `folders` are those of the workspace: patterns count from the
        outermost of the repository and the workspace folder that hold the file down to the file."""
        repository = next((folder for folder in path.parents if (folder / ".git").exists()), None)
        tops = [folder for folder in (repository, *folders) if folder and folder in path.parents]
        if not tops:
            return ""
        top = min(tops, key=lambda folder: len(folder.parts))
        general = _general(repository) if repository else ()
        # From the top down: below an ignored folder everything is ignored, whatever else is said.
        for what in (*reversed(path.parents), path):
            if top not in what.parents:
                continue
            nearest = [folder for folder in what.parents if folder == top or top in folder.parents]
            git = [(folder / GIT, folder) for folder in nearest]
            git += [(source, repository) for source in general if repository and repository in what.parents]
            for sources in (git, [(folder / OURS, folder) for folder in nearest]):
                if source := self._ignoring(sources, what, is_folder=what != path):
                    return f"{source.name} names it" if source.name in (GIT, OURS) else f"git ignores it ({source})"
        return ""

    def _ignoring(self, sources: list[tuple[Path, Path]], what: Path, *, is_folder: bool) -> Path | None:
        """The source that makes `what` ignored. The first that says anything about it has the last word."""
        for source, base in sources:
            name = what.relative_to(base).as_posix()
            for pattern in reversed(self._patterns(source)):
                if _matches(pattern, name, is_folder=is_folder):
                    return source if pattern.include else None
        return None

    def _patterns(self, source: Path) -> Patterns:
        stamp = _stamp(source)
        kept = self._kept.pop(source, None)
        if kept is None or kept[0] != stamp:
            kept = (stamp, _read(source) if 0 <= stamp[1] <= MAX_BYTES else ())
        self._kept[source] = kept
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept[1]


def _stamp(path: Path) -> Stamp:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return MISSING
    return found.st_mtime_ns, found.st_size


def _read(path: Path) -> Patterns:
    """The patterns of a file. A line that is no pattern counts for nothing, as it does for git."""
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="surrogateescape").split("\n")
    except OSError:
        return ()
    patterns: list[Any] = []
    for line in lines:
        with contextlib.suppress(ValueError, re.error):
            patterns += GitIgnoreSpec.from_lines([line.removesuffix("\r")]).patterns
    return tuple(pattern for pattern in patterns if pattern.include is not None)


def _matches(pattern: Any, name: str, *, is_folder: bool) -> bool:
    """Whether a pattern names this very file or folder. pathspec's patterns also match all that lies below a folder
    that they name, and mark it with a group: that is not wanted here, where every folder is asked about by itself."""
    if not pattern.regex.groupindex:
        return pattern.regex.search(name) is not None
    name += "/" * is_folder
    return any(found.end() == len(name) for found in pattern.regex.finditer(name))


def _general(repository: Path) -> tuple[Path, ...]:
    """The sources beside .gitignore, in git's order: the repository's exclude file, the user's ignore file."""
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser())
    return _git_folder(repository) / "info" / "exclude", home / "git" / "ignore"


def _git_folder(repository: Path) -> Path:
    """Where a repository keeps its own files; in a worktree, `.git` is a file that names the place."""
    found = repository / ".git"
    try:
        if found.is_file():
            found = repository / found.read_text(encoding="utf-8").removeprefix("gitdir:").strip()
            common = found / "commondir"
            return found / common.read_text(encoding="utf-8").strip() if common.is_file() else found
    except (OSError, ValueError):
        pass
    return found
