"""The array's module in Verilog: both forms under the same random inputs, cycle by cycle."""

import subprocess
from pathlib import Path

import pytest

from intloom.hw.mac.array.mac_array import ARRAY_MODULE, MacArray, dot_bits
from intloom.hw.mac.array.plain_array import plain_array
from intloom.hw.resources import run_yosys
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import preset
from intloom.hw.verilog import array_module, product_module

_SHAPES = {
    "nano": preset("nano"),
    "paired": preset("nano").replace(rows=8, axi_data_bits=64, lut_products=16, multiplier_bits=25),
    "wide": preset("nano").replace(rows=16, cols=4, lanes=4, axi_data_bits=128, weight_kib=64, lut_products=10),
}
_CYCLES = 3000
_FREE = """\
      load = i < 8 ? ~0 : $urandom;
      swap = i < 16 || $urandom % 8 == 0;
"""
_IN_ORDER = """\
      load = i < 16 || $urandom % 4 != 0 ? 1 << column : 0;
      column = (column + (load != 0)) % COLUMNS;
      swap = column % 2 == 0 && (i < 16 || $urandom % 8 == 0);
"""
"""Loads of columns that share multipliers, and swaps."""


def _bench(name: str) -> str:
    """Random pixels, weights and controls; every weight is -255 to 255, as `LutProduct` requires."""
    params = _SHAPES[name]
    weight_bits = WEIGHT_BITS * params.rows
    controls = _IN_ORDER.replace("COLUMNS", f"{params.cols}") if params.wide_multipliers else _FREE
    ports = ".clk(clk), .load(load), .weights(weights), .valid(valid), .pixel(pixel), .swap(swap)"
    return f"""\
module bench;
  reg clk = 0, valid = 0, swap = 0;
  reg [{params.cols - 1}:0] load = 0;
  reg [{weight_bits - 1}:0] weights = 0;
  reg [{8 * params.rows - 1}:0] pixel = 0;
  wire [{dot_bits(params.rows) * params.cols - 1}:0] plain, pipelined;
  integer i, n, column = 0, wrong = 0, undefined = 0;
  plain form0({ports}, .dots(plain));
  pipelined form1({ports}, .dots(pipelined));
  initial begin
    for (i = 0; i < {_CYCLES}; i = i + 1) begin
      // First all weights are loaded and become active: before that neither form has a defined output.
{controls}      valid = i < 16 || $urandom % 4 != 0;
      for (n = 0; n < {params.rows}; n = n + 1) begin
        pixel[8 * n +: 8] = $urandom % 3 ? $urandom : 128;
        weights[{WEIGHT_BITS} * n +: {WEIGHT_BITS}] = $urandom % 3 ? $urandom % 511 - 255 : 255 - 510 * ($urandom % 2);
      end
      #1 clk = 1; #1 clk = 0; #1
      if (i > 40) begin
        if (plain !== pipelined) wrong = wrong + 1;
        if (^plain === 1'bx) undefined = undefined + 1;
      end
    end
    $display("wrong: %0d, undefined: %0d", wrong, undefined);
  end
endmodule
"""


def _wrong(folder: Path, name: str, module: str) -> str:
    """What the bench prints about the two forms of `module`."""
    for form, define in (("plain", ""), ("pipelined", "`define INTLOOM_LUT_PRODUCTS\n")):
        text = module.replace(f"module {ARRAY_MODULE}(", f"module {form}(").replace(f"\\{ARRAY_MODULE}.", f"\\{form}.")
        (folder / f"{form}.v").write_text(define + text)
    (folder / "bench.v").write_text(_bench(name))
    # Macros last from one file of a command to the next: the form with the macro comes last.
    command = ["iverilog", "-g2005", "-o", "bench", "bench.v", "plain.v", "pipelined.v", "product.v"]
    (folder / "product.v").write_text(product_module())
    subprocess.run(command, cwd=folder, check=True)
    return subprocess.run(["vvp", "bench"], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.needs("iverilog")
@pytest.mark.parametrize("name", _SHAPES)
def test_both_forms_have_the_same_outputs_in_every_cycle(name: str, tmp_path: Path) -> None:
    assert _wrong(tmp_path, name, array_module(_SHAPES[name])) == "wrong: 0, undefined: 0"


@pytest.mark.needs("iverilog")
@pytest.mark.parametrize(
    ("right", "fault"),
    [
        ("dot3_1 <= dot3_0", "dot3_1 <= pixels[0]"),
        ("pixels[2] * active[6]", "pixels[2] * active[7]"),
        ("if (valid) routed = pixel", "routed = pixel"),
        ("if (swaps) begin\n      active[0]", "if (swap) begin\n      active[0]"),
    ],
)
def test_a_form_that_differs_is_found(right: str, fault: str, tmp_path: Path) -> None:
    module = array_module(_SHAPES["nano"])
    assert module.count(right) == 1
    assert not _wrong(tmp_path, "nano", module.replace(right, fault)).startswith("wrong: 0, ")


@pytest.mark.slow
def test_synthesis_takes_the_pipelined_form_and_a_simulator_the_plain_one(tmp_path: Path) -> None:
    (tmp_path / "array.v").write_text(array_module(_SHAPES["nano"]) + product_module())
    run_yosys("read_verilog array.v; select -assert-count 1 */swap0", tmp_path)
    # `-formal` leaves SYNTHESIS undefined.
    run_yosys("read_verilog -formal array.v; select -assert-none */swap0", tmp_path)


def test_the_delay_covers_the_latency_of_the_pipelined_form() -> None:
    params = _SHAPES["wide"]
    last = MacArray.latency(params.rows) - 3
    assert f"dot0_{last}[" in plain_array(params, "array") and f"dot0_{last + 1}" not in plain_array(params, "array")
