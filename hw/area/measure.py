"""What Yosys counts in a design after mapping."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from intloom.common.temporary_files import temporary_folder
from intloom.hw.area.components import CELLS, Counts
from intloom.hw.asic import flow as asic
from intloom.hw.fpga.blocks import absorb
from intloom.hw.fpga.flow import DEVICES, Flow, pack
from intloom.hw.fpga.report import TooLargeError
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import count_kinds, flat_cells
from intloom.hw.spec.params import HardwareParams
from intloom.hw.verilog import generate_verilog, generate_verilog_with_macros

SOURCES = ("hw/npu.py", "hw/area/measure.py", "hw/area/words.py", "hw/area/calibration.py")
_SERIES_7, _LATTICE = "synth_xilinx -family xc7 -noiopad -noclkbuf", "synth_lattice -family ecp5 -nowidelut"
_CHANGES: Mapping[str, Callable[[Path], object]] = {"ecp5": absorb}
"""What a family's flow changes in Yosys' netlist."""


def alone(params: HardwareParams, family: str, modules: Sequence[str]) -> list[Counts]:
    """Cells by kind of each module and those in it, flattened; on the ECP5 without registers that are in blocks."""
    synthesis = _LATTICE if family == "ecp5" else f"{_SERIES_7} -flatten"
    verilog = generate_verilog(params)
    names = [_name_in(verilog, module) for module in modules]
    return [_kinds(family, cells) for cells in flat_cells(verilog, names, synthesis, _CHANGES.get(family))]


def _name_in(verilog: str, module: str) -> str:
    """A module's name for Yosys: where a signal has it too, Amaranth adds a number."""
    found = re.search(rf"^module \\?({re.escape(module)}(?:\$\d+)?)[ (]", verilog, re.MULTILINE)
    assert found is not None, module
    return f"\\{found[1]}"


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
