"""What synthesis makes of single components for an FPGA has their outputs, in every cycle of random inputs.

`make test` has these components, the nightly run the whole accelerator (`test_gates.py`).
"""

import re
import subprocess
from pathlib import Path

import pytest
from amaranth.back import verilog

from intloom.hw.dma.address_walker import AddressWalker
from intloom.hw.fpga.blocks import MEMORY
from intloom.hw.fpga.flow import Flow, map_to_cells
from intloom.hw.fpga.netlist import change_modules
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.memory.bank import Bank
from intloom.hw.resources import run_yosys
from intloom.hw.spec.params import preset
from intloom.sim.rtl.ports import parse_ports
from tests.hw.fpga.test_gates import PRIMITIVES, without_open_ports
from tests.support.nightly import with_nightly

PARAMS = preset("nano").replace(lut_products=0)
COMPONENTS = {
    "lane": RequantizerLane(PARAMS),
    "walker": AddressWalker(PARAMS),
    "bank of 4,096 words": Bank(4096, 2),
    "bank of 8,192 words": Bank(8192, 1),
}
CELLS = {"lane": {"MULT18X18D", "CCU2C", "LUT4"}, "walker": {"CCU2C", "LUT4", "TRELLIS_FF"}}
"""Cells that must be in the netlist of a component; of a bank, block RAM."""
FAULTS = ((".INIT0(16'h", ".INIT0(~16'h"), (".ADB13(", ".ADB13(~"))
"""What is replaced once in a netlist's Verilog."""
CYCLES = 1000
OTHER_ROW = {"read_row": "write_row ^ (1 + $urandom % 4095)"}
"""A bank does not define a read of the row that is written in the same cycle."""


def _bench(part: str) -> str:
    """Both modules with equal random inputs, and a message with the number of cycles in which an output differs."""
    ports = [p for p in parse_ports(part, "part").values() if p.name != "clk"]
    inputs, outputs = [p for p in ports if p.is_input], [p for p in ports if not p.is_input]
    lines = ["module bench;", "  reg clk = 0;", "  integer n, wrong = 0;"]
    lines += [f"  reg [{p.width - 1}:0] {p.name} = 0;" for p in inputs]
    for kind in ("part", "gates"):
        lines += [f"  wire [{p.width - 1}:0] {kind}_{p.name};" for p in outputs]
        wires = [f".{p.name}({p.name if p.is_input else f'{kind}_{p.name}'})" for p in ports]
        lines.append(f"  {kind} {kind}_instance(.clk(clk), {', '.join(wires)});")
    differ = " | ".join(f"part_{p.name} !== gates_{p.name}" for p in outputs)
    lines += [f"  initial begin for (n = 0; n < {CYCLES}; n = n + 1) begin"]
    # Resets are rare, so that the state gets far from that after one.
    words = {p.name: f"{{{', '.join(['$urandom'] * (1 + p.width // 32))}}}" for p in inputs}
    words["rst"] = "$urandom % 64 == 0"
    inputs.sort(key=lambda port: port.name in OTHER_ROW)
    words |= OTHER_ROW
    lines += [f"    {p.name} = {words[p.name]};" for p in inputs]
    # Registers without a reset are unknown until the first read.
    lines += [f"    #1 if (n > 8 && ({differ})) wrong = wrong + 1;", "    #1 clk = 1; #1 clk = 0;", "  end"]
    return "\n".join([*lines, '  $display("wrong: %0d", wrong); end', "endmodule", ""])


def _map(folder: Path, name: str) -> str:
    """Verilog of the component's netlist; the component's own is `part.v`, and `bench.v` has both."""
    part = verilog.convert(COMPONENTS[name], name="part", emit_src=False)
    (folder / "part.v").write_text(part)
    (folder / "bench.v").write_text(_bench(part))
    netlist = map_to_cells(PARAMS, Flow(folder, print), "part", ("read_verilog part.v",))
    change_modules(netlist, without_open_ports)
    run_yosys(f"read_json {netlist.name}; rename part gates; write_verilog -noattr gates.v", folder)
    return (folder / "gates.v").read_text()


def _wrong(folder: Path, gates: str) -> int:
    """Cycles in which the netlist's outputs differ."""
    (folder / "gates.v").write_text(gates + PRIMITIVES.read_text())
    command = ["iverilog", "-g2005", "-s", "bench", "-o", "bench", "bench.v", "part.v", "gates.v"]
    subprocess.run(command, cwd=folder, check=True)
    done = subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True)
    return int(done.stdout.rpartition("wrong: ")[2])


@pytest.mark.slow
@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("name", with_nightly(COMPONENTS, ("bank of 8,192 words",)))
def test_the_netlist_has_the_outputs_of_the_component(name: str, tmp_path: Path) -> None:
    """Not so with a wrong cell: the table of a carry chain, or an address bit of one of the RAMs."""
    gates = _map(tmp_path, name)
    assert CELLS.get(name, {MEMORY}) <= set(re.findall(r"^  (\w+) ", gates, re.MULTILINE))
    assert _wrong(tmp_path, gates) == 0
    faults = [(right, wrong) for right, wrong in FAULTS if right in gates]
    assert faults
    for right, wrong in faults:
        assert _wrong(tmp_path, gates.replace(right, wrong, 1)) > 0
