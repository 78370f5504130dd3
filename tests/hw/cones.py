"""What a signal depends on within a cycle, read off the netlist."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from amaranth.back import rtlil
from amaranth.lib import wiring

from intloom.hw.resources import run_yosys

_BITWISE = ("$and", "$or", "$xor", "$xnor", "$not", "$mux", "$pmux", "$bwmux")
"""Cells of which a bit depends on the same bits of A and B, and on all of S."""
_REGISTERS = ("dff", "sr", "latch")


class Netlist:
    """A flat netlist; bits are numbers."""

    def __init__(self, module: dict[str, Any]) -> None:
        self._ports = {name: port["bits"] for name, port in module["ports"].items()}
        self._before: defaultdict[int, set[int]] = defaultdict(set)
        for cell in module["cells"].values():
            for bit, sources in _paths(cell):
                self._before[bit] |= sources

    def port(self, name: str) -> list[int]:
        """The bits of a port; a port of constants alone has none that could depend on anything."""
        return [bit for bit in self._ports.get(name, ()) if isinstance(bit, int)]

    def cone(self, bits: Iterable[int]) -> set[int]:
        """All bits that these depend on in the same cycle, themselves among them."""
        seen, left = set(bits), list(bits)
        while left:
            new = self._before.get(left.pop(), set()) - seen
            seen |= new
            left += new
        return seen


def _paths(cell: dict[str, Any]) -> Iterator[tuple[int, set[int]]]:
    """Each output bit of a cell with the input bits that it depends on in the same cycle."""
    kind, connections = cell["type"], cell["connections"]
    if any(register in kind for register in _REGISTERS):
        return
    if kind == "$memrd_v2" and int(cell["parameters"]["CLK_ENABLE"], 2):
        return
    wires = {name: bits for name, bits in connections.items() if cell["port_directions"][name] == "input"}
    for name, bits in connections.items():
        if cell["port_directions"][name] != "output":
            continue
        for position, bit in enumerate(bits):
            if kind in _BITWISE:
                sources = [
                    *wires["A"][position :: len(bits)],
                    *wires.get("B", ())[position :: len(bits)],
                    *wires.get("S", ()),
                ]
            else:
                sources = [source for wire in wires.values() for source in wire]
            yield bit, {source for source in sources if isinstance(source, int)}


def netlists(components: dict[str, wiring.Component], folder: Path) -> dict[str, Netlist]:
    """The flat netlist of each component; Yosys also finds combinational loops and multiple drivers in them."""
    script = []
    for name, component in components.items():
        (folder / f"{name}.il").write_text(rtlil.convert(component, name="dut", emit_src=False), encoding="utf-8")
        script += [f"read_rtlil {name}.il", "hierarchy -top dut -check", "proc", "flatten", "opt_clean"]
        script += ["check -assert", f"write_json {name}.json", "design -reset"]
    run_yosys("; ".join(script), folder)
    texts = {name: (folder / f"{name}.json").read_text(encoding="utf-8") for name in components}
    return {name: Netlist(json.loads(text)["modules"]["dut"]) for name, text in texts.items()}
