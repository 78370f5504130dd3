"""Prepares the operands of the affine law: bytes, products of two bytes, or sums."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.pool import SUM_BITS

DIFFERENCE_BITS = 9
WIDE_BITS = max(SUM_BITS, 2 * DIFFERENCE_BITS)
"""A sum or a product."""


class Operands(wiring.Component):
    """From two slices, or a slice of a window's sums, to both operands of each affine lane, in `LATENCY` cycles.

    Parameters
    ----------
    params
        The accelerator's parameters, which say whether there are products and sums at all.

    Members
    -------
    valid, a, b, total
        Slices and sums.
    zp_a, zp_b
        Taken off the bytes first.
    multiply, average
        x1 is the product of both bytes, or the sum, and x2 is zero; else x1 and x2 are the bytes.
    result_valid, x1, x2
        The operands.
    """

    LATENCY = 5

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        lanes = params.vector_lanes
        part = data.ArrayLayout(signed(8), lanes)
        super().__init__(
            {
                "valid": In(1),
                "a": In(part),
                "b": In(part),
                "total": In(data.ArrayLayout(signed(SUM_BITS), lanes)),
                "zp_a": In(signed(8)),
                "zp_b": In(signed(8)),
                "multiply": In(1),
                "average": In(1),
                "result_valid": Out(1),
                "x1": Out(data.ArrayLayout(signed(WIDE_BITS), lanes)),
                "x2": Out(part),
            }
        )

    @staticmethod
    def model(a: int, b: int, total: int, zp_a: int, zp_b: int, multiply: bool, average: bool) -> tuple[int, int]:
        """What x1 and x2 are; zero points are zero but for products."""
        if multiply:
            return (a - zp_a) * (b - zp_b), 0
        return (total, 0) if average else (a, b)

    def elaborate(self, platform: object) -> Module:
        """Operands come near, then differences or a sum, the product in two stages, and the choice."""
        m = Module()
        under_way = Signal(self.LATENCY)
        m.d.sync += under_way.eq(Cat(self.valid, under_way))
        m.d.comb += self.result_valid.eq(under_way[-1])
        self._a, self._b, self._total = (
            Signal.like(port, name=f"near_{name}", reset_less=True)
            for name, port in (("a", self.a), ("b", self.b), ("total", self.total))
        )
        with m.If(self.valid):
            m.d.sync += [self._a.eq(self.a), self._b.eq(self.b), self._total.eq(self.total)]
        self._zp_a, self._zp_b, self._multiply, self._average = (
            pipeline_stages(m, f"near_{name}", port, 1, reset_less=True)
            for name, port in (
                ("zp_a", self.zp_a),
                ("zp_b", self.zp_b),
                ("multiply", self.multiply),
                ("average", self.average),
            )
        )
        for lane in range(self._params.vector_lanes):
            self._lane(m, lane, list(under_way))
        return m

    def _lane(self, m: Module, lane: int, stage: list[Signal]) -> None:
        first = [Signal(signed(WIDE_BITS), name=f"first{lane}_{i}", reset_less=True) for i in range(1, 4)]
        second = [Signal(signed(DIFFERENCE_BITS), name=f"second{lane}_{i}", reset_less=True) for i in range(1, 4)]
        with m.If(stage[0]):
            self._take(m, lane, first[0], second[0])
        for i in (1, 2):
            with m.If(stage[i]):
                m.d.sync += [first[i].eq(first[i - 1]), second[i].eq(second[i - 1])]
        x1 = Signal(signed(WIDE_BITS), name=f"x1_{lane}", reset_less=True)
        x2 = Signal(signed(8), name=f"x2_{lane}", reset_less=True)
        m.d.comb += [self.x1[lane].eq(x1), self.x2[lane].eq(x2)]
        with m.If(stage[3]):
            m.d.sync += [x1.eq(first[2]), x2.eq(Mux(self._multiply | self._average, 0, second[2]))]
        if self._params.vector_multiply:
            product = self._product(m, lane, first[0][:DIFFERENCE_BITS].as_signed(), second[0])
            with m.If(stage[3] & self._multiply):
                m.d.sync += x1.eq(product)

    def _product(self, m: Module, lane: int, first: Value, second: Value) -> Signal:
        """Two stages.

        Multipliers have registers of their own on an FPGA: these end up in them, so that they serve nothing else. They
        run freely, unlike those that bring the operands past the multiplier: synthesis makes one of two that are alike.
        """
        factors = [Signal(signed(DIFFERENCE_BITS), name=f"factor{lane}_{i}", reset_less=True) for i in (1, 2)]
        product = Signal(signed(2 * DIFFERENCE_BITS), name=f"product{lane}", reset_less=True)
        m.d.sync += [factors[0].eq(first), factors[1].eq(second), product.eq(factors[0] * factors[1])]
        return product

    def _take(self, m: Module, lane: int, first: Signal, second: Signal) -> None:
        m.d.sync += [first.eq(self._a[lane] - self._zp_a), second.eq(self._b[lane] - self._zp_b)]
        if self._params.vector_average:
            with m.If(self._average):
                m.d.sync += first.eq(self._total[lane])
