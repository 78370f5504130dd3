"""Reads the files that Verilator's coverage writes, and adds them up."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from intloom.common.atomic_write import write_text

_TEXT = re.compile(rb"^C '(.*)' \d+$", re.MULTILINE)
_COUNT = re.compile(rb"^C '.*' (\d+)$", re.MULTILINE)
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


def _points(path: Path) -> list[Point | None]:
    """The points of one file's lines; instances of a module have equal points."""
    return [_point(text) for text in _TEXT.findall(path.read_bytes())]


def add_up(paths: Iterable[Path]) -> Counter[Point]:
    """The sum of several files."""
    total: Counter[Point] = Counter()
    by_lines: dict[int, tuple[Path, NDArray[np.int64]]] = {}
    # All files of one simulator have the same points in the same order: only their counts are read.
    for path in paths:
        counted = np.array(_COUNT.findall(path.read_bytes()), np.int64)
        first, counts = by_lines.get(len(counted), (path, np.zeros(len(counted), np.int64)))
        by_lines[len(counted)] = first, counts + counted
    for first, counts in by_lines.values():
        for point, count in zip(_points(first), counts.tolist(), strict=True):
            if point is not None:
                total[point] += count
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
