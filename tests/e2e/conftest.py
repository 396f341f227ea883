"""The fixtures of the editors' tests, and a workspace that would like to run code in our processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.editors.conftest import new_neovim, shared_neovim, version

__all__ = ["new_neovim", "poisoned", "shared_neovim", "version"]


@pytest.fixture
def poisoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project and working directory holds packages and modules of our names; a file, the one returned, appears
    as soon as any of them is imported."""
    project, marker = tmp_path / "project", tmp_path / "marker"
    poison = f"open({str(marker)!r}, 'a').write(__file__ + '\\n')\n"
    for package in ("diffusion", "grammars", "lsp_server", "asyncio", "pygls", "torch"):
        (project / package).mkdir(parents=True)
        for module in ("__init__", "__main__", "api", "server", "parser", "engine"):
            (project / package / f"{module}.py").write_text(poison)
    (project / "sitecustomize.py").write_text(poison)
    monkeypatch.chdir(project)
    return marker
