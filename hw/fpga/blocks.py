"""Moves input and output registers of DSP and RAM blocks from logic cells into the blocks.

Blocks are in few rows of the chip, with long routes to most of the logic. With a register in logic, one cycle contains
the route to the block, the block's delay and the route back. With registers in the block, each has its own cycle.
Yosys 0.70 leaves all of these registers in logic on ECP5.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from intloom.hw.fpga.netlist import change_modules

MULTIPLIER = "MULT18X18D"
MEMORY = "DP16KD"
_REGISTER = "TRELLIS_FF"
_OPERAND_BITS = 18
_PRODUCT_BITS = 36
_WIDE = 36
"""A RAM with words of this width writes at port A and reads at port B; the word uses the data pins of both."""
_ENABLES = ("CE0", "CE1", "CE2", "CE3")
"""All are 1, and registers with an enable are not moved: the bitstream does not record a register's enable source."""

Bit = int | str
Cell = dict[str, Any]


class _Pin(NamedTuple):
    """A port of a cell, or of the module itself, which has no name."""

    cell: str
    port: str


_Registers = tuple[list[str], Bit]
"""Flip-flops by name, and the clock of all."""


def absorb(path: Path) -> int:
    """Move registers of Yosys' JSON netlist into blocks; returns the number of flip-flops."""
    return change_modules(path, _absorb)


def _absorb(module: dict[str, Any]) -> int:
    # Products before operands: a multiplier's operand registers must have the clock of its product register. Each step
    # changes drivers and readers, so each indexes the module again.
    before = len(module["cells"])
    _raise_signs(_Wires(module))
    _take_products(_Wires(module))
    _take_operands(_Wires(module))
    _take_words(_Wires(module))
    return before - len(module["cells"])


class _Wires:
    """A module's cells, and the driver and the readers of each wire."""

    def __init__(self, module: dict[str, Any]) -> None:
        self.cells: dict[str, Cell] = module["cells"]
        self.drivers: dict[Bit, str] = {}
        self.readers: defaultdict[Bit, list[_Pin]] = defaultdict(list)
        for name, port in module["ports"].items():
            for bit in port["bits"]:
                self.readers[bit].append(_Pin("", name))
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    self.drivers |= {bit: name for bit in bits if isinstance(bit, int)}
                    continue
                for bit in bits:
                    self.readers[bit].append(_Pin(name, port))

    def of_type(self, kind: str) -> Iterator[tuple[str, Cell]]:
        """The cells of one type and their names."""
        return ((name, cell) for name, cell in self.cells.items() if cell["type"] == kind)

    def used(self, cell: Cell, ports: Iterable[str]) -> dict[str, Bit]:
        """The outputs of a cell that have a reader."""
        wires = ((port, cell["connections"].get(port, ["x"])[0]) for port in ports)
        return {port: bit for port, bit in wires if isinstance(bit, int) and self.readers[bit]}

    def output_register(self, bits: Iterable[Bit]) -> _Registers | None:
        """The registers that the wires lead to, if each leads to one and nowhere else, and all have one clock."""
        pins = [self.readers[bit] for bit in bits]
        if not all(len(readers) == 1 and readers[0].cell and readers[0].port == "DI" for readers in pins):
            return None
        return self._together([readers[0].cell for readers in pins])

    def before(self, bits: Iterable[Bit]) -> _Registers | None:
        """The registers that the wires come from, if all do that are not always 0, and all have one clock."""
        drivers = [self.drivers.get(bit) for bit in bits if bit not in ("0", "x")]
        names = [name for name in drivers if name is not None]
        return self._together(names) if len(names) == len(drivers) else None

    def _together(self, names: list[str]) -> _Registers | None:
        clocks = {_clock(self.cells[name]) for name in names}
        clock = clocks.pop() if len(clocks) == 1 else None
        return None if clock is None else (names, clock)


def _clock(cell: Cell) -> Bit | None:
    """A flip-flop's clock, if a block's register can do the same: it starts at 0, is always enabled and never reset."""
    if cell["type"] != _REGISTER:
        return None
    wires = cell["connections"]
    # Yosys appends a space to a text that might be taken for a number.
    options = {name: value.strip() for name, value in cell["parameters"].items()}
    plain = {"CLKMUX": "CLK", "LSRMUX": "LSR", "REGSET": "RESET"}
    if any(options.get(name, usual) != usual for name, usual in plain.items()) or wires.get("LSR", ["0"]) != ["0"]:
        return None
    enables = {"1": ["1"], "CE": wires.get("CE")}
    clock: Bit = wires["CLK"][0]
    return clock if enables.get(options.get("CEMUX", "CE")) == ["1"] else None


def _pins(letter: str, count: int = _OPERAND_BITS) -> list[str]:
    return [f"{letter}{position}" for position in range(count)]


def _connect(cell: Cell, wires: dict[str, Bit], direction: str = "input") -> None:
    for port, bit in wires.items():
        cell["connections"][port] = [bit]
        cell["port_directions"][port] = direction


