"""A module's parts: each item once, under its function, behind what it needs."""

from pathlib import Path

from intloom.hw.package.items import parts_of, render, without_sources

SOURCE = '''\
class Counter:
    def __init__(self):
        self.high = 0

    def elaborate(self, platform):
        """Count."""
        # Wraps.
        count.eq(count + 1)
        return m

    def _compare(self, m):
        """Compare."""
        high.eq(count == 3)
'''
MODULE = """(* top = 1 *)
(* src = "FILE:1" *)
module counter(high, clk, rst, spare);
  (* src = "FILE:8" *)
  wire [3:0] sum ;
  (* src = "FILE:13" *)
  wire is_three;
  input clk;
  wire clk;
  input rst;
  wire rst;
  input [3:0] spare;
  wire signed [3:0] spare;
  (* src = "FILE:3" *)
  output high;
  (* kept = 32'd1 *)
  (* src = "FILE:3" *)
  reg high = 1'h0;
  reg [3:0] count = 4'h0;
  (* src = "FILE:3" *)
  always @(posedge clk)
    if (rst) high <= 1'h0;
    else high <= is_three;
  assign next = chosen ? sum : 4'h0;
  assign is_three = count == (* src = "FILE:13" *) 4'h3;
  (* src = "FILE:8" *)
  always @(posedge clk) begin
    count <= next;
  end
  assign sum = count + (* src = "elsewhere.py:8" *) 1'h1;
endmodule
"""
RENDERED = """(* top = 1 *)
module counter (
  // inputs
  input clk,
  input rst,
  input signed [3:0] spare,
  // outputs
  (* kept = 32'd1 *)
  output reg high = 1'h0
);
  localparam LAST = 1'h1;
  wire [3:0] sum ;
  wire is_three;
  reg [3:0] count = 4'h0;

  // Count.
  // Wraps.
  assign sum = count + 1'h1;
  assign next = chosen ? sum : 4'h0;
  always @(posedge clk) begin
    count <= next;
  end

  // compare: Compare.
  assign is_three = count == 4'h3;

  always @(posedge clk)
    if (rst) high <= 1'h0;
    else high <= is_three;
endmodule
"""


def test_items_are_in_the_order_of_the_source(tmp_path: Path) -> None:
    file = tmp_path / "counter.py"
    file.write_text(SOURCE)
    parts = parts_of(MODULE.replace("FILE", str(file)))
    assert parts.ports == ("high", "clk", "rst", "spare")
    assert render(parts, [str(file)], ["  localparam LAST = 1'h1;\n"]) == RENDERED


def test_without_a_source_items_keep_their_order() -> None:
    parts = parts_of(MODULE)
    text = render(parts, [])
    assert [item.text for item in parts.items if item.declaration is None] == [
        item.text for item in parts_of(text).items if item.declaration is None
    ]


def test_lines_of_the_source_are_removed() -> None:
    assert "src" not in without_sources(MODULE)
    assert "assign is_three = count == 4'h3;" in without_sources(MODULE)
