"""The two forms of the MAC array, as they stand in the Verilog, are equal in every cycle, for all operands.

Three proofs make the whole for products in multipliers of their own. A product: for all operands, 16 bits hold what the
simulated form computes with 32. The product in look-up tables has a proof of its own. A column: with any function of
the operands in place of products, the ways of weights and pixels, the adder tree and its latency give the same sums as
one statement and a delay. A level of the tree: it adds without overflow at every width, so that a tree of twice the
rows is the sum of two trees. For two products in one multiplier there are four more: for all operands the fields of the
product are both products, the upper one less the borrow, and so are those of the sum of two; the tree adds all borrows;
and two columns of two rows give the same sums in both forms, for all weights and two values of a pixel.

A run of any length ends as a short one does: an output depends on the shadow and active weights, the routed pixel and
the inputs of the last cycles. All of these can be reached by loading each column, a swap, and loading again. So the
inputs are free after that, for as many cycles as a pixel takes.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from amaranth.asserts import AnyConst, AnySeq
from amaranth.hdl import Assert, Assume, ClockSignal, Const, Elaboratable, Instance, Module, Signal, Value, signed

from intloom.hw.mac.array.mac_array import ARRAY_MODULE, MacArray, dot_bits
from intloom.hw.mac.array.product import (
    PRODUCT_MODULE,
    LutProduct,
    joined,
    paired_factor,
    paired_products,
    paired_sums,
)
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import PRESETS, preset
from intloom.hw.verilog import array_module
from tests.hw.formal.planted import each_night
from tests.hw.formal.prover import ProofResult, prove

pytestmark = pytest.mark.slow

_ANY_FUNCTION = """
module {module}(input clk, input [7:0] pixel, input [8:0] weight, output reg [15:0] product);
  reg [15:0] before;
  always @(posedge clk) begin
    before <= {{pixel, weight[{high}:{low}]}};
    product <= before;
  end
endmodule
"""
"""In place of a product in look-up tables: 16 bits that take every value, with a product's latency."""
_DSP_PRODUCT = re.compile(r"\$signed\((\w+_pixel1)\) \* \$signed\((\w+_weight1)\)")
_PLAIN_PRODUCT = re.compile(r"(pixels\[\d+\]) \* (active\[\d+\])")


class FormsBench(Elaboratable):
    """Both forms with the same inputs, which are free but for the weights and pixel that the first cycles bring in.

    If `paired`, columns are loaded in order, and pixels are 0 or 1, as solvers are slow with products.
    """

    def __init__(self, rows: int, cols: int, *, paired: bool = False) -> None:
        self._rows, self._cols, self._paired = rows, cols, paired
        # Load every column, swap, load again; then a pixel passes.
        self.depth = 2 * cols + 2 + MacArray.latency(rows)

    def elaborate(self, platform: object) -> Module:
        m = Module()
        widths = {
            "load": self._cols, "weights": WEIGHT_BITS * self._rows, "valid": 1, "pixel": 8 * self._rows, "swap": 1,
        }  # fmt: skip
        inputs = {name: Signal(width, name=name) for name, width in widths.items()}
        m.d.comb += [signal.eq(AnySeq(len(signal))) for signal in inputs.values()]
        dots = {form: Signal(dot_bits(self._rows) * self._cols, name=form) for form in ("plain", "pipelined")}
        for form, signal in dots.items():
            ports: dict[str, Value] = {f"i_{name}": value for name, value in inputs.items()}
            m.submodules[form] = Instance(form, i_clk=ClockSignal(), o_dots=signal, **ports)
        if self._paired:
            self._restrict(m, inputs)
        cycle = Signal(range(self.depth + 2))
        m.d.sync += cycle.eq(cycle + (cycle <= self.depth))
        with m.If(cycle < self._cols):
            m.d.comb += Assume((inputs["load"] == (1 << cycle)) & inputs["valid"])
        with m.If(cycle == self._cols):
            m.d.comb += Assume(inputs["swap"])
        with m.If(cycle >= self._cols + 1 + MacArray.latency(self._rows)):
            m.d.comb += Assert(dots["plain"] == dots["pipelined"])
        return m

    def _restrict(self, m: Module, inputs: dict[str, Signal]) -> None:
        column, load = Signal(range(self._cols)), inputs["load"]
        following = Signal.like(column)
        m.d.comb += [following.eq(column + load.any()), Assume((load == 0) | (load == 1 << column))]
        m.d.comb += Assume(~(inputs["swap"] & following[0]))
        m.d.sync += column.eq(following)
        for row in range(self._rows):
            pixel = inputs["pixel"].word_select(row, 8)
            m.d.comb += Assume(pixel[1:] == 0)
        for weight in range(self._rows):
            m.d.comb += Assume(inputs["weights"].word_select(weight, WEIGHT_BITS).as_signed() >= -255)


