"""Reads the test plan and checks it against the components and tests of the repository."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "testplan"


@dataclass(frozen=True)
class Item:
    """A feature or a corner case."""

    text: str
    tests: tuple[str, ...]
    """Tests that cover it: `file::function`."""


@dataclass(frozen=True)
class Entry:
    """The plan of one component."""

    component: str
    """Module in `hw` and class: `dma.load:LoadUnit`."""
    bench: str
    """File with the component's own tests."""
    features: tuple[Item, ...]
    corner_cases: tuple[Item, ...]

    @property
    def items(self) -> tuple[Item, ...]:
        """Features, then corner cases."""
        return self.features + self.corner_cases


def _items(rows: list[dict[str, Any]], bench: str) -> tuple[Item, ...]:
    """Tests without a file are in the bench."""
    return tuple(
        Item(row["text"], tuple(t if "::" in t else f"{bench}::{t}" for t in row.get("tests", []))) for row in rows
    )


def read_entry(path: Path) -> Entry:
    """The plan in one file."""
    data = yaml.safe_load(path.read_text(encoding="utf-8"))
    corner_cases = _items(data.get("corner_cases", []), data["bench"])
    return Entry(data["component"], data["bench"], _items(data["features"], data["bench"]), corner_cases)


def read_plan(folder: Path = FOLDER) -> list[Entry]:
    """All entries, sorted by component."""
    return sorted((read_entry(path) for path in folder.glob("*.yaml")), key=lambda e: e.component)


@cache
def _functions(path: Path) -> frozenset[str]:
    if not path.exists():
        return frozenset()
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(n.name for n in nodes if isinstance(n, ast.FunctionDef) and n.name.startswith("test"))


def exists(test: str, root: Path = ROOT) -> bool:
    """Whether `file::function` is a test of the repository."""
    file, _, name = test.partition("::")
    return name in _functions(root / file)


def problems(entries: list[Entry], components: list[str]) -> Iterator[str]:
    """What is wrong with the plan: components without an entry, items without a test, names of missing tests."""
    planned = [e.component for e in entries]
    for name in components:
        if planned.count(name) != 1:
            yield f"{name} must have one file in docs/testplan, not {planned.count(name)}"
    yield from (f"{name} is in docs/testplan, but not in hw" for name in planned if name not in components)
    for entry in entries:
        if not entry.features:
            yield f"{entry.component} names no feature"
        for item in entry.items:
            if not item.tests:
                yield f"{entry.component}: {item.text!r} names no test"
            yield from (
                f"{entry.component}: {item.text!r} names {t}, which is no test" for t in item.tests if not exists(t)
            )
