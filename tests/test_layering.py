"""The imports of every file follow the table of docs/architecture.md: hardware, compiler and simulation stay apart."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = "intloom"
LINKED = ("hw", "compiler", "sim")
"""Folders of the repository's top level that are imported as `intloom.hw`, ... through links in `intloom/`."""
ALLOWED: dict[str, tuple[str, ...]] = {
    "intloom.common": (),
    "intloom.common.cache": ("intloom.common",),
    "intloom.hw.spec": ("intloom.common",),
    "intloom.hw": ("intloom.common", "intloom.hw.spec"),
    "intloom.compiler": ("intloom.common", "intloom.hw.spec"),
    "intloom.sim": (
        "intloom.common",
        "intloom.hw.spec",
        "intloom.hw.generate",
        "intloom.compiler.ir",
        "intloom.compiler.program",
        "intloom.compiler.custom",
    ),
    "intloom": ("intloom",),
}
"""What each part may import of the project besides itself."""
STANDARD_LIBRARY_ONLY = ("intloom.common", "intloom.hw.spec")
FOREIGN: dict[str, tuple[str, ...]] = {
    "intloom.hw": ("cocotb", "onnx", "onnxruntime"),
    "intloom.compiler": ("amaranth", "cocotb"),
}
"""Third-party libraries that a part must not import."""


def name_of(path: Path) -> str:
    """The dotted name under which a source file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    prefix = () if parts[0] == PACKAGE else (PACKAGE,)
    return ".".join([*prefix, *(parts[:-1] if parts[-1] == "__init__" else parts)])


SOURCES = {name_of(p): p for folder in (*LINKED, PACKAGE) for p in sorted((ROOT / folder).rglob("*.py"))}


def module_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements outside functions and classes, those under `if TYPE_CHECKING:` included."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from module_level([*node.body, *node.orelse])


def imports(name: str, *, top_level_only: bool = False) -> Iterator[str]:
    """Modules that a file imports, with `from a import b` as `a.b` where that is a module of ours, else as `a`."""
    tree = ast.parse(SOURCES[name].read_text(encoding="utf-8"))
    for node in module_level(tree.body) if top_level_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (inner if inner in SOURCES else node.module for inner in names)


def inside(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def violations(name: str, imported: set[str]) -> list[str]:
    """Imports that the tables do not allow a module: the longest part that fits counts."""
    part = max((p for p in ALLOWED if inside(name, p)), key=len)
    ours = {i for i in imported if inside(i, PACKAGE)}
    wrong = {i for i in ours if not any(inside(i, a) for a in (*ALLOWED[part], part))}
    foreign = {i for i in imported - ours if any(inside(i, f) for f in FOREIGN.get(part, ()))}
    if part in STANDARD_LIBRARY_ONLY:
        foreign = {i for i in imported - ours if i.partition(".")[0] not in sys.stdlib_module_names}
    return sorted(wrong | foreign)


def test_imports_follow_the_table():
    wrong = {name: violations(name, set(imports(name))) for name in SOURCES}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    ("name", "imported", "wrong"),
    [
        ("intloom.hw.mac.array.mac_array", "intloom.compiler.ir", True),
        ("intloom.hw.spec.isa", "intloom.hw.ports", True),
        ("intloom.hw.spec.isa", "intloom.common.errors", False),
        ("intloom.hw.spec.params", "numpy", True),
        ("intloom.hw.spec.params", "tomllib", False),
        ("intloom.compiler.ir.graph", "intloom.hw.generate", True),
        ("intloom.compiler.ir.graph", "amaranth.hdl", True),
        ("intloom.sim.golden", "intloom.compiler.fold.x", True),
        ("intloom.sim.golden", "intloom.compiler.ir.ops", False),
        ("intloom.flow", "intloom.sim.golden", False),
    ],
)
def test_the_check_sees_forbidden_imports(name: str, imported: str, wrong: bool):
    assert violations(name, {imported}) == [imported] * wrong


def test_there_is_no_import_cycle():
    """A package's own file runs before its modules, which is no cycle; imports inside functions run later."""
    graph = {name: {i for i in imports(name, top_level_only=True) if i in SOURCES and i != name} for name in SOURCES}
    # Raises CycleError, which names the modules of the cycle.
    TopologicalSorter(graph).prepare()
