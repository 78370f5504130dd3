"""The two forms of the MAC array, as they stand in the Verilog, are equal in every cycle, for all operands.

Three proofs make the whole. A cell (one row, one column): the product, its registers, and how weights are loaded and
become active. The product in look-up tables has a proof of its own. A column: with any function of 16 bits in place of
the product, the adder tree and its latency equal the sum in one statement. A level of the tree: it adds without
overflow at every width, so that a tree of twice the rows is the sum of two trees.

A run of any length ends as a short one does: an output depends on the shadow and active weights, the routed pixel and
the inputs of the last cycles. All of these can be reached by loading each column, a swap, and loading again. So the
inputs are free after that, for as many cycles as a pixel takes.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, ClockSignal, Elaboratable, Instance, Module, Signal, Value, signed

from intloom.hw.mac.array.mac_array import ARRAY_MODULE, MacArray, dot_bits
from intloom.hw.mac.array.product import PRODUCT_MODULE, LutProduct
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import PRESETS
from intloom.hw.verilog import array_module
from tests.hw.formal.prover import ProofResult, prove

pytestmark = pytest.mark.slow

_MINUS_256 = 1 << (WEIGHT_BITS - 1)
"""The weight that no difference of two int8 is."""

_ANY_FUNCTION = f"""
module {PRODUCT_MODULE}(input clk, input [7:0] pixel, input [{WEIGHT_BITS - 1}:0] weight, output reg [15:0] product);
  reg [15:0] before;
  always @(posedge clk) begin
    before <= {{pixel, weight[7:0]}};
    product <= before;
  end
endmodule
"""
"""In place of a product: 16 bits that take every value, with a product's latency."""


class FormsBench(Elaboratable):
    """Both forms with the same inputs, which are free but for the weights and pixel that the first cycles bring in."""

    def __init__(self, rows: int, cols: int) -> None:
        self._rows, self._cols = rows, cols
        # Load every column, swap, load again; then a pixel passes.
        self.depth = 2 * cols + 2 + MacArray.latency(rows)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths = {
            "load": self._cols, "weights": WEIGHT_BITS * self._rows, "valid": 1, "pixel": 8 * self._rows, "swap": 1,
        }  # fmt: skip
        inputs = {name: Signal(width, name=name) for name, width in widths.items()}
        m.d.comb += [signal.eq(AnySeq(len(signal))) for signal in inputs.values()]
        weights = inputs["weights"]
        for row in range(self._rows):
            m.d.comb += Assume(weights.word_select(row, WEIGHT_BITS) != _MINUS_256)
        dots = {form: Signal(dot_bits(self._rows) * self._cols, name=form) for form in ("plain", "pipelined")}
        for form, signal in dots.items():
            ports: dict[str, Value] = {f"i_{name}": value for name, value in inputs.items()}
            m.submodules[form] = Instance(form, i_clk=ClockSignal(), o_dots=signal, **ports)
        cycle = Signal(range(self.depth + 2))
        m.d.sync += cycle.eq(cycle + (cycle <= self.depth))
        with m.If(cycle < self._cols):
            m.d.comb += Assume((inputs["load"] == (1 << cycle)) & inputs["valid"])
        with m.If(cycle == self._cols):
            m.d.comb += Assume(inputs["swap"])
        with m.If(cycle >= self._cols + 1 + MacArray.latency(self._rows)):
            m.d.comb += Assert(dots["plain"] == dots["pipelined"])
        return m


class LevelBench(Elaboratable):
    """A level of the adder tree beside the addition of 32 bits; `short` is how many bits the level lacks."""

    def __init__(self, width: int, short: int = 0) -> None:
        self._width, self._short = width, short

    def elaborate(self, platform: object) -> Module:
        m = Module()
        left, right = Signal(signed(self._width)), Signal(signed(self._width))
        level = Signal(signed(self._width + 1 - self._short))
        whole = Signal(signed(32))
        m.d.comb += [left.eq(AnyConst(self._width)), right.eq(AnyConst(self._width))]
        m.d.comb += [level.eq(left + right), whole.eq(left + right), Assert(level == whole)]
        return m


def _forms(rows: int, cols: int, lut_products: int = 0) -> str:
    params: Any = SimpleNamespace(rows=rows, cols=cols, lut_products=lut_products)
    return array_module(params)


def _prove(rows: int, cols: int, text: str, folder: Path) -> ProofResult:
    bench = FormsBench(rows, cols)
    read = [
        # By default Yosys defines SYNTHESIS.
        "read_verilog -nosynthesis -mem2reg array.v",
        f"rename {ARRAY_MODULE} plain",
        "read_verilog array.v",
        f"rename {ARRAY_MODULE} pipelined",
        "read_verilog product.v",
    ]
    verilog = {"array.v": text, "product.v": _ANY_FUNCTION}
    return prove(bench, folder, depth=bench.depth + 1, first=bench.depth, verilog=verilog, read=read)


def _with_any_function(rows: int, cols: int) -> str:
    """Both forms with `_ANY_FUNCTION` in place of each product."""
    text = _forms(rows, cols, lut_products=rows * cols)
    word = r"$signed({pixels[\1][7:0], active[\2][7:0]})"
    text, count = re.subn(r"pixels\[(\d+)\] \* active\[(\d+)\]", word, text)
    assert count == rows * cols
    return text


def test_a_cell_is_the_same_in_both_forms(tmp_path: Path) -> None:
    result = _prove(1, 1, _forms(1, 1), tmp_path)
    assert result.holds, result.log


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (4, 1), (8, 1)])
def test_a_column_adds_the_same_products(rows: int, cols: int, tmp_path: Path) -> None:
    assert LutProduct.LATENCY == 2
    result = _prove(rows, cols, _with_any_function(rows, cols), tmp_path)
    assert result.holds, result.log


def test_a_level_of_the_tree_adds_without_overflow(tmp_path: Path) -> None:
    widest = max(dot_bits(params.rows) for params in PRESETS.values())
    for width in range(16, widest):
        folder = tmp_path / str(width)
        folder.mkdir()
        assert prove(LevelBench(width), folder, depth=1).holds


_FAULTS = {
    "another latency": ("dot0_0 <= ", "dot0_1 <= "),
    "a weight of the other column": ("active[2][7:0]", "active[0][7:0]"),
    "a tile that is active early": ("if (swaps) begin", "if (swap) begin"),
    "a pixel without valid": ("if (valid) routed", "if (1) routed"),
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_fault_in_one_form_is_found(fault: str, tmp_path: Path) -> None:
    right, wrong = _FAULTS[fault]
    text = _with_any_function(2, 2)
    assert right in text
    assert not _prove(2, 2, text.replace(right, wrong), tmp_path).holds


def test_a_level_without_its_last_bit_is_found(tmp_path: Path) -> None:
    assert not prove(LevelBench(16, short=1), tmp_path, depth=1).holds
