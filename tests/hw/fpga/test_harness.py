"""The harness holds the whole accelerator: its ports are the Verilog's, and none is left open."""

import json
from pathlib import Path

import pytest

from intloom.hw.fpga.harness import HARNESS_NAME, generate_harness
from intloom.hw.npu import TOP_NAME, npu_members
from intloom.hw.resources import run_yosys
from intloom.hw.spec.params import preset
from intloom.sim.rtl.verilog import verilog_of

PINS = {"clk", "rst", "serial_in", "serial_out"}


@pytest.mark.slow
def test_every_port_of_the_accelerator_ends_in_a_register(tmp_path: Path) -> None:
    params = preset("nano")
    (tmp_path / "npu.v").write_text(verilog_of(params))
    (tmp_path / "chip.il").write_text(generate_harness(params))
    script = f"read_verilog npu.v; read_rtlil chip.il; hierarchy -check -top {HARNESS_NAME}; proc; write_json chip.json"
    run_yosys(script, tmp_path)
    chip = json.loads((tmp_path / "chip.json").read_text())["modules"][HARNESS_NAME]
    (cell,) = [c for c in chip["cells"].values() if c["type"] == TOP_NAME]
    assert set(chip["ports"]) == PINS
    assert set(cell["connections"]) == {"clk", "rst", *npu_members(params)}
    registers = [c for c in chip["cells"].values() if c["type"] == "$dff"]
    ends = {bit for c in registers for port in "DQ" for bit in c["connections"][port]}
    for name in npu_members(params):
        assert ends.issuperset(cell["connections"][name]), name
