"""Finds loadable adders, `load ? x : q + s`, and selecting ones, `p + (select ? x : q)`.

On ECP5 one bit of either fits the LUT of its carry chain position.

Address walkers and counters consist of them. Yosys puts the multiplexer into a separate LUT beside each bit of the
chain, which doubles the LUT sites and lengthens every path by one LUT. An adder whose `load` depends on another adder
or a comparison, as in modular addition, is left alone: one chain would wait for the other.
"""

from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from intloom.hw.fpga.netlist import change_modules

LOADABLE_ADDER_CELL = "$__INTLOOM_LOADABLE_ADDER"
"""Ports Q, S, X, LOAD and Y; parameters WIDTH and LOAD_HIGH, whether 1 loads or 0. `ecp5.v` maps it."""
_SUMS = ("$add", "$sub")
_CHAINS = (*_SUMS, "$lt", "$le", "$ge", "$gt")
SELECTING_ADDER_CELL = "$__INTLOOM_SELECTING_ADDER"
"""Ports P, Q, X, SELECT and Y; parameter WIDTH."""
LEAST_BITS = 5
"""Shorter sums take fewer look-up tables than a chain."""

Bit = int | str
Cell = dict[str, Any]


class _Choice(NamedTuple):
    """One bit of a multiplexer: the cell's name, which of its inputs the sum drives, and the bit's position."""

    mux: str
    side: str
    position: int


def merge_loadable_adders(path: Path) -> int:
    """Replace such adders of Yosys' JSON netlist by cells of their own types; returns their number."""
    return change_modules(path, lambda module: _Module(module).merge())


