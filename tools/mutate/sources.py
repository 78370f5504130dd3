"""The code that the outcome of a bench depends on: two files, and what they use of others below `hw` and `tests/hw`.

Of other files only the definitions that are used count, with all that these use. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDERS = {"intloom.hw": "hw", "tests.hw": "tests/hw"}
"""Packages whose modules count, and where they are."""


@dataclass(frozen=True)
class Statement:
    """A statement of a module, such as a class or an assignment."""

    code: str
    binds: frozenset[str]
    """Names that it defines."""
    uses: frozenset[str]
    """Names that it reads, and `name.member` for members."""


@dataclass(frozen=True)
class Source:
    """A module: its statements but the imports, and of each imported name the module and the name there."""

    statements: tuple[Statement, ...]
    imports: dict[str, tuple[str, str]]


def code_used(files: Iterable[str], root: Path) -> list[str]:
    """These files as a whole and everything that they use, one text for each statement, in an order of its own."""
    left: list[tuple[str, str]] = [(file, "") for file in files]
    seen: set[tuple[str, str]] = set()
    found: set[tuple[str, str]] = set()
    while left:
        wanted = left.pop()
        if wanted in seen:
            continue
        seen.add(wanted)
        file, name = wanted
        source = _read(root, file)
        if name in source.imports:
            left += _imported(root, source, name)
        for statement in source.statements:
            # What defines nothing may have an effect: an assertion, an entry in a table.
            if not name or name in statement.binds or not statement.binds:
                found.add((file, statement.code))
                left += (use for text in statement.uses for use in _used(root, file, source, text))
    return [f"{file}\n{code}" for file, code in sorted(found)]


def _used(root: Path, file: str, source: Source, text: str) -> Iterator[tuple[str, str]]:
    """Where a used name is defined: the file, and the name there; no name stands for the whole file."""
    name, _, member = text.partition(".")
    if name in source.imports:
        yield from _imported(root, source, name, member)
    elif any(name in statement.binds for statement in source.statements):
        yield file, name


def _imported(root: Path, source: Source, name: str, member: str = "") -> Iterator[tuple[str, str]]:
    module, original = source.imports[name]
    for path, wanted in ((f"{module}.{original}".rstrip("."), member), (module, original)):
        if (file := _file(root, path)) is not None:
            inner = _file(root, f"{path}.{wanted}") if wanted else None
            yield (file, wanted) if inner is None else (inner, "")
            return


@cache
def _file(root: Path, module: str) -> str | None:
    """The file of a module or of a package below the folders."""
    for package, folder in FOLDERS.items():
        if module == package or module.startswith(f"{package}."):
            path = folder + module.removeprefix(package).replace(".", "/")
            return next((f for f in (f"{path}.py", f"{path}/__init__.py") if (root / f).exists()), None)
    return None


@cache
def _read(root: Path, file: str) -> Source:
    text = (root / file).read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = _lines(text, tree)
    nodes = (node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom))
    return Source(tuple(s for node in nodes if (s := _statement(node, lines)).code), dict(_imports(tree)))


def _imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Also those inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.asname or alias.name.partition(".")[0], (alias.name, "")) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((alias.asname or alias.name, (node.module, alias.name)) for alias in node.names)


def _statement(node: ast.stmt, lines: list[str]) -> Statement:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    code = "\n".join(filter(None, lines[first - 1 : node.end_lineno]))
    return Statement(code, frozenset(_binds(node)), frozenset(_uses(node)))


def _binds(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))


def _uses(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        yield f"{node.value.id}.{node.attr}"
        return
    if isinstance(node, ast.Name):
        yield node.id
    for child in ast.iter_child_nodes(node):
        yield from _uses(child)


def _lines(text: str, tree: ast.Module) -> list[str]:
    """The lines of the text, without comments and docstrings."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(tree):
        # A docstring of a module, class or function, or a string behind an attribute.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return [line.rstrip() for line in lines]
