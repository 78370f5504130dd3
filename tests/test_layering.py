"""The import arrows of docs/architecture.md hold for every file, and the linter's tables state them too."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tools.arrows import (
    ALLOWED,
    LINTED,
    banned,
    inside,
    module_name,
    part_of,
    ruff_settings,
    settings_path,
    source_files,
    violations,
)

SOURCES = {module_name(p): p for p in source_files()}


def _base(node: ast.ImportFrom, name: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def imports(name: str, path: Path, *, top_level_only: bool = False) -> set[str]:
    """Modules that a file imports, with `from a import b` as `a.b` where that is a module of ours, else as `a`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = module_level(tree.body) if top_level_only else ast.walk(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, path)
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in SOURCES else base for a in node.names}
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_imports_follow_the_arrows(name: str):
    assert violations(name, imports(name, SOURCES[name])) == []


def test_the_check_sees_forbidden_imports():
    assert violations("intloom.hw.mac.array.mac_array", {"intloom.compiler.ir"}) == ["intloom.compiler.ir"]
    assert violations("intloom.hw.spec.isa", {"intloom.hw.ports", "intloom.common.errors"}) == ["intloom.hw.ports"]
    assert violations("intloom.compiler.ir.graph", {"intloom.hw.generate", "intloom.hw.spec.arith", "numpy"}) == [
        "intloom.hw.generate"
    ]
    assert violations(
        "intloom.sim.golden", {"intloom.compiler.fold.x", "intloom.compiler.ir.ops", "intloom.hw.generate"}
    ) == ["intloom.compiler.fold.x"]
    assert violations("intloom.hw.spec.params", {"numpy", "tomllib"}) == ["numpy"]


def test_common_and_specification_need_the_standard_library_only():
    for name, path in SOURCES.items():
        if part_of(name) in ("intloom.common", "intloom.hw.spec"):
            outside = {i.split(".")[0] for i in imports(name, path)} - {"intloom", "__future__"}
            assert outside <= sys.stdlib_module_names, (name, outside)


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements outside functions and classes, those under `if TYPE_CHECKING:` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from module_level([*node.body, *node.orelse])


def test_type_checking_imports_count_as_imports():
    text = "import a\nif TYPE_CHECKING:\n    import b\ndef f():\n    import c\n"
    found = [n.names[0].name for n in module_level(ast.parse(text).body) if isinstance(n, ast.Import)]
    assert found == ["a", "b"]


def test_there_is_no_import_cycle():
    graph = {}
    for name, path in SOURCES.items():
        # A package's own file runs before its modules, which is no cycle; imports inside functions run later.
        graph[name] = {i for i in imports(name, path, top_level_only=True) if i in SOURCES and i != name}
    # Raises CycleError, which names the modules of the cycle.
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("part", LINTED)
def test_the_linter_states_the_same_arrows(part: str):
    settings = settings_path(part).read_text(encoding="utf-8")
    assert settings == ruff_settings(part), f"{settings_path(part)} is stale: run `make generated`"


@pytest.mark.parametrize("part", LINTED)
def test_the_linter_bans_exactly_what_the_arrows_forbid(part: str):
    for name in SOURCES:
        forbidden = bool(violations(f"{part}.x", {name}))
        by_linter = any(inside(name, b) for b in banned(part))
        # A package that is allowed in part cannot be banned whole: its own file stays free, and the test above sees it.
        assert by_linter == forbidden or any(inside(a, name) for a in (*ALLOWED[part], part)), name