class ProductBench(Elaboratable):
    """A product of 16 bits beside one of 32 bits; `least` is the least weight."""

    def __init__(self, least: int = -255) -> None:
        self._least = least

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pixel, weight = Signal(signed(8)), Signal(signed(WEIGHT_BITS))
        wide_pixel, wide_weight, whole = (
            Signal(signed(32), name=name) for name in ("wide_pixel", "wide_weight", "whole")
        )
        product = Signal(signed(16))
        m.d.comb += [
            pixel.eq(AnyConst(8)),
            weight.eq(AnyConst(WEIGHT_BITS)),
            Assume(weight >= self._least),
            product.eq(pixel * weight),
            wide_pixel.eq(pixel),
            wide_weight.eq(weight),
            whole.eq(wide_pixel * wide_weight),
            Assert(product == whole),
        ]
        return m


class LevelsBench(Elaboratable):
    """All levels of the widest adder tree beside additions of 32 bits; `short` is how many bits each level lacks."""

    def __init__(self, short: int = 0) -> None:
        self._short = short

    def elaborate(self, platform: object) -> Module:
        m = Module()
        for width in range(16, max(dot_bits(params.rows) for params in PRESETS.values())):
            left, right = (Signal(signed(width), name=f"{name}{width}") for name in ("left", "right"))
            level = Signal(signed(width + 1 - self._short), name=f"level{width}")
            whole = Signal(signed(32), name=f"whole{width}")
            m.d.comb += [left.eq(AnyConst(width)), right.eq(AnyConst(width))]
            m.d.comb += [level.eq(left + right), whole.eq(left + right), Assert(level == whole)]
        return m


class PairBench(Elaboratable):
    """Two products in one multiplier, of all weights; `pixel` is one value, as solvers are slow with products."""

    def __init__(self, pixel: int, *, carry: bool = True) -> None:
        self._pixel, self._carry = pixel, carry

    def elaborate(self, platform: object) -> Module:
        m = Module()
        low, high = (Signal(signed(WEIGHT_BITS), name=name) for name in ("low", "high"))
        lower, upper, borrow = paired_products(m, "pair", Const(self._pixel, signed(8)), (low, high))
        m.d.comb += [
            low.eq(AnyConst(WEIGHT_BITS)),
            high.eq(AnyConst(WEIGHT_BITS)),
            Assume((low >= -255) & (high >= -255)),
            Assert(lower == self._pixel * low),
            Assert(upper + (borrow if self._carry else 0) == self._pixel * high),
        ]
        return m


class SumsBench(Elaboratable):
    """The sums of two products in each of two multipliers, of all weights; both pixels have one value each."""

    def __init__(self, pixels: tuple[int, int], *, odd: bool = True) -> None:
        self._pixels, self._odd = pixels, odd

    def elaborate(self, platform: object) -> Module:
        m = Module()
        weights = [(Signal(signed(WEIGHT_BITS)), Signal(signed(WEIGHT_BITS))) for _ in self._pixels]
        for weight in (*weights[0], *weights[1]):
            m.d.comb += [weight.eq(AnyConst(WEIGHT_BITS)), Assume(weight >= -255)]
        pixels = tuple(Const(pixel, signed(8)) for pixel in self._pixels)
        factors = tuple(paired_factor(joined(*pair)) for pair in weights)
        low, high = (sum(pixel * pair[k] for pixel, pair in zip(self._pixels, weights, strict=True)) for k in range(2))
        lower, upper, borrow = paired_sums(m, "sums", pixels, factors, Value.cast(high)[0] & self._odd)
        m.d.comb += [Assert(lower == low), Assert(upper + borrow == high)]
        return m


class CarriesBench(Elaboratable):
    """The adder tree of a column with a carry for each product; `missing` is a carry that the sum lacks."""

    def __init__(self, missing: int | None = None) -> None:
        self._missing = missing

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.array = array = MacArray(preset("nano"))
        terms = [Signal(signed(16), name=f"term{row}") for row in range(4)]
        carries = [Signal(name=f"carry{row}") for row in range(4)]
        for signal in (*terms, *carries):
            m.d.comb += signal.eq(AnyConst(len(signal)))
        # The upper product and its borrow are a product, which 16 bits hold.
        m.d.comb += [Assume(term < (1 << 15) - 1) for term in terms]
        whole = Signal(signed(32))
        kept = [carry for row, carry in enumerate(carries) if row != self._missing]
        m.d.comb += whole.eq(sum([*terms, *kept]))
        m.d.comb += Assert(array._tree(m, 0, [*terms], carries) == whole)
        return m


def _prove(rows: int, cols: int, text: str, folder: Path, low: int = 0, *, paired: bool = False) -> ProofResult:
    bench = FormsBench(rows, cols, paired=paired)
    read = [
        # By default Yosys defines SYNTHESIS.
        "read_verilog -nosynthesis -mem2reg array.v",
        f"rename {ARRAY_MODULE} plain",
        "read_verilog array.v",
        f"rename {ARRAY_MODULE} pipelined",
        "read_verilog product.v",
    ]
    product = _ANY_FUNCTION.format(module=PRODUCT_MODULE, high=low + 7, low=low)
    verilog = {"array.v": text, "product.v": product}
    return prove(bench, folder, depth=bench.depth + 1, first=bench.depth, verilog=verilog, read=read)


