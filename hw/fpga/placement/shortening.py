"""Shorter paths in a placed netlist: LUTs and flip-flops on the longest paths move to free sites.

nextpnr's placers first compute a position for every cell, then look for legal sites near them. In a nearly full chip,
some cells get sites far from all that they are connected to, and the refinement that follows moves cells by short
distances only. This module takes the longest paths one after the other and moves their cells toward each other. It
then moves the cells of all long paths at once, and repeats both as long as that helps. Moves that do not help are
taken back. Chains, multipliers and memories keep their sites.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from intloom.common.atomic_write import write_text
from intloom.hw.fpga.placement import delays
from intloom.hw.fpga.placement.delays import Integers
from intloom.hw.fpga.placement.gather import gather
from intloom.hw.fpga.placement.layout import Layout, Move
from intloom.hw.fpga.placement.tiles import Unit

_TARGET = 9_500
"""Paths of at most this delay, in ps, are left alone."""
_MARGIN = 1_500
"""Cells on a path may move away from other cells as long as paths to these are shorter than it by this."""
_SPREAD = 3_000
"""Paths that are shorter than the longest one by at most this move at once."""
_LEAST_GAIN = 0.03
"""Share of the excess that must go for another round."""
_MOST_CONNECTIONS = 5_000
"""Cells with more connections keep their sites: each of their moves would have to be computed for all of these."""
_STEP = 4
"""Delay, in ps, that a tile's distance from the cell before counts as, to choose among equal ones."""


class Shortened(NamedTuple):
    """Longest path before and after, in ps, and the number of moves."""

    before: int
    after: int
    moves: int


def shorten(placed: Path) -> Shortened:
    """Shorten the longest paths of nextpnr's netlist, which is written again."""
    netlist = json.loads(placed.read_text(encoding="utf-8"))
    (module,) = netlist["modules"].values()
    result = _Shortening(module).run()
    write_text(placed, json.dumps(netlist))
    return result


class _Shortening:
    def __init__(self, module: dict[str, Any]) -> None:
        self._layout = Layout(module)
        self._paths = self._layout.paths

    def run(self) -> Shortened:
        """Shorten single paths, then all long ones at once and single ones again, as long as that helps."""
        before = self._longest_path()
        moves = len(self._one_by_one())
        while True:
            excess = self._excess()
            made = gather(self._layout, max(_TARGET, self._longest_path() - _SPREAD))
            made += self._one_by_one()
            now = self._excess()
            if now >= excess:
                self._layout.take_back(made)
                return Shortened(before, self._longest_path(), moves)
            moves += len(made)
            if now > (1 - _LEAST_GAIN) * excess:
                return Shortened(before, self._longest_path(), moves)

    def _longest_path(self) -> int:
        return int(self._paths.total.max())

    def _excess(self) -> float:
        """The squares of what each path has above the target: one long path counts more than many short ones."""
        above = np.maximum(self._paths.total - _TARGET, 0).astype(float)
        return float((above * above).sum())

    def _one_by_one(self) -> list[Move]:
        """Take the longest path that has not been found to be as short as it gets, until all are or are short."""
        kept: list[Move] = []
        done = np.zeros(len(self._paths.total), bool)
        excess = self._excess()
        while True:
            open_paths = np.where(done, 0, self._paths.total)
            longest = int(open_paths.argmax())
            if open_paths[longest] <= _TARGET:
                return kept
            for cells in self._orders(longest):
                made = list(self._draw_together(cells, int(open_paths[longest]) - _MARGIN))
                now = self._excess()
                if made and now < excess:
                    excess = now
                    kept += made
                    break
                if made:
                    self._layout.take_back(made)
            else:
                done[longest] = True

    def _orders(self, connection: int) -> Iterator[list[int]]:
        cells = self._paths.trace(connection)
        yield cells
        yield cells[::-1]

    def _draw_together(self, cells: list[int], limit: int) -> Iterator[Move]:
        """Move each cell near the one before it, the first one near the second.

        Among sites whose paths have at most the delay `limit`, the nearest one counts as best.
        """
        moved = None
        for number, cell in enumerate(cells):
            unit = self._layout.unit(cell)
            if unit is None or unit == moved:
                continue
            longest = self._longest(unit)
            if longest is None:
                continue
            column, row = self._layout.tile(cells[number - 1] if number else cells[1])
            distance = np.abs(self._layout.columns - column) + np.abs(self._layout.rows - row)
            move = self._layout.move_to_best(unit, np.maximum(longest, limit) + _STEP * distance, measure=True)
            if move is not None:
                moved = unit
                yield move

    def _longest(self, unit: Unit) -> Integers | None:
        """Delay of the longest path through a unit, for each tile that it may be in; None for too many connections."""
        paths = self._paths
        inputs = [c for cell in unit.cells for c in paths.inputs(cell) if paths.driver[paths.net[c]] not in unit.cells]
        outputs = [c for cell in unit.cells for c in paths.outputs(cell) if paths.reader[c] not in unit.cells]
        if len(inputs) + len(outputs) > _MOST_CONNECTIONS:
            return None
        longest, through_lut = (np.zeros(len(self._layout.columns), int) for _ in range(2))
        for connection in inputs:
            net = paths.net[connection]
            arrival = paths.arrival[net] + self._routes(int(paths.driver[net]))
            if paths.reader[connection] == unit.lut:
                through_lut = np.maximum(through_lut, arrival + delays.LUT)
            else:
                longest = np.maximum(longest, arrival)
        if unit.register is not None:
            longest = np.maximum(longest, through_lut + delays.SHORTEST_ROUTE)
        clocked = delays.CLOCK_TO_OUTPUT["TRELLIS_FF"]
        for connection in outputs:
            remaining = self._routes(int(paths.reader[connection])) + paths.beyond(connection)
            from_lut = paths.driver[paths.net[connection]] == unit.lut
            longest = np.maximum(longest, remaining + (through_lut if from_lut else clocked))
        return longest

    def _routes(self, cell: int) -> Integers:
        column, row = self._layout.tile(cell)
        return delays.route(np.abs(self._layout.columns - column), np.abs(self._layout.rows - row))