class _Module:
    def __init__(self, module: dict[str, Any]) -> None:
        self.cells: dict[str, Cell] = module["cells"]
        self.uses: Counter[Bit] = Counter(bit for port in module["ports"].values() for bit in port["bits"])
        self.choices: dict[Bit, _Choice] = {}
        self.drivers: dict[tuple[Bit, ...], str] = {}
        self.late: set[Bit] = set()
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if port != "Y":
                    self.uses.update(bits)
            # Carry chains end late in a cycle; a chain that waits for another one as its `load` would double the path.
            if cell["type"] in _CHAINS:
                self.late.update(cell["connections"]["Y"])
            # Only `$mux`, which has one select bit; a `$pmux` does not fit the LUT of a chain position.
            if cell["type"] == "$mux":
                for side in "AB":
                    wires = cell["connections"][side]
                    self.choices.update({bit: _Choice(name, side, position) for position, bit in enumerate(wires)})

    def merge(self) -> int:
        """Replace what can be; how many sums."""
        sums = [name for name, cell in self.cells.items() if cell["type"] in _SUMS]
        merged = {name for name in sums if self._merge(name)}
        muxes = [(name, cell) for name, cell in self.cells.items() if cell["type"] == "$mux"]
        self.drivers = {tuple(cell["connections"]["Y"]): name for name, cell in muxes}
        return len(merged) + sum(self._select(name) for name in sums if name not in merged)

    def _select(self, name: str) -> bool:
        """Merge a sum with the multiplexer that chooses one of its operands, and that nothing else reads."""
        cell = self.cells[name]
        y = cell["connections"]["Y"]
        if cell["type"] != "$add" or len(y) < LEAST_BITS:
            return False
        for port, other in ("AB", "BA"):
            mux = self.drivers.get(tuple(cell["connections"][port]))
            if mux is None or any(self.uses[bit] != 1 for bit in cell["connections"][port]):
                continue
            connections = self.cells[mux]["connections"]
            if self.late.intersection(connections["S"]):
                continue
            operands = {"P": cell["connections"][other], "Q": connections["A"], "X": connections["B"]}
            signed = all(int(cell["parameters"][f"{side}_SIGNED"], 2) for side in "AB")
            self.cells[name] = {
                "hide_name": 1,
                "type": SELECTING_ADDER_CELL,
                "parameters": {"WIDTH": _number(len(y))},
                "attributes": cell["attributes"],
                "port_directions": {**dict.fromkeys(operands, "input"), "SELECT": "input", "Y": "output"},
                "connections": {
                    **{key: _widened(bits, len(y), signed=signed) for key, bits in operands.items()},
                    "SELECT": connections["S"],
                    "Y": y,
                },
            }
            del self.cells[mux]
            return True
        return False

    def _merge(self, name: str) -> bool:
        cell = self.cells[name]
        operand = _added(cell)
        y = cell["connections"]["Y"]
        # Carries that nothing reads have no multiplexer: they are cut off before each bit must have one.
        while y and not self.uses[y[-1]]:
            y = y[:-1]
        chosen = self._chosen(y)
        if operand is None or chosen is None or len(y) < LEAST_BITS:
            return False
        first = chosen[0]
        mux = self.cells[first.mux]
        if self.late.intersection(mux["connections"]["S"]):
            return False
        other = mux["connections"]["B" if first.side == "A" else "A"]
        self.cells[name] = {
            "hide_name": 1,
            "type": LOADABLE_ADDER_CELL,
            "parameters": {"WIDTH": _number(len(y)), "LOAD_HIGH": _number(int(first.side == "A"))},
            "attributes": cell["attributes"],
            "port_directions": {"Q": "input", "S": "input", "X": "input", "LOAD": "input", "Y": "output"},
            "connections": {
                "Q": _extended(cell, "A", len(y)),
                "S": operand[: len(y)],
                "X": [other[c.position] for c in chosen],
                "LOAD": mux["connections"]["S"],
                "Y": [mux["connections"]["Y"][c.position] for c in chosen],
            },
        }
        self._narrow(first.mux, {c.position for c in chosen})
        return True

    def _chosen(self, y: list[Bit]) -> list[_Choice] | None:
        """The multiplexer's bits that the sum goes to, when each goes to one and to nothing else."""
        chosen = [self.choices[bit] for bit in y if self.uses[bit] == 1 and bit in self.choices]
        alike = len({(choice.mux, choice.side) for choice in chosen}) == 1
        return chosen if alike and len(chosen) == len(y) else None

    def _narrow(self, name: str, gone: set[int]) -> None:
        """Take bits out of a multiplexer."""
        mux = self.cells[name]
        for side in "AB":
            for position in gone:
                self.choices.pop(mux["connections"][side][position], None)
        kept = [position for position in range(len(mux["connections"]["Y"])) if position not in gone]
        if not kept:
            del self.cells[name]
            return
        for port in "ABY":
            mux["connections"][port] = [mux["connections"][port][position] for position in kept]
        mux["parameters"]["WIDTH"] = _number(len(kept))
        for side in "AB":
            self.choices.update(
                {bit: _Choice(name, side, position) for position, bit in enumerate(mux["connections"][side])}
            )


def _number(value: int) -> str:
    return f"{value:032b}"


def _extended(cell: Cell, port: str, width: int) -> list[Bit]:
    """An operand of a sum as wide as the sum."""
    signed = all(int(cell["parameters"][f"{side}_SIGNED"], 2) for side in "AB")
    return _widened(cell["connections"][port], width, signed=signed)


def _widened(bits: list[Bit], width: int, *, signed: bool) -> list[Bit]:
    fill: Bit = bits[-1] if signed else "0"
    return (bits + [fill] * (width - len(bits)))[:width]


def _added(cell: Cell) -> list[Bit] | None:
    """What is added; for a difference, the complement of what is taken away, if that is a constant."""
    bits = _extended(cell, "B", len(cell["connections"]["Y"]))
    if cell["type"] == "$add":
        return bits
    if any(bit not in ("0", "1") for bit in bits):
        return None
    complement = -int("".join(map(str, reversed(bits))), 2) % (1 << len(bits))
    return list(reversed(f"{complement:0{len(bits)}b}"))
