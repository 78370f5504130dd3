"""What Yosys counts in a design before mapping: bits of adders, multiplexers, registers and so on, by component."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from math import ceil
from typing import Any

from intloom.common.temporary_files import temporary_folder
from intloom.hw.area.components import Counts, component_of
from intloom.hw.memory.macro import RAM_MODULE
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import run_yosys
from intloom.hw.spec.params import HardwareParams
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

_DESIGN, _NETLIST = "npu.v", "words.json"
_READ = f"read_verilog {_DESIGN}; hierarchy -top {TOP_NAME}; proc"
_WORDS = "opt; wreduce; peepopt; opt_clean; memory -nomap; opt_clean"
_KINDS = {
    "add": ("$add", "$sub", "$alu", "$neg", "$macc"),
    "compare": ("$lt", "$le", "$gt", "$ge"),
    "equal": (
        "$eq", "$ne", "$reduce_and", "$reduce_or", "$reduce_bool", "$logic_not", "$logic_and", "$logic_or",
        "$reduce_xor",
    ),
    "logic": ("$and", "$or", "$xor", "$not", "$xnor"),
    "mux": ("$mux",),
    "shift": ("$shl", "$shr", "$sshl", "$sshr", "$shift", "$shiftx"),
    "register": ("$dff", "$dffe", "$sdff", "$sdffe", "$sdffce"),
}  # fmt: skip
_KIND_OF = {cell: kind for kind, cells in _KINDS.items() for cell in cells}
_OPERANDS = frozenset({"compare", "equal"})
"""Kinds whose size is that of their operands."""
_BLOCK_WORDS = 64
"""Memories of at least this many words are blocks of RAM of an FPGA."""
_PART = 3
"""Bits of a weight in the partial products of a product in LUTs."""


def words(params: HardwareParams) -> dict[str, dict[str, Counts]]:
    """Words of each module, by component."""
    counted: dict[str, dict[str, Counts]] = defaultdict(dict)
    for path, cells in _modules(generate_verilog(params), _WORDS):
        counted[component_of(path)][path] = _counts(cells)
    for path, cells in _modules(generate_verilog_with_macros(params), "memory_collect"):
        if bits := sum(size * width for size, width, written in _memories(cells) if written):
            counted[component_of(path)][path]["bits"] = bits
    return counted


def _modules(verilog: str, steps: str) -> Iterator[tuple[str, list[Any]]]:
    """Path and cells of each instance, memory macros left out."""
    with temporary_folder() as folder:
        (folder / _DESIGN).write_text(verilog, encoding="utf-8")
        run_yosys(f"{_READ}; {steps}; write_json {_NETLIST}", folder)
        modules: dict[str, Any] = json.loads((folder / _NETLIST).read_text(encoding="utf-8"))["modules"]
    for path, module in _instances(modules, f"\\{TOP_NAME}" if f"\\{TOP_NAME}" in modules else TOP_NAME, TOP_NAME):
        if RAM_MODULE not in module:
            yield path, [*modules[module]["cells"].values()]


def _instances(modules: Mapping[str, Any], module: str, path: str) -> Iterator[tuple[str, str]]:
    """Path and module of an instance and of all in it."""
    yield path, module
    for name, cell in modules[module]["cells"].items():
        if cell["type"] in modules:
            yield from _instances(modules, cell["type"], f"{path}.{name}")


def _counts(cells: list[Any]) -> Counts:
    """Words of a module, but for the bits of memories that are registers in standard cells."""
    total: Counter[str] = Counter()
    for cell in cells:
        width = _numbers(cell)
        kind = _KIND_OF.get(cell["type"])
        if cell["type"] == "$mul":
            total["part" if min(width["A_WIDTH"], width["B_WIDTH"]) == _PART else "product"] += 1
        elif cell["type"] == "$mem_v2":
            if width["SIZE"] < _BLOCK_WORDS:
                total["lut memory"] += width["RD_PORTS"] * width["WIDTH"] * ceil(width["SIZE"] / 16)
        elif kind in _OPERANDS:
            total[kind] += max(width["A_WIDTH"], width.get("B_WIDTH", 0))
        elif kind == "shift":
            total[kind] += width["Y_WIDTH"] * width["B_WIDTH"]
        elif kind is not None:
            total[kind] += width.get("WIDTH", width.get("Y_WIDTH", 0))
    return dict(total)


def _memories(cells: list[Any]) -> Iterator[tuple[int, int, bool]]:
    """Words, bits of a word, and whether it is written, of each memory."""
    for cell in cells:
        if cell["type"] == "$mem_v2":
            width = _numbers(cell)
            yield width["SIZE"], width["WIDTH"], width["WR_PORTS"] > 0


def _numbers(cell: Mapping[str, Any]) -> dict[str, int]:
    """Parameters of a cell that are numbers."""
    parameters = cell.get("parameters", {}).items()
    return {name: int(value, 2) for name, value in parameters if isinstance(value, str) and set(value) <= {*"01"}}
