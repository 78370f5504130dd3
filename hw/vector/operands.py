"""Prepares the operands of the affine law: bytes, products of two bytes, or sums, wide ones split in two halves."""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.affine import HIGH_SHIFT, OPERAND_BITS

from .pool import SUM_BITS

DIFFERENCE_BITS = 9


class Operands(wiring.Component):
    """From two words, or the sums of a window, to the two operands of each affine lane, in `LATENCY` cycles.

    Parameters
    ----------
    word_bytes
        Bytes in a word.
    with_product, with_sum
        Whether products of two words, and sums, can be had.

    Members
    -------
    valid, a, b, total
        Words and sums.
    zp_a, zp_b
        Zero points, taken off before a product.
    multiply, average
        The operand is the product of both words, or the sum, split between x2, worth `1 << HIGH_SHIFT` times as much,
        and x1; else x1 and x2 are the words themselves.
    result_valid, x1, x2
        The operands.
    """

    LATENCY = 2

    def __init__(self, word_bytes: int, with_product: bool, with_sum: bool) -> None:
        self._word_bytes = word_bytes
        self._with_product = with_product
        self._with_sum = with_sum
        word = data.ArrayLayout(signed(8), word_bytes)
        operand = data.ArrayLayout(signed(OPERAND_BITS), word_bytes)
        super().__init__(
            {
                "valid": In(1),
                "a": In(word),
                "b": In(word),
                "total": In(data.ArrayLayout(signed(SUM_BITS), word_bytes)),
                "zp_a": In(signed(8)),
                "zp_b": In(signed(8)),
                "multiply": In(1),
                "average": In(1),
                "result_valid": Out(1),
                "x1": Out(operand),
                "x2": Out(operand),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Differences or a split sum in the first stage, the product in the second."""
        m = Module()
        middle = Signal()
        m.d.sync += [middle.eq(self.valid), self.result_valid.eq(middle)]
        for lane in range(self._word_bytes):
            first = [Signal(signed(OPERAND_BITS), name=f"first{i}_{lane}", reset_less=True) for i in range(2)]
            second = [Signal(signed(OPERAND_BITS), name=f"second{i}_{lane}", reset_less=True) for i in range(2)]
            m.d.comb += [self.x1[lane].eq(second[0]), self.x2[lane].eq(second[1])]
            with m.If(self.valid):
                self._take(m, lane, first)
            with m.If(middle):
                self._multiply(m, first, second)
        return m

    def _take(self, m: Module, lane: int, first: list[Signal]) -> None:
        a, b = self.a[lane], self.b[lane]
        if not self._with_product:
            m.d.sync += [first[0].eq(a), first[1].eq(b)]
        else:
            m.d.sync += [
                first[0].eq(a - Mux(self.multiply, self.zp_a, 0)),
                first[1].eq(b - Mux(self.multiply, self.zp_b, 0)),
            ]
        if self._with_sum:
            total = self.total[lane]
            with m.If(self.average):
                m.d.sync += [first[0].eq(total[:HIGH_SHIFT]), first[1].eq(total >> HIGH_SHIFT)]

    def _multiply(self, m: Module, first: list[Signal], second: list[Signal]) -> None:
        m.d.sync += [after.eq(before) for before, after in zip(first, second, strict=True)]
        if self._with_product:
            a, b = (operand[:DIFFERENCE_BITS].as_signed() for operand in first)
            product = a * b
            with m.If(self.multiply):
                m.d.sync += [second[0].eq(product[:HIGH_SHIFT]), second[1].eq(product >> HIGH_SHIFT)]
