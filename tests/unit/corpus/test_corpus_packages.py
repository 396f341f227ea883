"""The corpus: which licences pass, how packages are read, downloads and manifests that fail."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from corpus_samples import PYTHON, SCRIPT, program, python_package, tarball, wheel

from diffusion.training import corpus, corpus_packages
from diffusion.training.corpus_packages import LANGUAGES, CorpusError, Package


@pytest.mark.parametrize(
    ("expression", "allowed"),
    [
        ("MIT", True),
        ("GPL-3.0-only", False),
        ("MIT OR GPL-3.0-or-later", True),
        ("MIT AND GPL-3.0-or-later", False),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", True),
        ("MIT OR Apache-2.0 AND MPL-2.0", True),
        ("(MIT OR Apache-2.0) AND MPL-2.0", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MPL-2.0 WITH something", False),
        ("MIT AND", False),
        ("(MIT", False),
        ("MIT Apache-2.0", False),
        ("", False),
    ],
)
def test_licence_allowed(expression: str, allowed: bool) -> None:
    assert corpus_packages.licence_allowed(expression) is allowed


@pytest.mark.parametrize(
    ("metadata", "licence"),
    [
        ("License-Expression: BSD-3-Clause\nLicense: GPL\n", "BSD-3-Clause"),
        ("Classifier: License :: OSI Approved :: Apache Software License\n", "Apache-2.0"),
        ("License: BSD 2-Clause\nClassifier: License :: OSI Approved :: BSD License\n", "BSD-2-Clause"),
        ("Classifier: License :: OSI Approved\nLicense: MIT License\n", "MIT"),
        ("License: Apache License, Version 2.0\n", "Apache-2.0"),
        ("License: Unlicense\n", "Unlicense"),
        ("License: Apache-2.0 OR GPL-2.0-or-later\n", "Apache-2.0 OR GPL-2.0-or-later"),
        ("License: see the file\n", None),
        ("Name: pkg\n", None),
    ],
)
def test_python_licence(metadata: str, licence: str | None) -> None:
    assert corpus_packages.python_licence(metadata) == licence


def test_any_copyleft_classifier_spoils_the_licence() -> None:
    stated = corpus_packages.python_licence(
        "Classifier: License :: OSI Approved :: MIT License\n"
        "Classifier: License :: OSI Approved :: GNU General Public License v3 (GPLv3)\n"
    )
    assert stated is not None
    assert not corpus_packages.licence_allowed(stated)


def test_licence_file_counts_only_where_metadata_is_silent() -> None:
    text = "MIT License\n\nPermission is hereby granted, free of charge, to any person"
    assert corpus_packages.python_licence("Name: pkg\n", [text]) == "MIT"
    assert corpus_packages.python_licence("License-Expression: GPL-3.0-only\n", [text]) == "GPL-3.0-only"


@pytest.mark.parametrize(
    ("package_json", "licence"),
    [
        ({"license": "ISC"}, "ISC"),
        ({"license": {"type": "MIT", "url": "x"}}, "MIT"),
        ({"licenses": [{"type": "MIT"}, {"type": "Apache-2.0"}]}, "Apache-2.0 OR MIT"),
        ({"license": "SEE LICENSE IN LICENSE.md"}, None),
        ({}, None),
    ],
)
def test_npm_licence(package_json: dict[str, object], licence: str | None) -> None:
    assert corpus_packages.npm_licence(package_json) == licence


def test_read_package_checks_the_licence(tmp_path: Path) -> None:
    files = {"pkg/a.py": PYTHON, "pkg/_vendor/b.py": PYTHON, "pkg/c.py": "x"}
    archive = wheel(tmp_path / "pkg.whl", files)
    dropped: corpus.Dropped = Counter()
    read = corpus.read_package(python_package(), archive, LANGUAGES, dropped)
    assert [file.path for file in read] == ["pkg/a.py"]
    assert dropped == {("python", "too short"): 1}
    for licence, metadata in (
        ("BSD-3-Clause", "License-Expression: MIT"),
        ("GPL-3.0-only", "License-Expression: GPL-3.0-only"),
    ):
        archive = wheel(tmp_path / "other.whl", files, metadata)
        with pytest.raises(CorpusError, match=r"pkg 1.0"):
            corpus.read_package(python_package(licence=licence), archive, LANGUAGES, dropped)


def test_compiled_javascript_beside_typescript_sources_is_dropped(tmp_path: Path) -> None:
    files = {f"src/{name}.{extension}": SCRIPT for name in "abc" for extension in ("ts", "js")} | {"tool.py": PYTHON}
    package = Package(language="typescript", name="pkg", version="1.0", licence="MIT")
    dropped: corpus.Dropped = Counter()
    read = corpus.read_package(package, tarball(tmp_path / "pkg.tgz", files), LANGUAGES, dropped)
    assert [(file.path, file.language) for file in read] == [(f"src/{name}.ts", "typescript") for name in "abc"]
    assert dropped == {("javascript", "transpiled"): 3}


def test_manifest_is_valid_and_its_licences_are_allowed() -> None:
    packages = corpus_packages.load_manifest()
    assert all(corpus_packages.licence_allowed(package.licence) for package in packages)
    for language in LANGUAGES:
        assert sum(package.held_out for package in packages if package.language == language) >= 4


ROW = '{ name = "a", version = "1", licence = "MIT" }'


@pytest.mark.parametrize("text", ["python = [", 'python = [{ name = "a" }]', f"python = [{ROW}, {ROW}]"])
def test_bad_manifest(tmp_path: Path, text: str) -> None:
    path = tmp_path / "corpus.toml"
    path.write_text(text)
    with pytest.raises(CorpusError, match=r"corpus.toml"):
        corpus_packages.load_manifest(path)


def test_build_from_the_cache(tmp_path: Path) -> None:
    cache, destination = tmp_path / "cache", tmp_path / "corpus"
    wheel(cache / "pip" / "held-1.0" / "held.whl", {f"held/{n}.py": program(n) for n in range(3)})
    wheel(cache / "pip" / "train-1.0" / "train.whl", {f"train/{n}.py": program(n) for n in range(2, 8)})
    packages = [python_package("train"), python_package("held", held_out=True)]
    first = corpus.build(destination, packages, languages=["python"], cache=cache)
    written = {path.name: path.read_bytes() for path in destination.iterdir()}
    assert set(written) == {"python.train.jsonl", "python.heldout.jsonl", "manifest.lock.json"}
    rows = [json.loads(line) for line in written["python.train.jsonl"].splitlines()]
    assert {row["path"]: row["text"] for row in rows} == {f"train/{n}.py": program(n) for n in range(3, 8)}
    assert {row["package"] for row in rows} == {"train"}
    assert json.loads(written["manifest.lock.json"]) == first
    assert corpus.build(destination, packages[::-1], languages=["python"], cache=cache) == first
    assert {path.name: path.read_bytes() for path in destination.iterdir()} == written


def test_a_failing_download_is_tried_again_and_then_names_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = [1, 1, 1, 1, 0]  # two targets are asked for in every try

    def run(command: list[str], *, cwd: Path, **_: object) -> subprocess.CompletedProcess[str]:
        code = outcomes.pop(0)
        if code == 0:
            wheel(cwd / "pkg.whl", {})
        return subprocess.CompletedProcess(command, code, "", "first line\nconnection refused\n")

    monkeypatch.setattr(subprocess, "run", run)
    assert corpus_packages.fetch(python_package(), tmp_path) == tmp_path / "pip" / "pkg-1.0" / "pkg.whl"
    assert corpus_packages.fetch(python_package(), tmp_path).is_file()  # from the cache: nothing left in `outcomes`
    outcomes += [1] * 6
    with pytest.raises(CorpusError, match=r"other 1\.0: download failed: connection refused"):
        corpus_packages.fetch(python_package("other"), tmp_path)
    assert not outcomes
    assert not list((tmp_path / "pip").glob("other*"))


def test_a_broken_package_is_named_and_can_be_left_out(tmp_path: Path) -> None:
    good = wheel(tmp_path / "pip" / "good-1.0" / "good.whl", {"good/a.py": PYTHON})
    broken = tmp_path / "pip" / "broken-1.0" / "broken.whl"
    broken.parent.mkdir()
    broken.write_bytes(good.read_bytes()[:100])
    packages = [python_package("good"), python_package("broken")]
    with pytest.raises(CorpusError, match=r"broken.whl"):
        corpus.build(tmp_path / "out", packages, languages=["python"], cache=tmp_path)
    assert not (tmp_path / "out").exists()
    lock = corpus.build(tmp_path / "out", packages, languages=["python"], cache=tmp_path, keep_going=True)
    assert isinstance(lock["failed"], dict)
    assert list(lock["failed"]) == ["pip:broken"]
