"""Reads the files that Verilator's coverage writes, and adds them up."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

from intloom.common.atomic_write import write_text

_LINE = re.compile(rb"^C '(.*)' (\d+)$")
_KINDS = {"v_line": "line", "v_branch": "branch", "v_toggle": "toggle"}


@dataclass(frozen=True, order=True)
class Point:
    """One point of the RTL that a run can reach."""

    module: str
    kind: str
    """line, branch or toggle."""
    line: int
    name: str
    """The signal's bit of a toggle, the branch of a branch."""


@cache
def _point(text: bytes) -> Point | None:
    """The point that a line describes; all files of one simulator have the same lines but for their counts."""
    values = dict(part.decode().split("\x02", 1) for part in text.split(b"\x01")[1:])
    page, _, module = values["page"].partition("/")
    return Point(module, _KINDS[page], int(values["l"]), values.get("o", "")) if page in _KINDS else None


def read_points(path: Path) -> Counter[Point]:
    """The points of one file with their counts; instances of a module count together."""
    found: Counter[Point] = Counter()
    for line in path.read_bytes().splitlines():
        match = _LINE.match(line)
        point = _point(match[1]) if match is not None else None
        if match is not None and point is not None:
            found[point] += int(match[2])
    return found


def add_up(paths: Iterable[Path]) -> Counter[Point]:
    """The sum of several files."""
    total: Counter[Point] = Counter()
    for path in paths:
        total.update(read_points(path))
    return total


def load(path: Path) -> Counter[Point]:
    """Counts that `save` wrote; none if there is no file."""
    if not path.exists():
        return Counter()
    rows = json.loads(path.read_text(encoding="utf-8"))
    return Counter({Point(module, kind, line, name): count for module, kind, line, name, count in rows})


def save(counts: Mapping[Point, int], path: Path) -> None:
    """Keep counts for a later run."""
    write_text(path, json.dumps([[*astuple(point), count] for point, count in counts.items()]))
