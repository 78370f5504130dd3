"""Counts of other families: a multiplier, its registers, an adder and a memory are the cells that they should be."""

import shutil
from pathlib import Path

import pytest

from intloom.common.errors import EnvironmentFault
from intloom.hw.fpga.counts import FAMILIES, MAPPING, counted
from intloom.hw.fpga.table import PAGE, count_row, update_count
from intloom.hw.mac.array.product import PRODUCT_MODULE
from intloom.hw.resources import run_yosys
from intloom.hw.verilog import product_module

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


_PART = """
module part(input signed [7:0] a, input signed [{high}:0] b, output signed [9:0] y);
  assign y = a * {digit};
endmodule
"""
_COMPARE = """\
read_verilog part.v; hierarchy -top part; proc; opt_clean; wreduce; rename part gold; copy gold gate;
select -module gate; chtype -set $__INTLOOM_PRODUCT t:$mul; select -clear; techmap -map {mapping} t:$__INTLOOM_PRODUCT;
select -assert-none gate/t:$mul gate/t:$__INTLOOM_PRODUCT; miter -equiv -flatten gold gate miter; hierarchy -top miter;
sat -verify -prove trigger 0 miter
"""


def _compare(folder: Path, digit: tuple[int, str], mapping: str) -> None:
    """Prove by SAT that a digit's part of a product is mapped to the same function."""
    (folder / "part.v").write_text(_PART.format(high=digit[0], digit=digit[1]))
    (folder / "products.v").write_text(mapping)
    run_yosys(_COMPARE.format(mapping="products.v"), folder)


@pytest.mark.parametrize("digit", [(2, "b"), (1, "$signed({1'b0, b})"), (1, "b")])
def test_parts_of_products_are_mapped_to_the_same_function(digit: tuple[int, str], tmp_path: Path) -> None:
    _compare(tmp_path, digit, MAPPING.read_text(encoding="utf-8"))


def test_a_wrong_multiple_is_found(tmp_path: Path) -> None:
    wrong = MAPPING.read_text(encoding="utf-8").replace("minus_one << 2", "minus_one << 1")
    with pytest.raises(EnvironmentFault, match="proof did fail"):
        _compare(tmp_path, (2, "b"), wrong)


_PRODUCT = f"""
module product(input clk, input signed [7:0] a, input signed [8:0] b, output signed [15:0] p);
  {PRODUCT_MODULE} made(.clk(clk), .pixel(a), .weight(b), .product(p));
endmodule
"""


def test_products_in_look_up_tables_take_no_dsp_block() -> None:
    count = counted(product_module() + _PRODUCT, "product", "xc7")
    # Left alone, Yosys takes a block for each of the four parts.
    assert count.used["DSP"] == 0
    assert count.used["LUT"] <= 110
