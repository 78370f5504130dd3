"""Prepares the operands of the affine law: bytes, products of two bytes, or sums."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.params import HardwareParams

from .pool import SUM_BITS

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

    LATENCY = 2

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
        """Differences or a sum in the first stage, the product in the second."""
        m = Module()
        middle = Signal()
        m.d.sync += [middle.eq(self.valid), self.result_valid.eq(middle)]
        for lane in range(self._params.vector_lanes):
            first = Signal(signed(WIDE_BITS), name=f"first{lane}", reset_less=True)
            second = Signal(signed(DIFFERENCE_BITS), name=f"second{lane}", reset_less=True)
            with m.If(self.valid):
                self._take(m, lane, first, second)
            x1 = Signal(signed(WIDE_BITS), name=f"x1_{lane}", reset_less=True)
            x2 = Signal(signed(8), name=f"x2_{lane}", reset_less=True)
            m.d.comb += [self.x1[lane].eq(x1), self.x2[lane].eq(x2)]
            with m.If(middle):
                m.d.sync += [x1.eq(first), x2.eq(Mux(self.multiply | self.average, 0, second))]
                if self._params.vector_multiply:
                    with m.If(self.multiply):
                        m.d.sync += x1.eq(first[:DIFFERENCE_BITS].as_signed() * second)
        return m

    def _take(self, m: Module, lane: int, first: Signal, second: Signal) -> None:
        m.d.sync += [first.eq(self.a[lane] - self.zp_a), second.eq(self.b[lane] - self.zp_b)]
        if self._params.vector_average:
            with m.If(self.average):
                m.d.sync += first.eq(self.total[lane])
