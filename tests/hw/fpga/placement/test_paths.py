"""Delays of paths through placed netlists, by hand and against a search of all paths."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from intloom.hw.fpga.placement import delays
from intloom.hw.fpga.placement.paths import Paths
from tests.hw.fpga.placed import Cells, cell, lut, module, netlists, register

_CLOCKED = delays.CLOCK_TO_OUTPUT["TRELLIS_FF"]


def _route(columns: int, rows: int = 0) -> int:
    return int(delays.route(np.array([columns]), np.array([rows]))[0])


def _longest(cells: Cells) -> int:
    return int(Paths(module(cells)).total.max())


def test_a_route_counts_the_first_five_columns_and_rows_twice() -> None:
    assert [_route(columns) for columns in (0, 1, 5, 6)] == [480, 640, 1280, 1360]
    assert _route(6, 5) == 1360 + 800


def test_a_path_is_clock_to_output_routes_and_cells() -> None:
    cells = {
        "from": register("X2/Y2/SLICEA.FF0", 1, 9),
        "lut": lut("X5/Y2/SLICEA.K0", 2, 1),
        "to": register("X5/Y9/SLICEA.FF0", 3, 2),
    }
    paths = Paths(module(cells))
    assert _longest(cells) == _CLOCKED + _route(3) + delays.LUT + _route(0, 7)
    assert [paths.names[number] for number in paths.trace(int(paths.total.argmax()))] == ["from", "lut", "to"]


def test_a_chain_has_no_routes_between_its_cells() -> None:
    chain = {
        f"chain{number}": cell(
            "TRELLIS_COMB",
            f"X2/Y2/SLICEA.K{number}",
            drives={"F": 10 + number, "FCO": 20 + number},
            reads={"A": 1, **({"FCI": 19 + number} if number else {})},
            MODE="CCU2",
        )
        for number in range(2)
    }
    cells = {
        "from": register("X2/Y2/SLICEB.FF0", 1, 9),
        **chain,
        "to": register("X2/Y2/SLICEA.FF1", 3, 11, fed=True),
    }
    assert _longest(cells) == _CLOCKED + _route(0) + delays.CARRY_FROM_INPUT + delays.CARRY_TO_SUM + _route(0)


def test_a_distributed_ram_is_read_through_its_address_and_ends_paths_to_its_data() -> None:
    memory = cell("TRELLIS_COMB", "X9/Y2/SLICEA.K0", drives={"F": 5}, reads={"A": 1, "WD": 2}, MODE="DPRAM")
    cells = {
        "address": register("X9/Y2/SLICEC.FF0", 1, 8),
        "data": register("X30/Y2/SLICEC.FF0", 2, 9),
        "memory": memory,
        "to": register("X9/Y2/SLICED.FF0", 8, 5),
    }
    assert _longest(cells) == _CLOCKED + _route(0) + delays.MEMORY_READ + _route(0)


def test_constants_and_global_nets_have_no_delay() -> None:
    cells = {
        "constant": lut("X2/Y2/SLICEA.K0", 1),
        "to": register("X90/Y90/SLICEA.FF0", 2, 1),
        "near": register("X90/Y90/SLICEB.FF0", 3, 2),
    }
    netlist = module(cells)
    assert Paths(netlist).total.max() == _route(88, 88)
    netlist["netnames"]["$PACKER_VCC_NET"] = {"bits": [1]}
    assert Paths(netlist).total.max() == _CLOCKED + _route(0)


def _all_paths(cells: Cells) -> int:
    """Delay of the longest path of LUTs and flip-flops, by recursion."""
    drivers = {
        cell["connections"][port][0]: name
        for name, cell in cells.items()
        for port in ("F", "Q")
        if port in cell["connections"]
    }

    def position(name: str) -> tuple[int, int]:
        x, y = cells[name]["attributes"]["NEXTPNR_BEL"].split("/")[:2]
        return int(x[1:]), int(y[1:])

    def between(name: str, other: str) -> int:
        (x, y), (u, v) = position(name), position(other)
        return _route(abs(x - u), abs(y - v))

    def inputs(name: str) -> list[str]:
        found = cells[name]["connections"].items()
        return [drivers[bits[0]] for port, bits in found if port not in ("F", "Q") and bits[0] in drivers]

    def leaves(name: str) -> int:
        if cells[name]["type"] == "TRELLIS_FF":
            return _CLOCKED
        return max((leaves(before) + between(before, name) + delays.LUT for before in inputs(name)), default=0)

    ends = [name for name, cell in cells.items() if cell["type"] == "TRELLIS_FF"]
    return max(leaves(before) + between(before, name) for name in ends for before in inputs(name))


@given(netlists())
def test_the_longest_of_all_paths_is_found(cells: Cells) -> None:
    assert _longest(cells) == _all_paths(cells)


@given(netlists(), st.integers(0, 1 << 32))
def test_a_move_has_the_delays_of_the_new_positions(cells: Cells, seed: int) -> None:
    rng = random.Random(seed)
    paths = Paths(module(cells))
    number = rng.randrange(len(paths.names))
    column, row = rng.randrange(90), rng.randrange(90)
    paths.columns[number], paths.rows[number] = column, row
    paths.move([number])
    site = cells[paths.names[number]]["attributes"]
    site["NEXTPNR_BEL"] = f"X{column}/Y{row}/" + site["NEXTPNR_BEL"].split("/")[2]
    assert paths.total.tolist() == Paths(module(cells)).total.tolist()
