"""LUTs and flip-flops in the tiles of a placed ECP5 netlist: which of them move together, and where to."""

import re
from typing import Any, NamedTuple

from intloom.hw.fpga.netlist import COMB, is_mode, parameter

_SITE = re.compile(r"X(\d+)/Y(\d+)/SLICE([A-D])\.(K|FF|RAMW)(\d?)")
_SLICES = "ABCD"
_HALVES = 2
"""LUTs, and flip-flops, of a slice."""

Tile = tuple[int, int]


class Half(NamedTuple):
    """One half of a slice: a LUT and a flip-flop."""

    slice: int
    half: int


class _Site(NamedTuple):
    slice: int
    kind: str
    """K for a LUT, FF, or RAMW, the write port of distributed RAM."""
    half: int


class Unit(NamedTuple):
    """A LUT, a flip-flop, or a LUT with the flip-flop that it feeds in the same half of a slice."""

    lut: int | None
    register: int | None

    @property
    def cells(self) -> tuple[int, ...]:
        """Its one or two cells."""
        return tuple(cell for cell in self if cell is not None)


class Tiles:
    """What is in each tile, by nextpnr's rules for ECP5.

    - Both LUTs of a slice are in one mode; a carry chain or a distributed RAM takes both.
    - A LUT with a multiplexer behind it uses the data input of the flip-flop beside it, and its neighbors' outputs.
      Such slices keep their cells and get no others.
    - Both flip-flops of a slice have the same clock enable.
    - All flip-flops of a tile have the same clock, reset and settings.

    Parameters
    ----------
    cells:
        Cells with their sites, as `Paths` numbers them.
    """

    def __init__(self, cells: list[dict[str, Any]]) -> None:
        self._cells = cells
        self._sites: dict[int, _Site] = {}
        self._tiles: dict[Tile, dict[_Site, int]] = {}
        for number, cell in enumerate(cells):
            match = _SITE.match(cell["attributes"]["NEXTPNR_BEL"])
            if match:
                site = _Site(_SLICES.index(match[3]), match[4], int(match[5] or 0))
                self._sites[number] = site
                self._tiles.setdefault((int(match[1]), int(match[2])), {})[site] = number

    def tiles(self) -> list[Tile]:
        """Tiles with cells in them."""
        return sorted(self._tiles)

    def unit(self, cell: int, tile: Tile) -> Unit | None:
        """The cells that move with a cell of this tile; None for one that cannot move."""
        site = self._sites.get(cell)
        if site is None or site.kind == "RAMW":
            return None
        here = self._tiles[tile]
        if self._has_multiplexer(here, site.slice):
            return None
        lut = here.get(site._replace(kind="K"))
        register = here.get(site._replace(kind="FF"))
        if site.kind == "FF" and not self._is_fed(cell):
            return Unit(None, cell)
        if lut is None or not self._is_logic(lut):
            return None
        return Unit(lut, register if register is not None and self._is_fed(register) else None)

    def half(self, unit: Unit) -> Half:
        """Where a unit is in its tile."""
        site = self._sites[unit.cells[0]]
        return Half(site.slice, site.half)

    def free_half(self, unit: Unit, tile: Tile) -> Half | None:
        """A half of a slice in which the unit may be, of a tile that has one."""
        here = {site: cell for site, cell in self._tiles[tile].items() if cell not in unit.cells}
        if unit.register is not None and not self._admits(here, unit.register):
            return None
        for number in range(len(_SLICES)):
            for half in range(_HALVES):
                if self._is_free(here, unit, Half(number, half)):
                    return Half(number, half)
        return None

    def move(self, unit: Unit, start: Tile, end: Tile, half: Half) -> None:
        """Move a unit from its tile to another one, which has this half free."""
        for cell in unit.cells:
            del self._tiles[start][self._sites[cell]]
        for cell in unit.cells:
            site = self._sites[cell]._replace(slice=half.slice, half=half.half)
            self._sites[cell] = site
            self._tiles[end][site] = cell
            name = f"X{end[0]}/Y{end[1]}/SLICE{_SLICES[half.slice]}.{site.kind}{half.half}"
            self._cells[cell]["attributes"]["NEXTPNR_BEL"] = name

    def _is_free(self, here: dict[_Site, int], unit: Unit, at: Half) -> bool:
        if self._has_multiplexer(here, at.slice):
            return False
        beside = 1 - at.half
        lut, register = (here.get(_Site(at.slice, kind, at.half)) for kind in ("K", "FF"))
        other_lut, other_register = (here.get(_Site(at.slice, kind, beside)) for kind in ("K", "FF"))
        if unit.lut is not None:
            if lut is not None or (other_lut is not None and not self._is_logic(other_lut)):
                return False
            if _Site(at.slice, "RAMW", 0) in here:
                return False
            if register is not None and self._is_fed(register):
                return False
        if unit.register is None:
            return True
        enable = self._enable(unit.register)
        return register is None and (other_register is None or self._enable(other_register) == enable)

    def _admits(self, here: dict[_Site, int], register: int) -> bool:
        """Whether the flip-flops of a tile have what this one has in common with them; distributed RAM admits none."""
        if any(site.kind == "RAMW" for site in here):
            return False
        registers = [cell for site, cell in here.items() if site.kind == "FF"]
        return all(self._control(cell) == self._control(register) for cell in registers)

    def _has_multiplexer(self, here: dict[_Site, int], number: int) -> bool:
        luts = [here.get(_Site(number, "K", half)) for half in range(_HALVES)]
        return any(self._cells[lut]["connections"].get("M") for lut in luts if lut is not None)

    def _is_logic(self, cell: int) -> bool:
        return self._cells[cell]["type"] == COMB and is_mode(self._cells[cell], "")

    def _is_fed(self, register: int) -> bool:
        """Whether the LUT in its half of the slice drives a flip-flop's data input."""
        return parameter(self._cells[register], "SD") == "1"

    def _enable(self, register: int) -> tuple[object, ...]:
        return self._settings(register, ("CEMUX", "GSR"), "CE")

    def _control(self, register: int) -> tuple[object, ...]:
        return self._settings(register, ("CLKMUX", "LSRMUX", "SRMODE"), "CLK", "LSR")

    def _settings(self, register: int, parameters: tuple[str, ...], *ports: str) -> tuple[object, ...]:
        cell = self._cells[register]
        nets = (tuple(cell["connections"].get(port, ())) for port in ports)
        return (*(parameter(cell, name) for name in parameters), *nets)
