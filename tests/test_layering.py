"""The import arrows of docs/architecture.md hold for every file, and the linter's tables state them too."""

from __future__ import annotations

import ast
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("hw", "compiler", "sim", "intloom")

# What each part may import of the project besides itself.
ALLOWED = {
    "hw.spec": (),
    "hw": ("hw.spec",),
    "compiler": ("hw.spec",),
    "sim": ("hw.spec", "hw.generate", "compiler.ir", "compiler.program", "compiler.custom"),
    "intloom": PACKAGES,
}
# Outside libraries that a part must do without.
FOREIGN = {
    "hw.spec": ("amaranth", "numpy", "onnx", "onnxruntime", "cocotb"),
    "hw": ("onnx", "onnxruntime", "cocotb"),
    "compiler": ("amaranth", "cocotb"),
}


def module_name(path: Path) -> str:
    """The dotted name of a source file."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(p): p for package in PACKAGES for p in sorted((ROOT / package).rglob("*.py"))}


def inside(name: str, part: str) -> bool:
    """Whether module `name` is `part` or lies in it."""
    return name == part or name.startswith(part + ".")


def part_of(name: str) -> str:
    """The row of the table that a module belongs to: the longest that fits."""
    return max((p for p in ALLOWED if inside(name, p)), key=len)


def _base(node: ast.ImportFrom, name: str, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    above = package.split(".")[: len(package.split(".")) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def imports(name: str, path: Path, *, top_level_only: bool = False) -> set[str]:
    """Modules that a file imports, with `from a import b` as `a.b` where that is a module of ours, else as `a`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else ast.walk(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, name, path)
            found |= {f"{base}.{a.name}" if f"{base}.{a.name}" in SOURCES else base for a in node.names}
    return found


def violations(name: str, imported: set[str]) -> list[str]:
    """Imports that the table does not allow a module."""
    part = part_of(name)
    ours = [i for i in imported if i.split(".")[0] in PACKAGES]
    allowed = (*ALLOWED[part], part)
    wrong = [i for i in ours if not any(inside(i, a) for a in allowed)]
    return sorted(wrong + [i for i in imported if any(inside(i, f) for f in FOREIGN.get(part, ()))])


@pytest.mark.parametrize("name", SOURCES)
def test_imports_follow_the_arrows(name: str):
    assert violations(name, imports(name, SOURCES[name])) == []


def test_the_check_sees_forbidden_imports():
    assert violations("hw.mac.array", {"compiler.ir"}) == ["compiler.ir"]
    assert violations("hw.spec.isa", {"hw.ports", "hw.spec.errors"}) == ["hw.ports"]
    assert violations("compiler.ir.graph", {"hw.generate", "hw.spec.arith", "numpy"}) == ["hw.generate"]
    assert violations("sim.golden", {"compiler.fold.x", "compiler.ir.ops", "hw.generate"}) == ["compiler.fold.x"]
    assert violations("hw.spec.params", {"numpy", "tomllib"}) == ["numpy"]


def test_the_specification_needs_the_standard_library_only():
    for name, path in SOURCES.items():
        if part_of(name) == "hw.spec":
            outside = {i.split(".")[0] for i in imports(name, path)} - {"hw", "__future__"}
            assert outside <= sys.stdlib_module_names, (name, outside)


def test_there_is_no_import_cycle():
    graph = {}
    for name, path in SOURCES.items():
        # A package's own file runs before its modules, which is no cycle; imports inside functions run later.
        graph[name] = {i for i in imports(name, path, top_level_only=True) if i in SOURCES and i != name}
    # Raises CycleError, which names the modules of the cycle.
    TopologicalSorter(graph).prepare()


def banned_in(folder: str) -> set[str]:
    """The banned-import table that the linter uses in a folder."""
    settings = tomllib.loads((ROOT / folder / "ruff.toml").read_text(encoding="utf-8"))
    return set(settings["lint"]["flake8-tidy-imports"]["banned-api"])


@pytest.mark.parametrize("part", [p for p in ALLOWED if p != "intloom"])
def test_the_linter_states_the_same_arrows(part: str):
    banned = banned_in(part.replace(".", "/"))
    known = {".".join(name.split(".")[:2]) for name in SOURCES} | set(PACKAGES) | set(FOREIGN.get(part, ()))
    for name in known:
        # A package of which some part is allowed cannot be banned whole: its other parts are banned one by one.
        partly = any(inside(a, name) for a in (*ALLOWED[part], part))
        forbidden = not partly and bool(violations(f"{part}.x", {name}))
        assert any(inside(name, b) for b in banned) == forbidden, f"{part}/ruff.toml: {name}"
