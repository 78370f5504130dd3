"""Measurements that are kept in the repository: what came out, when, by which command, and on which sources.

A file has one line of JSON for each measurement. Its hash covers the code of the named files and of all project files
that they import, so a page can tell by itself which measurements are of an older design.
"""

import ast
import hashlib
import io
import json
import subprocess
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text

_DIGITS = 16
"""Hexadecimal digits of a hash."""


@dataclass(frozen=True)
class Evidence:
    """One measurement."""

    values: Any
    """What was measured."""
    date: str
    commit: str
    """The last commit before it."""
    command: str
    sources: tuple[str, ...]
    """Files and folders of the repository that it depends on, together with what they import."""
    digest: str
    """The hash of their code."""
    content: str = ""
    """The hash of what was measured, if it is known without measuring: of Verilog, programs and rules."""

    def is_current(self, root: Path) -> bool:
        """Whether the code has not changed since the measurement."""
        return self.digest == code_hash(root, self.sources)

    def when(self, root: Path) -> str:
        """Date and commit; it says if the measurement is of an older design."""
        older = "" if self.is_current(root) else ", measured on an older design"
        return f"{self.date}, after commit {self.commit}{older}"


def measured(values: Any, command: str, root: Path, sources: Sequence[str], content: str = "") -> Evidence:
    """A measurement made now, on the sources as they are."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    done = subprocess.run(git, cwd=root, capture_output=True, text=True, check=False)
    today = datetime.now(UTC).date().isoformat()
    digest = code_hash(root, tuple(sources))
    return Evidence(values, today, done.stdout.strip() or "unknown", command, tuple(sources), digest, content)


def read(path: Path) -> dict[str, Evidence]:
    """The measurements of a file by name; none if there is no file."""
    if not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))
    return {name: Evidence(**row | {"sources": tuple(row["sources"])}) for name, row in rows.items()}


def write(path: Path, rows: Mapping[str, Evidence]) -> None:
    """Replace a file's measurements."""
    kept = {name: {key: value for key, value in asdict(row).items() if value != ""} for name, row in rows.items()}
    lines = (f"{json.dumps(name)}: {json.dumps(row, sort_keys=True)}" for name, row in sorted(kept.items()))
    write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")


def record(path: Path, name: str, row: Evidence) -> None:
    """Add a measurement, or replace the one of this name."""
    write(path, read(path) | {name: row})


def keep(path: Path, name: str, content: str, root: Path) -> bool:
    """Make a measurement one of today's code if what was measured is equal; tells whether it is current now."""
    row = read(path).get(name)
    if row is None or not row.content or row.content != content:
        return False
    if not row.is_current(root):
        record(path, name, replace(row, digest=code_hash(root, row.sources)))
    return True


def flow_content(design: str, root: Path, flow: str) -> str:
    """The content of a figure that a flow makes of Verilog: it, and the flow's file with its folder's imports."""
    package = ".".join(("intloom", *Path(flow).parent.parts))
    return content_hash([design.encode(), code_hash(root, (flow,), package).encode()])


def content_hash(parts: Iterable[bytes]) -> str:
    """A hash of what is measured, where it is no code of the project."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:_DIGITS]


def own_code(file: Path) -> bytes:
    """What a file says: its bytes, those of Python without comments, docstrings and blank lines."""
    return _code(file)[0].encode() if file.suffix == ".py" else file.read_bytes()


@cache
def code_hash(root: Path, sources: tuple[str, ...], package: str = "") -> str:
    """A hash of the code of files, or of the files of folders, and of all files of the project that they import.

    With `package`, only imports from it count.
    """
    paths = (root / name for name in sources)
    left = [file.resolve() for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    seen: set[Path] = set()
    while left:
        file = left.pop()
        if file not in seen and file.exists():
            seen.add(file)
            imported = (module for module in _code(file)[1] if module.startswith(package))
            left += [known for module in imported if (known := _file(root, module)) is not None]
    total = hashlib.sha256()
    for name, file in sorted((file.relative_to(root.resolve()).as_posix(), file) for file in seen):
        total.update(f"{name}\n{_code(file)[0]}\0".encode())
    return total.hexdigest()[:_DIGITS]


@cache
def _file(root: Path, module: str) -> Path | None:
    """The file of a module; `intloom.hw` is found through its link."""
    path = root.joinpath(*module.split("."))
    files = (p for p in (path.with_name(f"{path.name}.py"), path / "__init__.py") if p.exists())
    return next((p.resolve() for p in files), None)


@cache
def _code(file: Path) -> tuple[str, tuple[str, ...]]:
    """A file's code without comments, docstrings and blank lines, and the modules that it imports."""
    text = file.read_text(encoding="utf-8")
    statements, lines = list(_statements(ast.parse(text))), text.splitlines()
    # The tokenizer takes most of the time.
    for token in tokenize.generate_tokens(io.StringIO(text).readline) if "#" in text else ():
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in statements:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            last = node.end_lineno or node.lineno
            lines[node.lineno - 1 : last] = [""] * (last - node.lineno + 1)
    return "\n".join(line.rstrip() for line in lines if line.strip()), tuple(_imports(statements))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a node, those of inner blocks too."""
    for name in ("body", "orelse", "handlers", "finalbody", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)


def _imports(statements: Iterable[ast.AST]) -> Iterator[str]:
    for node in statements:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
