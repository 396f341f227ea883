"""The fixtures of the editors' tests."""

from tests.editors.conftest import new_neovim

__all__ = ["new_neovim"]
