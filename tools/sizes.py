"""Line counts of functions and files: `python -m tools.sizes` prints the functions and files above the limits."""

from __future__ import annotations

import ast
import statistics
from dataclasses import dataclass
from pathlib import Path

from tools.arrows import LINKED, PACKAGE, ROOT

MEDIAN_LINES = 10
ELABORATE_LINES = 60
FILE_LINES = 400
FOLDERS = (*LINKED, PACKAGE, "runtime", "tools", "tests", "examples")
SUFFIXES = (".py", ".js", ".css", ".j2", ".c", ".cpp", ".h", ".v")


@dataclass(frozen=True)
class Function:
    """A function's name, file and number of lines without its docstring."""

    name: str
    path: Path
    lines: int

    def __str__(self) -> str:
        """Where it is and how long."""
        return f"{self.path.relative_to(ROOT)}: {self.name} has {self.lines} lines"


def files() -> list[Path]:
    """Every source file, each once."""
    paths = (p for folder in FOLDERS for p in sorted((ROOT / folder).rglob("*")))
    return [p for p in paths if p.suffix in SUFFIXES and p.is_file()]


def long_files() -> list[str]:
    """Files above the limit."""
    counts = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in files()}
    return [f"{p.relative_to(ROOT)} has {n} lines" for p, n in counts.items() if n > FILE_LINES]


def functions(path: Path) -> list[Function]:
    """The functions and methods of a Python file."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [
        Function(node.name, path, _lines(node))
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def _lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None:
        return total
    return total - ((first.end_lineno or first.lineno) - first.lineno + 1)


def source_functions() -> list[Function]:
    """The functions of the package and the tools."""
    return [f for p in files() if p.suffix == ".py" and ROOT / "tests" not in p.parents for f in functions(p)]


def long_elaborates() -> list[Function]:
    """Methods called `elaborate` above the limit."""
    return [f for f in source_functions() if f.name == "elaborate" and f.lines > ELABORATE_LINES]


def median_lines() -> float:
    """The median length of a function."""
    return statistics.median(f.lines for f in source_functions())


def main() -> None:
    """Print the median and everything above a limit."""
    print(f"median function: {median_lines()} lines")
    print(*long_elaborates(), *long_files(), sep="\n")


if __name__ == "__main__":
    main()
