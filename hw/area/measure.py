"""What Yosys counts in a design: words before mapping, by component, and cells after mapping."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

from intloom.common.temporary_files import temporary_folder
from intloom.hw.area.components import CELLS, component_of
from intloom.hw.asic import flow as asic
from intloom.hw.fpga.flow import DEVICES, Flow, pack
from intloom.hw.fpga.report import TooLargeError
from intloom.hw.memory.macro import LEAST_BITS
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import count_kinds, flat_cells, run_yosys
from intloom.hw.spec.params import HardwareParams
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

SOURCES = ("hw/npu.py", "hw/area/measure.py", "hw/area/calibration.py")
_DESIGN, _NETLIST = "npu.v", "words.json"
_WORDS = (
    f"read_verilog {_DESIGN}; hierarchy -top {TOP_NAME}; proc; opt; wreduce; peepopt; opt_clean; memory -nomap; "
    f"opt_clean; write_json {_NETLIST}"
)
_SERIES_7, _LATTICE = "synth_xilinx -family xc7 -noiopad -noclkbuf", "synth_lattice -family ecp5 -nowidelut"
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
Counts = dict[str, float]


def words(params: HardwareParams) -> dict[str, dict[str, Counts]]:
    """Bits of adders, multiplexers, registers and so on of each module, by component."""
    with temporary_folder() as folder:
        (folder / _DESIGN).write_text(generate_verilog(params), encoding="utf-8")
        run_yosys(_WORDS, folder)
        modules: dict[str, Any] = json.loads((folder / _NETLIST).read_text(encoding="utf-8"))["modules"]
    counted: dict[str, dict[str, Counts]] = defaultdict(dict)
    for path, module in _instances(modules, f"\\{TOP_NAME}" if f"\\{TOP_NAME}" in modules else TOP_NAME, TOP_NAME):
        counted[component_of(path)][path] = _counts(modules[module]["cells"].values())
    return counted


def _instances(modules: Mapping[str, Any], module: str, path: str) -> Iterator[tuple[str, str]]:
    """Path and module of an instance and of all in it."""
    yield path, module
    for name, cell in modules[module]["cells"].items():
        if cell["type"] in modules:
            yield from _instances(modules, cell["type"], f"{path}.{name}")


def _counts(cells: Any) -> Counts:
    total: Counter[str] = Counter()
    for cell in cells:
        width = {
            k: int(v, 2) for k, v in cell.get("parameters", {}).items() if isinstance(v, str) and set(v) <= {*"01"}
        }
        kind = _KIND_OF.get(cell["type"])
        if cell["type"] == "$mul":
            total["part" if min(width["A_WIDTH"], width["B_WIDTH"]) == _PART else "product"] += 1
        elif cell["type"] == "$mem_v2":
            total.update(_memory(width["SIZE"], width["WIDTH"], width["RD_PORTS"]))
        elif kind in _OPERANDS:
            total[kind] += max(width["A_WIDTH"], width.get("B_WIDTH", 0))
        elif kind == "shift":
            total[kind] += width["Y_WIDTH"] * width["B_WIDTH"]
        elif kind is not None:
            total[kind] += width.get("WIDTH", width.get("Y_WIDTH", 0))
    return dict(total)


def _memory(size: int, width: int, ports: int) -> Counts:
    """A memory as LUTs of 16 words, unless it is large, and as registers, or a macro, which has no area here."""
    registers = {"bits": size * width} if size * width < LEAST_BITS else {}
    in_luts: Counts = {"lut memory": ports * width * ceil(size / 16)} if size < _BLOCK_WORDS else {}
    return in_luts | registers


def alone(params: HardwareParams, family: str, modules: Sequence[str]) -> list[Counts]:
    """Cells by kind of each module and those in it, flattened."""
    synthesis = _LATTICE if family == "ecp5" else f"{_SERIES_7} -flatten"
    names = [f"\\{module}" for module in modules]
    return [_kinds(family, cells) for cells in flat_cells(generate_verilog(params), names, synthesis)]


def whole(params: HardwareParams, family: str) -> Counts:
    """Cells by kind of the whole design, flattened; for the ECP5 after packing, with a few LUTs around it.

    Standard cells are those of docs/asic.md, where modules are mapped one by one.
    """
    if family == "asic":
        return gates(params)[0]
    if family != "ecp5":
        return alone(params, family, [TOP_NAME])[0]
    with temporary_folder() as folder:
        try:
            used = pack(params, DEVICES["85F"], Flow(folder, lambda _step: None))
        except TooLargeError as error:
            used = error.used
    return {kind: resource.used for kind, resource in used.items()}


def gates(params: HardwareParams) -> tuple[Counts, dict[str, float]]:
    """Cells by kind of the whole design in standard cells, and the area of each module with those in it."""
    with temporary_folder() as folder:
        asic.write_design(generate_verilog_with_macros(params), folder)
        _, flip_flops, _, nand_gates, areas = asic.synthesize(folder)
    return {"gates": nand_gates, "FF": flip_flops}, areas


def _kinds(family: str, cells: Mapping[str, int]) -> Counts:
    return {kind: n for kind, n in count_kinds(cells, CELLS[family]).items() if n}
