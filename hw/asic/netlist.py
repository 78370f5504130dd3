"""A flat netlist of library cells: buffers for nets with many loads, and structural Verilog for OpenSTA."""

import json
from collections import defaultdict
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

BUFFER = "BUFX4"
FAN_OUT = 16
"""Loads of a net, at most."""
_CLOCK_PINS = ("CLK", "clk")

Module = dict[str, Any]


def read_module(netlist: Path, top: str) -> Module:
    """The top module of a JSON netlist of Yosys."""
    module: Module = json.loads(netlist.read_text(encoding="utf-8"))["modules"][top]
    return module


def _bits(module: Module) -> Iterator[tuple[str, str, list[Any]]]:
    """Direction, name and bits of every pin of every cell."""
    for cell in module["cells"].values():
        for pin, bits in cell["connections"].items():
            yield cell["port_directions"][pin], pin, bits


def _loads(module: Module) -> dict[int, list[tuple[list[Any], int]]]:
    """Loads of each net that is no clock: the list with the pin's bits, and the index in it."""
    clocks = {bit for _, pin, bits in _bits(module) if pin in _CLOCK_PINS for bit in bits}
    loads: dict[int, list[tuple[list[Any], int]]] = defaultdict(list)
    for direction, _, bits in _bits(module):
        for index, bit in enumerate(bits):
            if direction == "input" and isinstance(bit, int) and bit not in clocks:
                loads[bit].append((bits, index))
    return loads


def add_buffers(module: Module) -> int:
    """Give each net with more than `FAN_OUT` loads a tree of buffers, clocks excepted; returns how many buffers."""
    everywhere = [bits for _, _, bits in _bits(module)] + [port["bits"] for port in module["ports"].values()]
    numbers = count(1 + max(bit for bits in everywhere for bit in bits if isinstance(bit, int)))
    added: dict[str, Any] = {}
    for net, pins in _loads(module).items():
        while len(pins) > FAN_OUT:
            groups = [pins[start : start + FAN_OUT] for start in range(0, len(pins), FAN_OUT)]
            pins = []
            for group in groups:
                output, source = next(numbers), [net]
                for bits, index in group:
                    bits[index] = output
                pins.append((source, 0))
                added[f"buffer_{len(added)}"] = {
                    "type": BUFFER,
                    "port_directions": {"A": "input", "Y": "output"},
                    "connections": {"A": source, "Y": [output]},
                }
    module["cells"] |= added
    return len(added)


def structural_verilog(module: Module, top: str) -> str:
    """Verilog of instances only: OpenSTA of 2019 reads no concatenations on the left of an assignment."""
    return "\n".join(_lines(module, top)) + "\n"


def _lines(module: Module, top: str) -> Iterator[str]:
    names: dict[Any, str] = {"0": "1'b0", "1": "1'b1", "x": "1'b0"}
    ports = module["ports"]
    yield f"module {top} ({', '.join(ports)});"
    outputs = []
    for name, port in ports.items():
        bits, direction = port["bits"], port["direction"]
        yield f"  {direction} {f'[{len(bits) - 1}:0] ' if len(bits) > 1 else ''}{name};"
        for index, bit in enumerate(bits):
            pin = f"{name}[{index}]" if len(bits) > 1 else name
            if bit in names:
                outputs.append((pin, bit))
            names.setdefault(bit, pin)
    declared = set(names)
    for cell in module["cells"].values():
        for bits in cell["connections"].values():
            for bit in bits:
                if bit not in declared:
                    declared.add(bit)
                    names[bit] = f"n{bit}"
                    yield f"  wire n{bit};"
    for name, cell in module["cells"].items():
        pins = (f".{pin}({_joined([names[bit] for bit in bits])})" for pin, bits in cell["connections"].items())
        yield f"  {_kind(cell)} \\{name} ({', '.join(pins)});"
    yield from (f"  assign {pin} = {names[bit]};" for pin, bit in outputs)
    yield "endmodule"


def _kind(cell: Any) -> str:
    """The cell's module; memory macros of different sizes have different modules, because their ports differ."""
    sizes = [str(int(value, 2)) for value in cell.get("parameters", {}).values()]
    return "_".join([cell["type"], *sizes])


def _joined(bits: list[str]) -> str:
    return bits[0] if len(bits) == 1 else f"{{{', '.join(reversed(bits))}}}"
