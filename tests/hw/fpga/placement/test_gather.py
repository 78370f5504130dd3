"""Cells of long paths move to the middle of their neighbors on these paths."""

import copy
from typing import Any

from hypothesis import given

from intloom.hw.fpga.placement.gather import gather
from intloom.hw.fpga.placement.layout import Layout
from tests.hw.fpga.placed import Cells, cell, lut, module, netlists


def _memory(site: str, *, drives: int, reads: int) -> dict[str, Any]:
    return cell("DP16KD", site, drives={"DOA0": drives}, reads={"ADA0": reads})


def _shared() -> Cells:
    """Two paths that share two LUTs, far from the memories at their ends; tiles between these have free sites."""
    return {
        "from": _memory("X2/Y2/EBR0", drives=1, reads=8),
        "other": _memory("X4/Y2/EBR1", drives=2, reads=8),
        "one": lut("X80/Y40/SLICEA.K0", 3, 1, 2),
        "two": lut("X80/Y40/SLICEB.K0", 4, 3),
        "to": _memory("X9/Y9/EBR0", drives=5, reads=4),
        "too": _memory("X9/Y8/EBR1", drives=6, reads=4),
        **{f"near{row}": lut(f"X5/Y{row}/SLICEA.K0", 100 + row, 9) for row in range(4, 8)},
    }


def test_cells_that_paths_share_move_together() -> None:
    layout = Layout(module(_shared()))
    before = int(layout.paths.total.max())
    moves = gather(layout, 9_500)
    assert {layout.paths.names[cell] for move in moves for cell in move.unit.cells} == {"one", "two"}
    assert layout.paths.total.max() < 6_000 < before


def test_paths_below_the_least_delay_are_left_alone() -> None:
    layout = Layout(module(_shared()))
    assert gather(layout, int(layout.paths.total.max()) + 1) == []


@given(netlists())
def test_moves_are_taken_back(cells: Cells) -> None:
    netlist = module(copy.deepcopy(cells))
    layout = Layout(netlist)
    before = layout.paths.total.copy()
    layout.take_back(gather(layout, 0))
    assert netlist["cells"] == cells
    assert layout.paths.total.tolist() == before.tolist()
