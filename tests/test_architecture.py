"""The invariants of the design, by their numbers, as far as an import graph or a fresh process can show them."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OURS = {"lsp_server", "diffusion", "grammars"}
LSP = {"pygls", "lsprotocol"}
HEAVY = {"torch", "transformers", "optimum", "safetensors", "tokenizers"}

MAY_KNOW_LSP = {f"lsp_server/{name}.py" for name in ("server", "convert", "settings", "protocol")}
WITHOUT_TORCH = (
    "diffusion/api.py", "diffusion/canvas.py", "diffusion/layouts.py", "diffusion/profiles.py",
    "diffusion/scheduler.py", "diffusion/wire.py", "diffusion/server.py", "diffusion/facts.py",
    "diffusion/guard.py", "diffusion/http_server.py", "diffusion/other_tools.py", "diffusion/tool_forms.py",
    "diffusion/tool_port.py", "diffusion/crashes.py", "diffusion/listening.py", "diffusion/routes.py",
    "diffusion/model_files.py", "diffusion/chat_layout.py", "diffusion/healing.py", "diffusion/alignment.py",
    *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "diffusion/remote").glob("[a-z]*.py"))),
    "diffusion/checkpoint.py", "diffusion/memory_plan.py", "diffusion/plan_report.py", "diffusion/quantisation.py",
    "diffusion/hub.py", "diffusion/model_store.py", "diffusion/model_command.py", "diffusion/snapshot.py",
)  # fmt: skip


def sources(package: str) -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((ROOT / package).rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> set[str]:
    """Full names of the modules imported anywhere in a module, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def top_level(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def loaded_by(statement: str) -> set[str]:
    """Top-level modules in a fresh process after a statement."""
    program = f"{statement}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return top_level(set(json.loads(done.stdout)))


def test_1_the_language_server_loads_no_model_library() -> None:
    modules = "lsp_server.server, lsp_server.scripted, lsp_server.engine_client, lsp_server.context"
    assert not loaded_by(f"import {modules}") & HEAVY
    for name, tree in sources("lsp_server"):
        assert not top_level(imports(tree)) & HEAVY, name


def test_1_the_command_itself_loads_next_to_nothing() -> None:
    assert not loaded_by("import lsp_server.__main__") & (HEAVY | LSP | {"rich", "h11", "tree_sitter", "asyncio"})


def test_2_lsp_libraries_stay_at_the_border() -> None:
    for package in OURS:
        for name, tree in sources(package):
            if top_level(imports(tree)) & LSP:
                assert name in MAY_KNOW_LSP or name.startswith("lsp_server/features/"), name


def test_3_what_both_processes_share_is_standard_library_only() -> None:
    tree = ast.parse((ROOT / "diffusion/api.py").read_text(encoding="utf-8"))
    assert top_level(imports(tree)) <= sys.stdlib_module_names


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_3_modules_that_need_no_torch_import_none(name: str) -> None:
    module = name.removesuffix(".py").replace("/", ".")
    assert "torch" not in loaded_by(f"import {module}")


def test_dependencies_run_one_way() -> None:
    allowed = {
        "lsp_server": {"lsp_server", "grammars", "diffusion"},
        "grammars": {"grammars"},
        "diffusion": {"diffusion", "grammars"},
    }
    for package, may_use in allowed.items():
        for name, tree in sources(package):
            used = imports(tree)
            assert top_level(used) & OURS <= may_use, name
            if package == "lsp_server":
                beyond = {module for module in used if module.startswith("diffusion") and ".api" not in module}
                assert not beyond, f"{name} knows more of the engine than its interface: {beyond}"


def test_8_token_ids_stand_in_profiles_only() -> None:
    """The special ids of the 26B checkpoint (105, 106, 262144) are numbers nobody else may know."""
    for package in OURS:
        for name, tree in sources(package):
            numbers = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
            assert 262_144 not in numbers, name


def test_11_children_start_isolated_from_the_working_directory() -> None:
    """`sys.executable` is only ever started with -I."""
    for package in OURS:
        for name, tree in sources(package):
            for node in ast.walk(tree):
                if isinstance(node, ast.List | ast.Tuple) and node.elts and _is_interpreter(node.elts[0]):
                    second = node.elts[1] if len(node.elts) > 1 else None
                    assert isinstance(second, ast.Constant), f"{name}:{node.lineno}"
                    assert second.value == "-I", f"{name}:{node.lineno}"


def test_11_a_workspace_cannot_put_code_on_our_path(tmp_path: Path) -> None:
    """Also where somebody has put it there: the command takes the working directory out again."""
    (tmp_path / "lsp_server").mkdir()
    program = (
        "import sys; import lsp_server.__main__ as command; sys.path.insert(0, ''); sys.path.insert(0, '.')\n"
        "command._forget_working_directory(); print(sys.path)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    entries = ast.literal_eval(done.stdout)
    assert not {"", ".", str(tmp_path)} & set(entries)


def _is_interpreter(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"
