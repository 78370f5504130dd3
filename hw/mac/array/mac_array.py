"""MAC array: gives one input word a cycle to stationary weights; an adder tree per column forms a dot product."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from amaranth.hdl import ClockSignal, Instance, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.product import (
    LutProduct,
    OneModule,
    joined,
    paired_factor,
    paired_sums,
    product,
    sum_with_carry,
)
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec import timing
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import WIDE_MULTIPLIER, HardwareParams
from intloom.hw.yosys_attributes import REGISTER_COPY

ARRAY_MODULE = "intloom_mac_array"
"""Name of the module in Verilog, which has a form for synthesis and one for simulation."""

_INPUTS = ("load", "weights", "valid", "pixel", "swap")

_COLUMNS_A_COPY = 2
"""Columns served by one copy of the pixel and swap registers."""


def dot_bits(rows: int) -> int:
    """Width of a sum of `rows` products."""
    return 16 + (rows - 1).bit_length()


class MacArray(wiring.Component):
    """`rows` x `cols` products of an int8 and a weight of `WEIGHT_BITS` bits, summed per column.

    A word is broadcast: row r of every column multiplies byte r.

    Weights are stationary. A tile is written into shadow registers column by column and becomes active as a whole with
    the pixel that carries `swap` (double buffer).

    Members
    -------
    load, weights:
        Bit c writes the weights, one for each row, into the shadow of column c.
    valid, pixel, swap:
        An input word; `swap` activates the shadow tile for this and the following pixels.
    dots:
        Dot products of the word given `latency` cycles before.

    Handshake
    ---------
    No back-pressure in either direction.

    Timing
    ------
    One word a cycle. From a pixel to its dot products: `latency(rows)` = 4 + log2(rows) cycles: routing register,
    multiplier input, product, multiplier output, adder tree.

    Requirements
    ------------
    A column may be overwritten from the cycle after `swap` on, not before. With wide multipliers, columns are loaded
    in order, and `swap` does not come between those of a pair.

    Reset and faults
    ----------------
    Data registers are not reset; the validity of `dots` follows from the pixel's. There are no faults.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        self._rows, self._cols = params.rows, params.cols
        self._lut_products = params.array_lut_products
        self._paired = params.wide_multipliers
        self._dot = signed(dot_bits(params.rows))
        super().__init__(
            {
                "load": In(params.cols),
                "weights": In(data.ArrayLayout(signed(WEIGHT_BITS), params.rows)),
                "valid": In(1),
                "pixel": In(8 * params.rows),
                "swap": In(1),
                "dots": Out(data.ArrayLayout(self._dot, params.cols)),
            }
        )

    @staticmethod
    def latency(rows: int) -> int:
        """Cycles from a pixel to its dot products."""
        return timing.array_latency(rows)

    @staticmethod
    def model(pixel: Sequence[int], tile: Sequence[Sequence[int]]) -> list[int]:
        """The dot product of each column's weights with the pixel."""
        return [sum(p * w for p, w in zip(pixel, column, strict=True)) for column in tile]

    def elaborate(self, platform: object) -> Module:
        """Wide registers for weights and pixels; per column the products and a free-running adder tree.

        Pixels pass one pipeline register for routing, as weights do in `ZeroPoints`, and one at the multiplier inputs:
        an FPGA's multipliers are spread over the device and have their own input and output registers.
        """
        m = Module()
        self._platform = platform
        if isinstance(platform, OneModule) and platform.arrays:
            ports = {f"i_{name}": Value.cast(getattr(self, name)) for name in _INPUTS}
            m.submodules.forms = Instance(ARRAY_MODULE, i_clk=ClockSignal(), o_dots=Value.cast(self.dots), **ports)
            return m
        columns = range(self._cols)
        # The lower weights of a pair of columns wait for the upper ones: both are in one register of a multiplier.
        self._lower = Signal(self.weights.shape(), name="lower", reset_less=True)
        if self._paired:
            with m.If(self.load[::2].any()):
                m.d.sync += self._lower.eq(self.weights)
        routed = Signal(8 * self._rows, reset_less=True, attrs={REGISTER_COPY: 1})
        with m.If(self.valid):
            m.d.sync += routed.eq(self.pixel)
        for number, first in enumerate(columns[::_COLUMNS_A_COPY]):
            swap = self._copy(m, "swap", self.swap, number)
            pixel = self._copy(m, "pixel", routed, number)
            if self._paired and first * self._rows >= self._lut_products:
                self._pair(m, first, pixel, swap)
                continue
            for column in columns[first : first + _COLUMNS_A_COPY]:
                products = self._products(m, column, pixel, self._active(m, column, swap))
                m.d.comb += self.dots[column].eq(self._tree(m, column, products))
        return m

    def _copy(self, m: Module, name: str, of: Signal, number: int) -> Signal:
        """A duplicate per group of columns: one register for all would have to route across the whole array."""
        copy = Signal.like(of, name=f"{name}{number}", reset_less=True, attrs={REGISTER_COPY: 1})
        m.d.sync += copy.eq(of)
        return copy

    def _active(self, m: Module, column: int, swap: Signal) -> data.View[data.ArrayLayout]:
        shadow = Signal(self.weights.shape(), name=f"shadow{column}", reset_less=True)
        active = Signal(self.weights.shape(), name=f"active{column}", reset_less=True)
        with m.If(self.load[column]):
            m.d.sync += shadow.eq(self.weights)
        with m.If(swap):
            m.d.sync += active.eq(shadow)
        return active

    def _products(self, m: Module, column: int, pixel: Signal, weights: data.View[data.ArrayLayout]) -> list[Value]:
        products = []
        for row in range(self._rows):
            name = f"product{column}_{row}"
            factors = pixel.word_select(row, 8).as_signed(), weights[row]
            in_luts = column * self._rows + row < self._lut_products
            products.append(
                LutProduct.attach(m, name, *factors, self._platform) if in_luts else product(m, name, *factors)
            )
        return products

    def _pair(self, m: Module, column: int, pixel: Signal, swap: Signal) -> None:
        """Two columns whose products of a row share a multiplier; that of an odd row adds the products of both rows.

        Odd rows come a cycle later, so that the sums come with those of the first level of a tree.
        """
        late_pixel, late_swap = (pipeline_stages(m, f"late_{of.name}_", of, 1, reset_less=True) for of in (pixel, swap))
        factors = [self._factor(m, column, row, swap, late_swap if row % 2 else swap) for row in range(self._rows)]
        sums = []
        for row in range(0, self._rows, 2):
            pixels = pixel.word_select(row, 8).as_signed(), late_pixel.word_select(row + 1, 8).as_signed()
            (first, first_odd), (second, second_odd) = factors[row : row + 2]
            odd = (pixel[8 * row] & first_odd) ^ (pixel[8 * row + 8] & second_odd)
            sums.append(paired_sums(m, f"product{column}_{row}", pixels, (first, second), odd))
        lower, upper, borrows = (list(values) for values in zip(*sums, strict=True))
        m.d.comb += [
            self.dots[column].eq(self._tree(m, column, lower)),
            self.dots[column + 1].eq(self._tree(m, column + 1, upper, borrows)),
        ]

    def _factor(self, m: Module, column: int, row: int, swap: Signal, activate: Signal) -> tuple[Signal, Signal]:
        """The factor of both weights of a row, and whether the upper one is odd."""
        shadow = Signal(signed(WIDE_MULTIPLIER), name=f"shadow{column}_{row}", reset_less=True)
        active = Signal(signed(WIDE_MULTIPLIER), name=f"active{column}_{row}", reset_less=True)
        odd = Signal(name=f"odd{column}_{row}", reset_less=True)
        with m.If(self.load[column + 1]):
            m.d.sync += shadow.eq(joined(self._lower[row], self.weights[row]))
        with m.If(swap):
            m.d.sync += odd.eq(shadow[-WEIGHT_BITS])
        with m.If(activate):
            m.d.sync += active.eq(paired_factor(shadow))
        return active, odd

    def _tree(self, m: Module, column: int, terms: list[Value], carries: Sequence[Value] = ()) -> Value:
        """One adder level a stage, each adder with one of the carries; an odd term passes through a register."""
        if carries:
            # There is one adder less than products.
            terms, carries = [terms[0] + carries[0], *terms[1:]], carries[1:]
        for level in range((len(terms) - 1).bit_length()):
            pairs = [terms[i : i + 2] for i in range(0, len(terms), 2)]
            shape = signed(len(terms[-1]) + 1)
            sums = [Signal(shape, name=f"sum{column}_{level}_{i}", reset_less=True) for i in range(len(pairs))]
            now, rest = carries[: len(sums)], carries[len(sums) :]
            later = [Signal(name=f"carry{column}_{level}_{i}", reset_less=True) for i in range(len(rest))]
            m.d.sync += [total.eq(_sum(pair, carry)) for total, pair, carry in zip_longest(sums, pairs, now)]
            m.d.sync += [after.eq(before) for after, before in zip(later, rest, strict=True)]
            terms, carries = [*sums], later
        return terms[0]


def _sum(pair: list[Value], carry: Value | None) -> Value:
    return sum_with_carry(pair[0], pair[1], carry) if len(pair) == 2 else pair[0]
