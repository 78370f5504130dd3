"""Site assignment of DSP and RAM blocks by linear assignment, after a first placement.

The static placer of nextpnr legalizes blocks one after the other. In a nearly full chip the last blocks get sites far
from their logic, and their nets account for half of the wire length. This module assigns all blocks of one type at once
to the sites that they occupy, for the shortest nets. The design is then placed again with the blocks fixed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from intloom.common.extras import require_extra
from intloom.hw.fpga.blocks import MEMORY, MULTIPLIER
from intloom.hw.fpga.netlist import change_modules

_KINDS = (MULTIPLIER, MEMORY)
_SITE = re.compile(r"X(\d+)/Y(\d+)/")
_MOST_READERS = 2000
"""Nets with more cells, such as clock and reset, are ignored: they have no influence on the best site."""

Point = tuple[int, int]


class Placement:
    """The sites of all cells and the cells of each net; blocks can exchange sites."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.kinds: dict[str, str] = {}
        self.sites: dict[str, str] = {}
        nets: dict[int, set[str]] = {}
        for name, cell in module["cells"].items():
            site = cell["attributes"].get("NEXTPNR_BEL")
            if site is None:
                continue
            self.kinds[name], self.sites[name] = cell["type"], site
            for bits in cell["connections"].values():
                for bit in bits:
                    if isinstance(bit, int):
                        nets.setdefault(bit, set()).add(name)
        self._nets = [cells for cells in nets.values() if 2 <= len(cells) <= _MOST_READERS]

    def blocks(self, kind: str) -> list[str]:
        """The cells of a kind."""
        return [name for name, found in self.kinds.items() if found == kind]

    def length(self) -> int:
        """Half the perimeter of each net's bounding box, summed up."""
        return sum(box.width + box.height for box in map(self._box, self._nets))

    def surroundings(self, kind: str) -> Iterator[tuple[set[str], _Box]]:
        """For each net that leads to blocks of this kind: these, and the box around all others on it.

        Where there are no others, the blocks themselves have to do.
        """
        blocks = set(self.blocks(kind))
        for cells in self._nets:
            here = cells & blocks
            if here:
                yield here, self._box(cells - here or here)

    def _box(self, cells: set[str]) -> _Box:
        columns, rows = zip(*(point_of(self.sites[cell]) for cell in cells), strict=True)
        return _Box(min(columns), max(columns), min(rows), max(rows))


class _Box(NamedTuple):
    left: int
    right: int
    bottom: int
    top: int

    @property
    def width(self) -> int:
        return self.right - self.left

    @property
    def height(self) -> int:
        return self.top - self.bottom


@cache
def point_of(site: str) -> Point:
    """Column and row of a site as nextpnr names it."""
    match = _SITE.match(site)
    assert match is not None, site
    return int(match[1]), int(match[2])


def rearrange(placed: Path, netlist: Path) -> tuple[int, int]:
    """Bind the blocks of a netlist to sites, by what nextpnr wrote of its first placement.

    Returns the lengths of all nets before and after. Where nothing can be gained, no block is bound.
    """
    (module,) = json.loads(placed.read_text(encoding="utf-8"))["modules"].values()
    placement = Placement(module)
    before = placement.length()
    for kind in _KINDS:
        _assign(placement, kind)
    after = placement.length()
    if after < before:
        _bind(netlist, {name: placement.sites[name] for kind in _KINDS for name in placement.blocks(kind)})
    return before, after


def _assign(placement: Placement, kind: str) -> None:
    """Assign the blocks of a kind to their sites for the shortest distance to their nets.

    Nets between blocks of one kind are ignored; if the total wire length increases, the assignment is undone.
    """
    blocks, before, taken = placement.blocks(kind), placement.length(), placement.sites.copy()
    if not blocks:
        return
    rows = {name: row for row, name in enumerate(blocks)}
    sites = [placement.sites[name] for name in blocks]
    x, y = np.array([point_of(site) for site in sites]).T
    far = np.zeros((len(blocks), len(sites)))
    for here, box in placement.surroundings(kind):
        distance = _outside(x, box.left, box.right) + _outside(y, box.bottom, box.top)
        for name in here:
            far[rows[name]] += distance
    for row, column in enumerate(_best_order(far)):
        placement.sites[blocks[row]] = sites[column]
    if placement.length() > before:
        placement.sites = taken


def _best_order(costs: np.ndarray) -> list[int]:
    """A column for each row, so that the sum of their costs is the least."""
    require_extra("fpga", "scipy.optimize")
    # Imported here, because scipy belongs to an optional extra.
    from scipy.optimize import linear_sum_assignment

    _, columns = linear_sum_assignment(costs)
    return [int(column) for column in columns]


def _outside(values: np.ndarray, low: int, high: int) -> np.ndarray:
    """How far each value lies outside a range."""
    return np.maximum(0, np.maximum(low - values, values - high))


def _bind(netlist: Path, sites: dict[str, str]) -> None:
    def bind(module: dict[str, Any]) -> int:
        bound = module["cells"].keys() & sites.keys()
        for name in bound:
            module["cells"][name]["attributes"]["BEL"] = sites[name]
        return len(bound)

    change_modules(netlist, bind)
