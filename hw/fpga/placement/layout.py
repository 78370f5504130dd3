"""Positions of cells that can be changed: the paths and the tiles of a placed netlist, always in agreement."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from intloom.hw.fpga.placement.delays import Integers
from intloom.hw.fpga.placement.paths import Paths
from intloom.hw.fpga.placement.tiles import Half, Tile, Tiles, Unit

_MOST_TRIES = 400
"""Tiles in which a free site is looked for, the best ones first."""


class Move(NamedTuple):
    """What is needed to take a move back."""

    unit: Unit
    start: Tile
    half: Half
    """Where the unit was in that tile."""


class Layout:
    """A placed netlist whose LUTs and flip-flops can move to free sites.

    Parameters
    ----------
    module:
        The module of nextpnr's netlist; moves change the sites in it.

    Attributes
    ----------
    paths:
        Delays at the present positions.
    columns, rows:
        Of all tiles that have LUTs.
    """

    def __init__(self, module: dict[str, Any]) -> None:
        self.paths = Paths(module)
        self._tiles = Tiles(self.paths.cells)
        self.columns, self.rows = np.array(self._tiles.tiles(), int).reshape(-1, 2).T

    def tile(self, cell: int) -> Tile:
        """The tile of a cell."""
        return int(self.paths.columns[cell]), int(self.paths.rows[cell])

    def unit(self, cell: int) -> Unit | None:
        """The cells that move with a cell; None for one that cannot move."""
        return self._tiles.unit(cell, self.tile(cell))

    def move_to_best(self, unit: Unit, costs: Integers, *, measure: bool) -> Move | None:
        """Move a unit to the tile with the least cost that has a free site; None if it is there."""
        start = self.tile(unit.cells[0])
        for number in np.argsort(costs, kind="stable")[:_MOST_TRIES]:
            end = int(self.columns[number]), int(self.rows[number])
            if end == start:
                return None
            half = self._tiles.free_half(unit, end)
            if half is not None:
                before = self._tiles.half(unit)
                self._move(unit, end, half)
                self.paths.move(unit.cells, measure=measure)
                return Move(unit, start, before)
        return None

    def take_back(self, moves: Sequence[Move]) -> None:
        """Take back the latest moves, given in their order."""
        for move in reversed(moves):
            self._move(move.unit, move.start, move.half)
            self.paths.move(move.unit.cells, measure=False)
        self.paths.measure()

    def _move(self, unit: Unit, end: Tile, half: Half) -> None:
        self._tiles.move(unit, self.tile(unit.cells[0]), end, half)
        for cell in unit.cells:
            self.paths.columns[cell], self.paths.rows[cell] = end
