"""Packages, archives and texts for the tests of the corpus."""

from __future__ import annotations

import io
import json
import random
import tarfile
import zipfile
from pathlib import Path

from diffusion.training import corpus
from diffusion.training.corpus_packages import Package

PYTHON = "".join(f"def area_{n}(width, height):\n    return width * height + offset_{n}\n\n\n" for n in "abcdef")
SCRIPT = "".join(f"export function area{n}(w, h) {{\n  return w * h + offset{n};\n}}\n\n" for n in "ABCDEF")


def program(seed: int, lines: int = 40) -> str:
    """A text of code-like lines that resembles no other seed's."""
    source = random.Random(seed)
    words = ["".join(source.choices("abcdefghijklmnopqrstuvwxyz", k=8)) for _ in range(40)]
    return "".join(f"{source.choice(words)} = {source.choice(words)}({source.choice(words)})\n" for _ in range(lines))


def python_package(name: str = "pkg", *, held_out: bool = False, licence: str = "MIT") -> Package:
    return Package(language="python", name=name, version="1.0", licence=licence, held_out=held_out)


def wheel(path: Path, files: dict[str, str], metadata: str = "License-Expression: MIT") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {"pkg-1.0.dist-info/METADATA": f"Name: pkg\n{metadata}\n\nbody", **files}.items():
            archive.writestr(name, text)
    return path


def tarball(path: Path, files: dict[str, str], licence: object = "MIT") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {"package.json": json.dumps({"license": licence}), **files}.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return path


def files_of(texts: dict[str, str], package: Package) -> list[corpus.SourceFile]:
    return [corpus.SourceFile(package=package, path=path, language="python", text=text) for path, text in texts.items()]


def names(kept: list[corpus.SourceFile]) -> set[str]:
    return {file.path for file in kept}
