"""Netlist repairs between Yosys and nextpnr: carry chain ends, constant zeros, unused address bits.

- nextpnr uses a cell for the carry-in of a chain, even a constant, and one for an unconnected carry-out. Yosys writes
  both for every chain. Removing them saves four LUT sites per chain.
- nextpnr routes constant zeros to chain inputs and ties constant ones locally. LUT contents are changed so that such
  inputs are 1.
- Unused address bits of distributed RAM are zeros with a route from one constant driver to all of them. They repeat a
  used address bit instead, which is already routed there.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from intloom.common.atomic_write import write_text


def trim(path: Path) -> int:
    """Cut the ends off in Yosys' JSON netlist, where "x" stands for an unconnected port; returns the number of ends."""
    return change_modules(path, _trim_module)


def change_modules(path: Path, change: Callable[[dict[str, Any]], int]) -> int:
    """Change every module of a JSON netlist, which is then written as a whole; the sum of what the changes give."""
    netlist = json.loads(path.read_text(encoding="utf-8"))
    count = sum(change(module) for module in netlist["modules"].values())
    write_text(path, json.dumps(netlist))
    return count


def _trim_module(module: dict[str, Any]) -> int:
    cells = module["cells"].values()
    uses = Counter(bit for cell in cells for bits in cell["connections"].values() for bit in bits)
    uses.update(bit for port in module["ports"].values() for bit in port["bits"])
    cut = 0
    for cell in cells:
        if cell["type"] == "TRELLIS_DPR16X4":
            _repeat_address(cell)
        if cell["type"] != "CCU2C":
            continue
        wires = cell["connections"]
        if _ignores_carry(cell) and wires.get("CIN") in (["0"], ["1"]):
            wires["CIN"] = ["x"]
            cut += 1
        # The port itself is one use of the wire.
        if "COUT" in wires and all(uses[bit] == 1 for bit in wires["COUT"]):
            wires["COUT"] = ["x"]
            cut += 1
        _raise_zeros(cell)
    return cut


def _repeat_address(cell: dict[str, Any]) -> None:
    """Let address bits that are always 0 repeat another bit, for reads and writes alike: each word keeps one address.

    Not in a memory that begins with contents, which would have to move.
    """
    read, write = cell["connections"]["RAD"], cell["connections"]["WAD"]
    unused = [pair == ("0", "0") for pair in zip(read, write, strict=True)]
    if all(unused) or not set(cell["parameters"].get("INITVAL", "")) <= set("0x"):
        return
    used = unused.index(False)
    for position in range(len(unused)):
        if unused[position]:
            read[position], write[position] = read[used], write[used]


def _raise_zeros(cell: dict[str, Any]) -> None:
    """Make inputs that are always 0 be always 1, by tables that give for 1 what they gave for 0."""
    for half in "01":
        for position, name in enumerate("ABCD"):
            if cell["connections"].get(name + half) == ["0"]:
                table = cell["parameters"][f"INIT{half}"][::-1]
                raised = "".join(table[index & ~(1 << position)] for index in range(len(table)))
                cell["parameters"][f"INIT{half}"] = raised[::-1]
                cell["connections"][name + half] = ["1"]


def _ignores_carry(cell: dict[str, Any]) -> bool:
    """Whether a chain's first cell makes its carry out of inputs A and B alone: its whole lower table then gives 0."""
    held = all(cell["connections"].get(port) == ["1"] for port in ("C0", "D0"))
    return held and cell["parameters"]["INIT0"].startswith("0" * 12)
