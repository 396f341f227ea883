"""The tiny model of the engine tests, and a small corpus on disk."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.engine.conftest import TEXTS, Tiny, narrow, tiny

__all__ = ["Tiny", "corpus", "narrow", "tiny"]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for split, texts in (("train", TEXTS[:-2]), ("heldout", TEXTS[-2:])):
        lines = [json.dumps({"package": "p", "path": f"p/{i}.py", "text": text}) for i, text in enumerate(texts)]
        (folder / f"python.{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder
