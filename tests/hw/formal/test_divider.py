"""The divider at its full width, for all operands, by induction over its stages.

A stage gets the remainder r of the bits before it, or r minus the divisor. From r below the divisor it makes the
remainder of one bit more, again below the divisor or smaller by it, and the bit of division on paper. The first
remainder is below the divisor, because dividends are in range.
"""

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Module, Mux, Signal, signed
from amaranth.lib import wiring

from intloom.hw.spec.softmax import EXPONENTIAL_BITS, QUOTIENT_BITS, TOTAL_BITS
from intloom.hw.vector.divider import DIVIDEND_BITS, step
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


class Stage(wiring.Component):
    """One stage from any state; `fault` accepts a remainder that is not below the divisor."""

    def __init__(self, fault: bool = False) -> None:
        self._fault = fault
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        rest, divisor = AnyConst(TOTAL_BITS), AnyConst(TOTAL_BITS)
        bit, below = AnyConst(1), AnyConst(1)
        remainder = Signal(signed(TOTAL_BITS + 1))
        wide, after = Signal(TOTAL_BITS + 1), Signal(signed(TOTAL_BITS + 1))
        if not self._fault:
            m.d.comb += Assume(rest < divisor)
        m.d.comb += [
            remainder.eq(Mux(below, rest - divisor, rest)),
            wide.eq((rest << 1) + bit),
            after.eq(step(remainder, bit, divisor)),
            Assert(after[-1] == (wide < divisor)),
            Assert(Mux(after[-1], after + divisor, after) == Mux(wide < divisor, wide, wide - divisor)),
            Assert(Mux(after[-1], after + divisor, after) < divisor),
        ]
        return m


class Range(wiring.Component):
    """A dividend of the Softmax: an exponential that is part of the sum; with `fault`, it need not be part of it."""

    def __init__(self, fault: bool = False) -> None:
        self._fault = fault
        super().__init__({})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        entry, total, less = AnyConst(EXPONENTIAL_BITS), AnyConst(TOTAL_BITS), AnyConst(2)
        dividend = Signal(DIVIDEND_BITS + 2)
        removed = Mux(less[0], entry, 0) + Mux(less[1], entry << 1, 0)
        if not self._fault:
            m.d.comb += Assume(entry <= total)
        m.d.comb += [
            dividend.eq((entry << 8) - removed + (total >> 1)),
            Assert(dividend[DIVIDEND_BITS:] == 0),
            Assert((dividend >> QUOTIENT_BITS < total) | ((dividend == 0) & (total == 0))),
        ]
        return m


def test_a_stage_makes_the_remainder_of_one_bit_more(tmp_path: Path) -> None:
    assert prove(Stage(), tmp_path, depth=1).holds


def test_a_remainder_out_of_range_is_refuted(tmp_path: Path) -> None:
    assert not prove(Stage(fault=True), tmp_path, depth=1).holds


def test_dividends_of_a_softmax_are_in_range(tmp_path: Path) -> None:
    assert prove(Range(), tmp_path, depth=1).holds


def test_an_exponential_above_the_sum_is_refuted(tmp_path: Path) -> None:
    assert not prove(Range(fault=True), tmp_path, depth=1).holds
