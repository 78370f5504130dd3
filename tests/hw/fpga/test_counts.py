"""Counts of other families: a multiplier, its registers, an adder and a memory are the cells that they should be."""

import shutil
from pathlib import Path

import pytest

from intloom.hw.fpga.counts import FAMILIES, counted
from intloom.hw.fpga.table import PAGE, count_row, update_count

DOCS = Path(__file__).parents[3] / "docs"
DESIGN = """
module design(input clk, input signed [17:0] a, b, output reg signed [35:0] p, input [7:0] x, y, output [7:0] s,
              input we, input [8:0] at, input [35:0] in, output reg [35:0] out);
  reg [35:0] memory [511:0];
  assign s = x + y;
  always @(posedge clk) begin
    p <= a * b;
    if (we) memory[at] <= in; else out <= memory[at];
  end
endmodule
"""


@pytest.mark.parametrize(("family", "ram"), [("gw2a", 1), ("xcup", 0.5)])
def test_cells_of_a_small_design(family: str, ram: float) -> None:
    count = counted(DESIGN, "design", family)
    assert count.device == FAMILIES[family].device
    assert {kind: count.used[kind] for kind in ("FF", "DSP", "RAM")} == {"FF": 36, "DSP": 1, "RAM": ram}
    assert 8 <= count.used["LUT"] <= 20, "the adder, and the enable of the memory"


def test_a_row_names_the_device_and_the_verilog(tmp_path: Path) -> None:
    count = counted("module t(input a, output b); assign b = ~a; endmodule", "t", "gw2a")
    row = f"| nano | GW2A-18 | 1 of 20736 | 0 of 15552 | 0 of 48 | 0 of 46 | `{count.verilog}` |"
    assert count_row("nano", count) == row
    shutil.copytree(DOCS, tmp_path / "docs")
    (tmp_path / "hw" / "fpga").mkdir(parents=True)
    update_count(tmp_path / "docs", "nano", "gw2a", count)
    lines = (tmp_path / "docs" / PAGE).read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if "| GW2A-18 |" in line] == [row], "the recorded row is replaced"
