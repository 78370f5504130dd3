"""The product's module in Verilog: both forms, for all operands, cycle by cycle."""

import subprocess
from pathlib import Path

import pytest

from intloom.hw.mac.array.product import PARTS, PRODUCT_MODULE, LutProduct
from intloom.hw.resources import run_yosys
from intloom.hw.verilog import product_module

_MACRO = "INTLOOM_LUT_PRODUCTS"
_BENCH = f"""\
module bench;
  reg clk = 0;
  reg signed [7:0] a;
  reg signed [8:0] b;
  reg signed [15:0] expected [0:{LutProduct.LATENCY}];
  wire signed [15:0] plain, parts;
  integer i, j, n, wrong = 0;
  plain form0(.clk(clk), .pixel(a), .weight(b), .product(plain));
  parts form1(.clk(clk), .pixel(a), .weight(b), .product(parts));
  initial begin
    for (i = 0; i < 131072 + {LutProduct.LATENCY}; i = i + 1) begin
      // An odd factor: all pairs, and both operands change in every cycle. -128 * -256 wraps; no weight is -256.
      j = i * 40503;
      a = j; b = j >> 8;
      for (n = {LutProduct.LATENCY}; n > 0; n = n - 1) expected[n] = expected[n - 1];
      expected[0] = a * b;
      if (i >= {LutProduct.LATENCY} && (plain !== expected[{LutProduct.LATENCY}] || parts !== plain)) wrong = wrong + 1;
      #1 clk = 1; #1 clk = 0;
    end
    $display("wrong: %0d of %0d", wrong, i - {LutProduct.LATENCY});
  end
endmodule
"""


def _wrong(folder: Path, module: str) -> str:
    """What the bench prints about the two forms of `module`."""
    for name, define in (("plain", ""), ("parts", f"`define {_MACRO}\n")):
        (folder / f"{name}.v").write_text(define + module.replace(f"module {PRODUCT_MODULE}", f"module {name}"))
    (folder / "bench.v").write_text(_BENCH)
    # Macros last from one file of a command to the next: the form with the macro comes last.
    command = ["iverilog", "-g2005", "-o", "bench", "bench.v", "plain.v", "parts.v"]
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.needs("iverilog")
def test_both_forms_are_the_product_of_all_operands(tmp_path: Path) -> None:
    assert _wrong(tmp_path, product_module()) == "wrong: 0 of 131072"


@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    ("right", "fault"),
    [
        ("product <= multiplied", "product <= $signed(pixel) * $signed(weight)"),
        ("{ 1'h0, weight[3:2] }", "weight[3:2]"),
    ],
)
def test_a_form_that_differs_is_found(right: str, fault: str, tmp_path: Path) -> None:
    module = product_module()
    assert right in module
    assert not _wrong(tmp_path, module.replace(right, fault)).startswith("wrong: 0 ")


@pytest.mark.slow
def test_synthesis_takes_the_parts_and_a_simulator_the_plain_form(tmp_path: Path) -> None:
    (tmp_path / "product.v").write_text(product_module())
    run_yosys(f"read_verilog product.v; proc; select -assert-count {PARTS} a:lut_product %ci3 t:$mul %i", tmp_path)
    # `-formal` leaves SYNTHESIS undefined.
    plain = "read_verilog -formal product.v; proc; select -assert-count 1 t:$mul; select -assert-none a:lut_product"
    run_yosys(plain, tmp_path)
