"""Packages of the corpus: the manifest, the downloads, the licences, and the files inside the archives.

Nothing that a package contains is ever executed. Knows nothing of what makes a text worth keeping (`corpus_text.py`)
or of how the corpus is put together (`corpus.py`).
"""

from __future__ import annotations

import email.parser
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diffusion.training import corpus_text

LANGUAGES = ("python", "javascript", "typescript")
MANIFEST = Path(__file__).with_name("corpus.toml")
ALLOWED_LICENCES = frozenset(
    {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ISC", "PSF-2.0", "Python-2.0", "0BSD", "Zlib"}
    | {"Unlicense", "CC0-1.0"}
)
# The target that pip resolves for is fixed, so that every machine gets the same wheel; the newer one is the fallback.
_PYTHON_TARGETS = ("3.13.9", "3.14.9")
_PLATFORMS = (*(f"manylinux_2_{minor}_x86_64" for minor in (28, 27, 17)), "manylinux2014_x86_64")


class CorpusError(Exception):
    """A package could not be had, or may not be used; the message names it."""


@dataclass(frozen=True, kw_only=True)
class Package:
    language: str  # the list of the manifest that it stands in; "python" means pip, the others npm
    name: str
    version: str
    licence: str  # SPDX expression
    held_out: bool = False

    def __str__(self) -> str:
        return f"{self.manager}:{self.name}"

    @property
    def manager(self) -> str:
        return "pip" if self.language == "python" else "npm"


def load_manifest(path: Path = MANIFEST) -> tuple[Package, ...]:
    """All packages of the manifest, in its order. Raises CorpusError if it is not a valid manifest."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        packages = tuple(Package(language=lang, **row) for lang in LANGUAGES for row in table.get(lang, ()))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, TypeError) as error:
        raise CorpusError(f"{path}: not a readable manifest: {error}") from error
    counts = Counter((package.manager, package.name) for package in packages)
    repeated = [name for (_, name), count in counts.items() if count > 1]
    if repeated:
        raise CorpusError(f"{path}: named more than once: {', '.join(repeated)}")
    return packages


# --- licences ------------------------------------------------------------------------------------------------------

_LICENCE_NAMES = {  # what packages call them, in lower case and without "license" and punctuation
    "mit": "MIT", "expat": "MIT", "osi approved mit": "MIT", "the mit": "MIT", "mit no attribution": "MIT-0",
    "bsd": "BSD-3-Clause", "new bsd": "BSD-3-Clause", "modified bsd": "BSD-3-Clause", "bsd 3 clause": "BSD-3-Clause",
    "3 clause bsd": "BSD-3-Clause", "bsd3": "BSD-3-Clause", "bsd 3": "BSD-3-Clause", "revised bsd": "BSD-3-Clause",
    "bsd new": "BSD-3-Clause", "osi approved bsd": "BSD-3-Clause", "bsd 3 clause new or revised": "BSD-3-Clause",
    "bsd 2 clause": "BSD-2-Clause", "simplified bsd": "BSD-2-Clause", "2 clause bsd": "BSD-2-Clause",
    "apache": "Apache-2.0", "apache 2": "Apache-2.0", "apache 2 0": "Apache-2.0", "apache version 2 0": "Apache-2.0",
    "apache software": "Apache-2.0", "apache software 2 0": "Apache-2.0", "asl 2 0": "Apache-2.0",
    "apache v2": "Apache-2.0", "apache v2 0": "Apache-2.0", "osi approved apache software": "Apache-2.0",
    "isc": "ISC", "isc iscl": "ISC", "python software foundation": "PSF-2.0", "psf": "PSF-2.0",
    "osi approved isc iscl": "ISC", "osi approved python software foundation": "PSF-2.0", "0bsd": "0BSD",
    "zlib": "Zlib", "unlicense": "Unlicense", "the unlicense unlicense": "Unlicense", "cc0 1 0": "CC0-1.0",
    "osi approved the unlicense unlicense": "Unlicense",
}  # fmt: skip
_BSD = "Redistribution and use in source and binary forms"
_LICENCE_TEXTS = (
    (re.compile(r"\s*(?:MIT License|.{0,400}Permission is hereby granted, free of charge)", re.S), "MIT"),
    (re.compile(r"\s*Apache License\s+Version 2\.0"), "Apache-2.0"),
    (
        re.compile(
            r".{0,600}Redistribution and use in source and binary forms.{0,1600}(?:names? of|contributors)", re.S
        ),
        "BSD-3-Clause",
    ),
    (re.compile(r".{0,600}Redistribution and use in source and binary forms", re.S), "BSD-2-Clause"),
)


def _named_licence(text: str) -> str | None:
    """The SPDX identifier or expression for what a package writes into its licence field, or None."""
    text = text.strip()
    if is_expression(text):
        return text
    words = re.sub(r"[^a-z0-9]+", " ", re.sub(r"(?<!un)licen[cs]ed?", " ", text.lower())).strip()
    if words in _LICENCE_NAMES:
        return _LICENCE_NAMES[words]
    return next((name for pattern, name in _LICENCE_TEXTS if pattern.match(text)), None)


_EXPRESSION = re.compile(
    r"[\s(]*[\w.+]*[-\d][\w.+-]*[\s)]*|[\s(]*(?:MIT|ISC|Zlib|Unlicense)[\s)]*"
    r"|[\w.+()\s-]*\b(?:AND|OR|WITH)\b[\w.+()\s-]*"
)


def is_expression(text: str) -> bool:
    """Whether it reads as an SPDX expression, whatever licences it names."""
    return len(text) < 200 and _EXPRESSION.fullmatch(text) is not None


def licence_allowed(expression: str) -> bool:
    """Whether an SPDX expression can be met with allowed licences alone: all sides of an AND, one side of an OR."""
    tokens = re.findall(r"[()]|[\w.+-]+", expression)

    def either() -> bool:
        value = both()
        while tokens[:1] == ["OR"]:
            tokens.pop(0)
            value = both() or value
        return value

    def both() -> bool:
        value = single()
        while tokens[:1] == ["AND"]:
            tokens.pop(0)
            value = single() and value
        return value

    def single() -> bool:
        if not tokens:
            return False
        token = tokens.pop(0)
        if token != "(":
            value = token in ALLOWED_LICENCES
            if tokens[:1] == ["WITH"]:  # an exception only ever permits more
                del tokens[:2]
            return value
        value = either()
        return tokens[:1] == [")"] and bool(tokens.pop(0)) and value

    return either() and not tokens


def python_licence(metadata: str, licence_files: Iterable[str] = ()) -> str | None:
    """The licence stated by a wheel's METADATA: the expression, else the classifiers, else the field, else the file."""
    headers = email.parser.HeaderParser().parsestr(metadata)
    if expression := headers.get("License-Expression"):
        return str(expression).strip()
    field = _named_licence(str(headers.get("License") or ""))
    classified = {
        _named_licence(str(value).removeprefix("License :: ").replace(" :: ", " ")) or str(value).rpartition(":: ")[2]
        for value in headers.get_all("Classifier", [])
        if str(value).startswith("License :: ") and not str(value).endswith("OSI Approved")
    }
    if len(classified) == 1 and field and field.startswith("BSD") and classified == {"BSD-3-Clause"}:
        return field  # the classifier cannot tell the BSD licences apart
    if classified:
        return " AND ".join(sorted(classified))
    return field or next((found for text in licence_files if (found := _named_licence(text))), None)


def npm_licence(package_json: dict[str, Any]) -> str | None:
    """The licence stated by a package.json, also in its two older forms."""
    stated = package_json.get("license") or package_json.get("licenses")
    rows = stated if isinstance(stated, list) else [stated]
    names = [_named_licence(str(row.get("type", "") if isinstance(row, dict) else row or "")) for row in rows]
    return " OR ".join(sorted(name for name in names if name)) if names and all(names) else None


# --- packages ------------------------------------------------------------------------------------------------------


def fetch(package: Package, cache: Path, *, tries: int = 3) -> Path:
    """The package's archive in the cache, downloaded if need be. Raises CorpusError naming the package."""
    folder = cache / package.manager / f"{package.name.replace('/', '+')}-{package.version}"
    if not folder.is_dir():
        if shutil.which("npm") is None and package.manager == "npm":
            raise CorpusError(f"{package.name}: npm is not installed")
        partial = folder.with_name(folder.name + ".partial")
        for attempt in range(tries):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            commands = _pip_commands(package, partial) if package.manager == "pip" else [_npm_command(package, partial)]
            failures = []
            for command in commands:
                try:
                    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=partial)
                except subprocess.TimeoutExpired:
                    failures.append("timed out")
                    continue
                if done.returncode == 0:
                    partial.rename(folder)
                    break
                failures.append((done.stderr.strip().splitlines() or ["no message"])[-1])
            if folder.is_dir():
                break
            if attempt == tries - 1 or all("No matching distribution" in line for line in failures):
                shutil.rmtree(partial, ignore_errors=True)
                raise CorpusError(f"{package.name} {package.version}: download failed: {'; '.join(failures)}")
    archives = sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".tgz"))
    if len(archives) != 1:
        raise CorpusError(f"{package.name} {package.version}: expected one archive in {folder}; delete the folder")
    return archives[0]


