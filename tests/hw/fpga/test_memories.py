"""How banks become block RAMs: no two RAMs have equal inputs, and the bank's output register is in the RAMs."""

import json
from pathlib import Path

import pytest

from intloom.hw.fpga.blocks import MEMORY
from intloom.hw.fpga.flow import Flow, map_to_cells
from intloom.hw.memory.bank import Bank
from intloom.hw.spec.params import preset
from intloom.hw.verilog import translated

WITHOUT_PRODUCTS = preset("nano").replace(lut_products=0)
INPUTS = ("CEA", "CEB", "CSA", "CSB", "WEA", "WEB", "ADA", "ADB", "DIA", "DIB")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("depth", "parity", "rams"),
    [
        (2048, False, 4),
        (4096, True, 12),
        pytest.param(2048, True, 4, marks=pytest.mark.nightly),
        pytest.param(4096, False, 8, marks=pytest.mark.nightly),
    ],
)
def test_rams_of_a_bank(depth: int, parity: bool, rams: int, tmp_path: Path) -> None:
    bank = translated(Bank(depth, 4, parity=parity), "bank")
    (tmp_path / "bank.v").write_text(bank)
    netlist = map_to_cells(WITHOUT_PRODUCTS, Flow(tmp_path, print), "bank", ["read_verilog bank.v"])
    module = json.loads(netlist.read_text())["modules"]["bank"]
    found = [cell for cell in module["cells"].values() if cell["type"] == MEMORY]
    assert len(found) == rams
    assert {cell["parameters"][f"REGMODE_{port}"] for cell in found for port in "AB"} == {"NOREG", "OUTREG"}
    inputs = [
        tuple(
            (port, *bits)
            for port, bits in sorted(cell["connections"].items())
            if port.rstrip("0123456789") in INPUTS and cell["port_directions"][port] == "input"
        )
        for cell in found
    ]
    assert len(set(inputs)) == rams
