"""Many cells at once toward their neighbors: what moves of single paths cannot do, where long paths share cells."""

from collections import defaultdict

import numpy as np

from intloom.hw.fpga.placement.layout import Layout, Move
from intloom.hw.fpga.placement.tiles import Unit

_SWEEPS = 4


def gather(layout: Layout, least: int) -> list[Move]:
    """Move each cell on paths of at least this delay to the middle of its neighbors on such paths.

    A neighbor counts by the excess of the path. A sweep moves each cell once, toward the positions of that time.
    """
    paths = layout.paths
    through = paths.through()
    excess: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for connection in np.flatnonzero(through >= least).tolist():
        driver, reader = int(paths.driver[paths.net[connection]]), int(paths.reader[connection])
        for cell, neighbor in ((driver, reader), (reader, driver)):
            excess[cell][neighbor] += int(through[connection]) - least + 1
    moves: list[Move] = []
    for _ in range(_SWEEPS):
        moved: set[Unit] = set()
        for cell in excess:
            unit = layout.unit(cell)
            if unit is not None and unit not in moved:
                moved.add(unit)
                moves += _toward_neighbors(layout, unit, excess)
    paths.measure()
    return moves


def _toward_neighbors(layout: Layout, unit: Unit, excess: dict[int, dict[int, int]]) -> list[Move]:
    neighbors = [
        (neighbor, weight)
        for cell in unit.cells
        for neighbor, weight in excess.get(cell, {}).items()
        if neighbor not in unit.cells
    ]
    if not neighbors:
        return []
    cells, weights = np.array(neighbors, int).T
    column = np.average(layout.paths.columns[cells], weights=weights)
    row = np.average(layout.paths.rows[cells], weights=weights)
    move = layout.move_to_best(unit, np.abs(layout.columns - column) + np.abs(layout.rows - row), measure=False)
    return [] if move is None else [move]
