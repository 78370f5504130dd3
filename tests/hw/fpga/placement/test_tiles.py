"""Rules of ECP5's tiles: where a LUT, a flip-flop or both may be."""

from typing import Any

import pytest

from intloom.hw.fpga.placement.tiles import Half, Tiles, Unit
from tests.hw.fpga.placed import Cells, cell, lut, register

_HERE, _THERE = (2, 2), (9, 9)


def _site(kind: str, half: Half) -> str:
    return f"X9/Y9/SLICE{'ABCD'[half.slice]}.{kind}{half.half}"


def _free(unit: Cells, there: Cells) -> Half | None:
    """The half that is free for a unit, the cells of tile (2, 2), in tile (9, 9)."""
    cells = {**unit, **there}
    tiles = Tiles(list(cells.values()))
    found = tiles.unit(0, _HERE)
    assert found is not None
    return tiles.free_half(found, _THERE)


_LUT: Cells = {"lut": lut("X2/Y2/SLICEA.K0", 1, 8)}
_REGISTER: Cells = {"register": register("X2/Y2/SLICEA.FF0", 1, 8, CLK=7, LSR=6, CE=5)}
_BOTH: Cells = {**_LUT, "fed": register("X2/Y2/SLICEA.FF0", 2, 1, fed=True, CLK=7, LSR=6, CE=5)}
_UNITS = pytest.mark.parametrize("unit", [_LUT, _REGISTER, _BOTH], ids=["lut", "register", "both"])


@_UNITS
def test_the_only_free_half_of_a_tile_is_found(unit: Cells) -> None:
    halves = [Half(number, half) for number in range(4) for half in range(2)]
    control = {"CLK": 7, "LSR": 6, "CE": 5}
    for free in halves:
        there: Cells = {}
        for number, half in enumerate(h for h in halves if h != free):
            there[f"l{number}"] = lut(_site("K", half), 100 + number, 8)
            there[f"r{number}"] = register(_site("FF", half), 200 + number, 8, **control)
        assert _free(unit, there) == free
        full = lut(_site("K", free), 300, 8), register(_site("FF", free), 301, 8, **control)
        assert _free(unit, {**there, "full": full[0], "too": full[1]}) is None


@pytest.mark.parametrize("changed", ["CLK", "LSR"])
@pytest.mark.parametrize("unit", [_REGISTER, _BOTH], ids=["register", "both"])
def test_flip_flops_of_a_tile_share_clock_and_reset(unit: Cells, changed: str) -> None:
    control = {"CLK": 7, "LSR": 6, "CE": 5}
    there = {"other": register(_site("FF", Half(3, 0)), 100, 8, **control | {changed: 99})}
    assert _free(unit, there) is None
    assert _free(_LUT, there) is not None


def test_flip_flops_of_a_slice_share_their_enable() -> None:
    there = {f"r{n}": register(_site("FF", Half(n, 0)), 100 + n, 8, CLK=7, LSR=6, CE=50 + n) for n in range(4)}
    assert _free(_REGISTER, there) is None
    there["r2"] = register(_site("FF", Half(2, 0)), 102, 8, CLK=7, LSR=6, CE=5)
    assert _free(_REGISTER, there) == Half(2, 1)


def _mode(half: Half, mode: str) -> dict[str, Any]:
    return cell("TRELLIS_COMB", _site("K", half), drives={"F": 300}, reads={"A": 8}, MODE=mode)


@pytest.mark.parametrize("mode", ["CCU2", "DPRAM"])
def test_a_lut_is_not_beside_a_chain_or_a_memory(mode: str) -> None:
    there = {f"c{number}": _mode(Half(number, 0), mode) for number in range(4)}
    assert _free(_LUT, there) is None
    assert _free(_BOTH, there) is None
    assert _free(_REGISTER, there) == Half(0, 0)


def test_the_write_port_of_distributed_ram_excludes_luts_of_its_slice_and_flip_flops_of_its_tile() -> None:
    there = {"write": cell("TRELLIS_RAMW", "X9/Y9/SLICEC.RAMW", drives={"WDO0": 300}, reads={"A0": 8})}
    used = {f"l{n}{h}": lut(_site("K", Half(n, h)), 100 + 2 * n + h, 8) for n in (0, 1, 3) for h in range(2)}
    assert _free(_LUT, used) == Half(2, 0)
    assert _free(_LUT, {**used, **there}) is None
    assert _free(_REGISTER, there) is None


def test_a_flip_flop_that_its_lut_feeds_leaves_no_room_for_another_lut() -> None:
    there = {
        f"r{n}{h}": register(_site("FF", Half(n, h)), 100 + 2 * n + h, 8, fed=True) for n in range(4) for h in range(2)
    }
    assert _free(_LUT, there) is None


def test_a_slice_with_a_multiplexer_gets_no_cells_and_keeps_its_own() -> None:
    there = {f"m{number}": lut(_site("K", Half(number, 0)), 300 + number, 8) for number in range(4)}
    for mux in there.values():
        mux["connections"]["M"] = [8]
    for unit in (_LUT, _REGISTER, _BOTH):
        assert _free(unit, there) is None
    tiles = Tiles([*there.values(), lut(_site("K", Half(0, 1)), 400, 8)])
    assert [tiles.unit(number, _THERE) for number in (0, 4)] == [None, None]


def test_what_cannot_move() -> None:
    cells = {
        "chain": cell("TRELLIS_COMB", "X2/Y2/SLICEA.K0", drives={"F": 1}, reads={"A": 8}, MODE="CCU2"),
        "fed": register("X2/Y2/SLICEA.FF0", 2, 1, fed=True),
        "write": cell("TRELLIS_RAMW", "X2/Y2/SLICEC.RAMW", drives={"WDO0": 3}, reads={"A0": 8}),
        "memory": cell("DP16KD", "X2/Y2/EBR0", drives={"DOA0": 4}, reads={"ADA0": 8}),
    }
    tiles = Tiles(list(cells.values()))
    assert [tiles.unit(number, _HERE) for number in range(len(cells))] == [None] * len(cells)


def test_a_move_takes_a_lut_and_its_flip_flop_to_the_new_half() -> None:
    cells = {**_BOTH, "other": lut(_site("K", Half(0, 0)), 9, 8)}
    tiles = Tiles(list(cells.values()))
    unit = tiles.unit(1, _HERE)
    assert unit == Unit(0, 1)
    assert tiles.half(unit) == Half(0, 0)
    tiles.move(unit, _HERE, _THERE, Half(3, 1))
    assert [c["attributes"]["NEXTPNR_BEL"] for c in cells.values()] == [
        "X9/Y9/SLICED.K1",
        "X9/Y9/SLICED.FF1",
        "X9/Y9/SLICEA.K0",
    ]
    assert tiles.half(unit) == Half(3, 1)
    assert tiles.free_half(unit, _HERE) == Half(0, 0)