def _shape(rows: int, cols: int, lut_products: int, *, paired: bool = False) -> Any:
    return SimpleNamespace(rows=rows, cols=cols, array_lut_products=lut_products, wide_multipliers=paired)


def _forms(rows: int, cols: int, low: int = 0) -> str:
    """Both forms with the function `_ANY_FUNCTION` in place of each product; half of them are modules."""
    text = array_module(_shape(rows, cols, rows * cols // 2))
    text, count = _PLAIN_PRODUCT.subn(rf"$signed({{\1[7:0], \2[{low + 7}:{low}]}})", text)
    assert count == rows * cols
    text, count = _DSP_PRODUCT.subn(lambda m: f"{{{m[1]}, {m[2]}[{low + 7}:{low}]}}", text)
    assert count == rows * cols - rows * cols // 2
    return text


def test_sixteen_bits_hold_every_product(tmp_path: Path) -> None:
    result = prove(ProductBench(), tmp_path, depth=1)
    assert result.holds, result.log


def test_the_weight_that_does_not_occur_is_the_only_exception(tmp_path: Path) -> None:
    assert not prove(ProductBench(least=-256), tmp_path, depth=1).holds


@pytest.mark.parametrize(("rows", "cols", "low"), [(2, 2, 0), (2, 2, 1), (4, 1, 0)])
def test_a_column_adds_the_same_products(rows: int, cols: int, low: int, tmp_path: Path) -> None:
    """With either eight of a weight's nine bits."""
    assert LutProduct.LATENCY == 2
    result = _prove(rows, cols, _forms(rows, cols, low), tmp_path, low)
    assert result.holds, result.log


def test_the_levels_of_the_tree_add_without_overflow(tmp_path: Path) -> None:
    result = prove(LevelsBench(), tmp_path, depth=1)
    assert result.holds, result.log


@pytest.mark.parametrize("pixel", [-128, -127, -86, -1, 0, 1, 85, 127])
def test_a_multiplier_holds_two_products(pixel: int, tmp_path: Path) -> None:
    """`test_product.py` beside the array computes all pixels."""
    result = prove(PairBench(pixel), tmp_path, depth=3, first=2)
    assert result.holds, result.log


def test_a_borrow_that_is_not_returned_is_found(tmp_path: Path) -> None:
    assert not prove(PairBench(-1, carry=False), tmp_path, depth=3, first=2).holds


_PIXELS = [(-128, -128), (-128, 127), (127, -1), (1, 0)]


@pytest.mark.parametrize("pixels", _PIXELS)
def test_two_multipliers_add_two_products_each(pixels: tuple[int, int], tmp_path: Path) -> None:
    result = prove(SumsBench(pixels), tmp_path, depth=5, first=4)
    assert result.holds, result.log


def test_a_sum_without_its_parity_is_found(tmp_path: Path) -> None:
    assert not prove(SumsBench((1, 127), odd=False), tmp_path, depth=5, first=4).holds


def test_columns_that_share_multipliers_add_the_same_products(tmp_path: Path) -> None:
    text = array_module(_shape(2, 2, 0, paired=True))
    result = _prove(2, 2, text, tmp_path, paired=True)
    assert result.holds, result.log


def test_a_pair_that_takes_the_wrong_lower_weights_is_found(tmp_path: Path) -> None:
    text = array_module(_shape(2, 2, 0, paired=True))
    right = "if (load[0]) lower <= weights;"
    assert text.count(right) == 1
    assert not _prove(2, 2, text.replace(right, "lower <= weights;"), tmp_path, paired=True).holds


def test_the_tree_adds_all_carries(tmp_path: Path) -> None:
    result = prove(CarriesBench(), tmp_path, depth=5, first=4)
    assert result.holds, result.log


def test_a_carry_that_is_lost_is_found(tmp_path: Path) -> None:
    assert not prove(CarriesBench(missing=3), tmp_path, depth=5, first=4).holds


_FAULTS = {
    "another latency": ("dot0_0 <= ", "dot0_1 <= "),
    "a weight of the other column": ("active[2][7:0]", "active[0][7:0]"),
    "a tile that is active early": ("if (swaps) begin", "if (swap) begin"),
    "a pixel without valid": ("if (valid) routed =", "if (1) routed ="),
}


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_fault_in_one_form_is_found(fault: str, tmp_path: Path) -> None:
    right, wrong = _FAULTS[fault]
    text = _forms(2, 2)
    assert text.count(right) == 1
    assert not _prove(2, 2, text.replace(right, wrong), tmp_path).holds


def test_a_level_without_its_last_bit_is_found(tmp_path: Path) -> None:
    assert not prove(LevelsBench(short=1), tmp_path, depth=1).holds