def _pip_commands(package: Package, folder: Path) -> list[list[str]]:
    # Wheels only: building an sdist would run the package's code.
    base = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input"]
    base += ["--no-deps", "--only-binary", ":all:", "--implementation", "cp", "--dest", str(folder)]
    platforms = [part for platform in _PLATFORMS for part in ("--platform", platform)]
    wanted = f"{package.name}=={package.version}"
    return [[*base, *platforms, "--python-version", version, wanted] for version in _PYTHON_TARGETS]


def _npm_command(package: Package, folder: Path) -> list[str]:
    options = ["--silent", "--ignore-scripts", "--pack-destination", str(folder)]
    return ["npm", "pack", f"{package.name}@{package.version}", *options]


def read_archive(archive: Path) -> tuple[str | None, list[tuple[str, bytes]], frozenset[str]]:
    """Stated licence, the files worth a look as (path, content), and the paths of everything in the archive.

    Raises CorpusError for an archive that cannot be read.
    """
    try:
        members = dict(_wheel_members(archive) if archive.suffix == ".whl" else _tarball_members(archive))
    except (OSError, zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error) as error:
        raise CorpusError(f"{archive}: cannot be read, delete it and try again: {error}") from error
    if archive.suffix == ".whl":
        info = sorted(path for path in members if ".dist-info/" in path)
        metadata = b"".join(members[path] for path in info if path.count("/") == 1 and path.endswith("/METADATA"))
        texts = [
            members[path].decode("utf-8", "replace") for path in info if re.search(r"/(licen[cs]e|copying)", path, re.I)
        ]
        licence = python_licence(metadata.decode("utf-8", "replace"), texts)
    else:
        try:
            package_json = json.loads(members.get("package.json", b"{}"))
        except ValueError as error:
            raise CorpusError(f"{archive}: its package.json cannot be read: {error}") from error
        licence = npm_licence(package_json)
    sources = [(path, data) for path, data in members.items() if data and not corpus_text.skipped_path(path)]
    return licence, sorted(sources), frozenset(members)


def _wheel_members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(archive) as wheel:
        for entry in wheel.infolist():
            wanted = ".dist-info/" in entry.filename or not corpus_text.skipped_path(entry.filename)
            yield entry.filename, wheel.read(entry) if wanted and entry.file_size < 1_000_000 else b""


def _tarball_members(archive: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(archive, "r:gz") as tarball:
        for entry in tarball:
            path = entry.name.partition("/")[2]  # "package/" or the like
            wanted = entry.isfile() and (path == "package.json" or not corpus_text.skipped_path(path))
            stream = tarball.extractfile(entry) if wanted and entry.size < 1_000_000 else None
            yield path, stream.read() if stream else b""