def _raise_signs(wires: _Wires) -> None:
    """Shift narrow signed operands up, with zeros below: the sign then needs one wire instead of one per spare bit."""
    for _, cell in wires.of_type(MULTIPLIER):
        product = {int(port[1:]): bit for port, bit in wires.used(cell, _pins("P", _PRODUCT_BITS)).items()}
        for side in "AB":
            shift = _spare_signs(cell, side)
            if max(product, default=0) + shift < _PRODUCT_BITS:
                bits = ["0"] * shift + [cell["connections"][port][0] for port in _pins(side)]
                _connect(cell, dict(zip(_pins(side), bits[:_OPERAND_BITS], strict=True)))
                product = {position + shift: bit for position, bit in product.items()}
        for port in _pins("P", _PRODUCT_BITS):
            cell["connections"].pop(port, None)
        _connect(cell, {f"P{position}": bit for position, bit in product.items()}, "output")


def _spare_signs(cell: Cell, side: str) -> int:
    """How many of an operand's upper bits repeat the sign."""
    wires = cell["connections"]
    down = [wires[port][0] for port in reversed(_pins(side))]
    if wires.get(f"SIGNED{side}") != ["1"] or not isinstance(down[0], int):
        return 0
    return next((position for position, bit in enumerate(down) if bit != down[0]), len(down)) - 1


def _clock_register(cell: Cell, register: str, clock: Bit) -> None:
    """Switch one of a multiplier's registers on."""
    cell["parameters"] |= {f"REG_{register}_{part}": f"{part}0" for part in ("CLK", "CE", "RST")}
    _connect(cell, {"CLK0": clock, "RST0": "0", **dict.fromkeys(_ENABLES, "1")})


def _move_behind(wires: _Wires, cell: Cell, registers: dict[str, str]) -> None:
    """Let outputs drive what the registers behind them drove."""
    for port, name in registers.items():
        cell["connections"][port] = wires.cells.pop(name)["connections"]["Q"]


def _take_products(wires: _Wires) -> None:
    """Move the registers behind products."""
    for _, cell in list(wires.of_type(MULTIPLIER)):
        product = wires.used(cell, _pins("P", _PRODUCT_BITS))
        register = wires.output_register(product.values())
        if register is None:
            continue
        names, clock = register
        _move_behind(wires, cell, dict(zip(product, names, strict=True)))
        _clock_register(cell, "OUTPUT", clock)


def _take_operands(wires: _Wires) -> None:
    """Move the registers of both operands: nextpnr knows no timing of a multiplier with one of them.

    A register that several multipliers read is copied into each; one that anything else reads would have to stay.
    """
    taken = {name: found for name, cell in wires.of_type(MULTIPLIER) if (found := _operands(wires, cell))}
    # A multiplier that drops out keeps its operand registers in logic, and others that read these must drop out too.
    while stuck := [name for name, found in taken.items() if _read_elsewhere(wires, found, set(taken))]:
        for name in stuck:
            del taken[name]
    for name, found in taken.items():
        cell = wires.cells[name]
        for side, (_, clock) in found.items():
            for port in _pins(side):
                register = wires.drivers.get(cell["connections"][port][0])
                if register is not None:
                    cell["connections"][port] = wires.cells[register]["connections"]["DI"]
            _clock_register(cell, f"INPUT{side}", clock)
    for gone in {register for found in taken.values() for names, _ in found.values() for register in names}:
        del wires.cells[gone]


def _operands(wires: _Wires, cell: Cell) -> dict[str, _Registers] | None:
    """The registers before both operands, if the multiplier's clock, where it has one, is theirs."""
    registers: dict[str, _Registers] = {}
    clocks = set(cell["connections"].get("CLK0", []))
    for side in "AB":
        one = wires.before(cell["connections"][port][0] for port in _pins(side))
        if one is None:
            return None
        registers[side] = one
        clocks.add(one[1])
    return registers if len(clocks) == 1 else None


def _read_elsewhere(wires: _Wires, found: dict[str, _Registers], multipliers: set[str]) -> bool:
    """Whether anything but operands of these multipliers reads one of the registers."""
    operands = {*_pins("A"), *_pins("B")}
    outputs = (wires.cells[name]["connections"]["Q"][0] for names, _ in found.values() for name in names)
    return any(pin.cell not in multipliers or pin.port not in operands for bit in outputs for pin in wires.readers[bit])


def _take_words(wires: _Wires) -> None:
    """Move the registers behind what RAMs read, port by port."""
    for _, cell in list(wires.of_type(MEMORY)):
        wide = any(int(cell["parameters"][f"DATA_WIDTH_{side}"], 2) == _WIDE for side in "AB")
        for sides in ("AB",) if wide else ("A", "B"):
            _take_word(wires, cell, sides)


def _take_word(wires: _Wires, cell: Cell, sides: str) -> None:
    """Move the registers behind one word, which one side of a RAM reads, or both sides as one port."""
    word = wires.used(cell, [pin for side in sides for pin in _pins(f"DO{side}")])
    register = wires.output_register(word.values())
    if register is None or not all(_allows_register(cell, side, register[1]) for side in sides):
        return
    _move_behind(wires, cell, dict(zip(word, register[0], strict=True)))
    for side in sides:
        cell["parameters"][f"REGMODE_{side}"] = "OUTREG"
        _connect(cell, {f"OCE{side}": "1"})


def _allows_register(cell: Cell, side: str, clock: Bit) -> bool:
    """Whether a side of a RAM has this clock, and no reset, which would reach its register too."""
    clocked = cell["connections"].get(f"CLK{side}") == [clock]
    rising = cell["parameters"].get(f"CLK{side}MUX", f"CLK{side}") == f"CLK{side}"
    return clocked and rising and cell["connections"].get(f"RST{side}", ["0"]) == ["0"]
