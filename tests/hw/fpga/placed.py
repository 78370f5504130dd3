"""Placed netlists as nextpnr writes them, of LUTs, flip-flops, chains and memories."""

from typing import Any

from hypothesis import strategies as st

Cells = dict[str, dict[str, Any]]


def cell(kind: str, site: str, *, drives: dict[str, int], reads: dict[str, int], **parameters: str) -> dict[str, Any]:
    """A cell with an output bit for each port of `drives` and an input bit for each of `reads`."""
    return {
        "type": kind,
        "parameters": parameters,
        "attributes": {"NEXTPNR_BEL": site},
        "port_directions": {**dict.fromkeys(drives, "output"), **dict.fromkeys(reads, "input")},
        "connections": {port: [bit] for port, bit in {**drives, **reads}.items()},
    }


def lut(site: str, output: int, *inputs: int) -> dict[str, Any]:
    """A LUT; the site is like `X3/Y4/SLICEA.K0`."""
    return cell("TRELLIS_COMB", site, drives={"F": output}, reads=dict(zip("ABCD", inputs, strict=False)))


def register(site: str, output: int, data: int, *, fed: bool = False, **control: int) -> dict[str, Any]:
    """A flip-flop, whose data input comes from the LUT in its half of the slice if it is `fed`."""
    reads = {"DI" if fed else "M": data, **control}
    enable = "CE" if "CE" in control else "1 "
    return cell("TRELLIS_FF", site, drives={"Q": output}, reads=reads, SD="1 " if fed else "0 ", CEMUX=enable)


def module(cells: Cells) -> dict[str, Any]:
    """The module of a netlist."""
    return {"cells": cells, "netnames": {}}


_TILES = [(column, row) for column in (2, 3, 9, 30) for row in (2, 11)]
_HALVES = [(letter, half) for letter in "ABCD" for half in "01"]


@st.composite
def netlists(draw: st.DrawFn) -> Cells:
    """Legal netlists: any registers and LUTs, each LUT behind earlier ones, in a few tiles."""
    halves = iter(draw(st.permutations([(tile, half) for tile in _TILES for half in _HALVES])))
    cells: Cells = {}
    bits = list(range(1, 1 + draw(st.integers(1, 4))))
    sources = len(bits)
    for number in range(draw(st.integers(1, 14))):
        (x, y), (letter, half) = next(halves)
        inputs = draw(st.lists(st.sampled_from(bits), min_size=1, max_size=4))
        bits.append(100 + number)
        cells[f"lut{number}"] = lut(f"X{x}/Y{y}/SLICE{letter}.K{half}", bits[-1], *inputs)
        if draw(st.booleans()):
            site = f"X{x}/Y{y}/SLICE{letter}.FF{half}"
            cells[f"fed{number}"] = register(site, 200 + number, bits[-1], fed=True)
    for number in range(sources):
        (x, y), (letter, half) = next(halves)
        data = draw(st.sampled_from(bits[sources:]))
        cells[f"register{number}"] = register(f"X{x}/Y{y}/SLICE{letter}.FF{half}", bits[number], data)
    return cells
