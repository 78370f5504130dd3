"""The wrapper with an active-low reset around a module with the ports of the accelerator."""

import subprocess
from pathlib import Path

import pytest

from intloom.hw.npu import TOP_NAME
from intloom.hw.package.active_low_reset import WRAPPER, render_active_low_reset
from intloom.hw.spec.params import preset

_BENCH = f"""
module bench;
  reg clk = 0, aresetn = 1;
  {WRAPPER} dut(.clk(clk), .aresetn(aresetn));
  always #5 clk = ~clk;
  always @(posedge clk) $write("%b", dut.{TOP_NAME}.rst);
  initial begin
    #32 aresetn = 0;
    #1 aresetn = 1;
    #60 $finish(0);
  end
endmodule
"""


@pytest.mark.needs("iverilog")
def test_a_reset_lasts_two_edges(tmp_path: Path) -> None:
    """At power-up, and after a pulse between two edges."""
    wrapper = render_active_low_reset(preset("nano"))
    ports = wrapper[wrapper.index("module") : wrapper.index(");") + 2]
    stub = ports.replace(WRAPPER, TOP_NAME).replace("aresetn", "rst") + " endmodule\n"
    (tmp_path / "bench.v").write_text(stub + wrapper + _BENCH)
    subprocess.run(["iverilog", "-g2005", "-s", "bench", "-o", "bench", "bench.v"], cwd=tmp_path, check=True)
    done = subprocess.run(["vvp", "-n", "bench"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "110110000"
