"""Cells of the whole accelerator on FPGA families that this flow does not place: Yosys counts them."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intloom.common import evidence
from intloom.hw.area.components import CELLS, FAMILY_FIELDS
from intloom.hw.generate import generate_verilog
from intloom.hw.npu import TOP_NAME
from intloom.hw.resources import Preparation, count_kinds, flat_cells
from intloom.hw.spec.params import HardwareParams, changed
from intloom.hw.yosys_attributes import LUT_PRODUCT


@dataclass(frozen=True)
class Family:
    """A family: the command that maps to it, and what a cell counts for each kind, by the beginning of its name."""

    device: str
    synthesis: str
    cells: Mapping[str, Mapping[str, float]]
    available: Mapping[str, int] = field(default_factory=dict)
    """Cells of the device; none for a whole family."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that suit the family."""


MAPPING = Path(__file__).with_name("products.v")
"""Of products in look-up tables."""
_PRODUCTS = f"""\
hierarchy -top {{top}}; proc; flatten; opt_clean; wreduce; select -set products a:{LUT_PRODUCT} %ci3 t:$mul %i;
chtype -set $__INTLOOM_PRODUCT @products; select -clear;
techmap -map {MAPPING.name} t:$__INTLOOM_PRODUCT; select -assert-none t:$__INTLOOM_PRODUCT;
"""
"""What keeps products in look-up tables, before the mapping: it would take a DSP block for each part of them."""
FAMILIES = {
    "gw2a": Family(
        "GW2A-18",
        "synth_gowin -family gw2a -noiopads",
        {
            "LUT": {"LUT": 1, "ALU": 1, "RAM16SDP4": 4},
            "FF": {"DFF": 1},
            "DSP": {"MULT18X18": 1, "MULT9X9": 0.5},
            "RAM": {"DP": 1, "SP": 1, "SDP": 1},
        },
        {"LUT": 20736, "FF": 15552, "DSP": 48, "RAM": 46},
        {"lut_products": 0},
    ),
    "xcup": Family(
        "UltraScale+",
        "synth_xilinx -family xcup -flatten -noiopad -noclkbuf",
        {
            "LUT": {"RAM32M16": 8, "RAM64M8": 8, "RAM32X16DR8": 8, "RAM64X8SW": 8, **CELLS["xc7"]["LUT"]},
            "FF": {"FD": 1},
            "DSP": {"DSP48E2": 1},
            "RAM": {"RAMB36E2": 1, "RAMB18E2": 0.5},
        },
        parameters=FAMILY_FIELDS["xc7"],
    ),
    "xc7": Family(
        "XC7Z020",
        "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf",
        CELLS["xc7"],
        {"LUT": 53200, "FF": 106400, "DSP": 220, "RAM": 140},
        FAMILY_FIELDS["xc7"],
    ),
}
"""Families by Yosys' name."""


@dataclass(frozen=True)
class Count:
    """What Yosys counted."""

    device: str
    used: Mapping[str, float]
    available: Mapping[str, int]
    verilog: str
    """Hash of the Verilog."""

    def cell(self, kind: str) -> str:
        """A cell of the table of counts."""
        of = f" of {self.available[kind]}" if self.available else ""
        return f"{self.used[kind]:g}{of}"


def count(params: HardwareParams, family: str, named: Container[str] = ()) -> Count:
    """Map the accelerator with the family's parameters, except those in `named`; raises as `counted`."""
    return counted(verilog_for(params, family, named), TOP_NAME, family)


def verilog_for(params: HardwareParams, family: str, named: Container[str] = ()) -> str:
    """The Verilog that is mapped."""
    suited = {name: value for name, value in FAMILIES[family].parameters.items() if name not in named}
    return generate_verilog(changed(params, suited))


def counted(verilog: str, top: str, family: str) -> Count:
    """Map the module `top`, flattened, and count its cells.

    Raises
    ------
    EnvironmentFault
        Yosys is missing or failed.
    """
    of = FAMILIES[family]
    prepare = Preparation(_PRODUCTS, [MAPPING]) if LUT_PRODUCT in verilog else Preparation()
    (cells,) = flat_cells(verilog, [top], of.synthesis, prepare=prepare)
    return Count(of.device, count_kinds(cells, of.cells), of.available, evidence.content_hash([verilog.encode()]))
