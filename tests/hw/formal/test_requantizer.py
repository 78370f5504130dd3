"""The requantizer, for all inputs at a reduced width, against the definition in `intloom.hw.spec.arith`.

The lane normalizes, multiplies normal numbers and rounds at fixed bit positions. This definition does none of that: it
multiplies the plain numbers, splits the product at the binary point, and looks how close the fraction is to a half.
"""

from pathlib import Path
from types import SimpleNamespace

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Const, Module, Mux, ResetSignal, Signal, Value, signed
from amaranth.lib import wiring

from intloom.hw.mac.epilogue import requantizer
from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.spec.arith import RoundingMode
from tests.hw.formal.prover import prove

pytestmark = [pytest.mark.slow, pytest.mark.nightly]
LANE_BITS = 16
SUM_BITS = 12
"""Sums are free in fewer bits than the lane has, and in more than a significand has."""
STEPS = ((), (8, 4), (2, 1))
SIGNIFICAND_BITS = 10
EXPONENT_BITS = 7
MANTISSA_BITS = 3
"""Bits of the mantissa that may be set, from its top: solvers are slow with multiplications."""


def rounded_even(value: Value, shift: int) -> Value:
    """`value * 2**-shift`, ties to even, for a fixed shift."""
    quotient, rest, half = value >> shift, value[:shift], 1 << (shift - 1)
    return quotient + ((rest > half) | ((rest == half) & quotient[0]))


def rounded_to_significand(value: Value) -> Value:
    """A value with its top `SIGNIFICAND_BITS` bits, as a conversion to floating point leaves it."""
    result = value
    for excess in range(1, len(value) - SIGNIFICAND_BITS + 1):
        low = 1 << (SIGNIFICAND_BITS + excess - 1)
        result = Mux(value >= low, rounded_even(value, excess) << excess, result)
    return result


def blur(product: Value) -> Value:
    """Half a unit in the last bit of the product as a floating-point number."""
    result: Value = Const(0)
    for bits in range(SIGNIFICAND_BITS + 1, len(product) + 1):
        result = Mux(product >= 1 << (bits - 1), 1 << (bits - SIGNIFICAND_BITS - 1), result)
    return result


class Contract(wiring.Component):
    """A lane with one input held for ever, and what must come out; `fault` states another rounding rule on purpose."""

    def __init__(self, match: RoundingMode, fault: bool = False) -> None:
        self._match = match
        self._fault = fault
        super().__init__({})

    def _affine(self, m: Module, total: Value, mantissa: Value, exponent: Value) -> Value:
        """The magnitude of the scaled sum, rounded to an integer."""
        ort = self._match is RoundingMode.ORT
        magnitude = Signal(SUM_BITS)
        m.d.comb += magnitude.eq(Mux(total < 0, -total, total))
        factor = Signal(SUM_BITS + 1)
        m.d.comb += factor.eq(rounded_to_significand(magnitude) if ort else magnitude)
        product = Signal(SUM_BITS + 1 + SIGNIFICAND_BITS)
        # Past the product's width every shift gives a fraction far below a half.
        shift = Signal(range(len(product) + 3))
        quotient, fraction = Signal.like(product), Signal(len(product) + 3)
        half, distance = Signal(len(product) + 3), Signal(signed(len(product) + 4))
        m.d.comb += [
            product.eq(factor * mantissa),
            shift.eq(Mux(exponent > len(product) + 2, len(product) + 2, exponent)),
            quotient.eq(product >> shift),
            fraction.eq(product - (quotient << shift)),
            half.eq((1 << shift) >> 1),
            distance.eq(fraction - half),
        ]
        reach = blur(product) if ort and not self._fault else Const(0)
        tie = (distance <= reach) & (distance >= -reach)
        to_even = quotient[0] if ort or not self._fault else Const(1)
        return quotient + Mux(shift == 0, 0, Mux(tie, to_even, distance > 0))

    def elaborate(self, platform: object) -> Module:
        m = Module()
        parameters = SimpleNamespace(
            match=self._match, mantissa_bits=SIGNIFICAND_BITS, acc_bits=LANE_BITS, wide_multipliers=False
        )
        m.submodules.dut = dut = RequantizerLane(parameters)
        total, mantissa = AnyConst(signed(SUM_BITS)), AnyConst(SIGNIFICAND_BITS)
        exponent, zero_point = AnyConst(EXPONENT_BITS), AnyConst(signed(8))
        m.d.comb += [
            dut.enable.eq(~0),
            dut.acc.eq(total),
            dut.mantissa.eq(mantissa),
            dut.exponent.eq(exponent),
            dut.zero_point.eq(zero_point),
            Assume(~ResetSignal()),
            Assume((mantissa == 0) | mantissa[-1]),
            Assume(mantissa[:-MANTISSA_BITS] == 0),
        ]
        rounded = self._affine(m, total, mantissa, exponent)
        wanted = Mux(total < 0, -rounded, rounded) + zero_point
        m.d.comb += Assert(dut.result == Mux(wanted > 127, 127, Mux(wanted < -128, -128, wanted)))
        return m


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same description at widths that a solver can go through."""
    monkeypatch.setattr(requantizer, "_SUM_BITS", LANE_BITS)
    monkeypatch.setattr(requantizer, "_STEPS", STEPS)
    monkeypatch.setattr(requantizer, "_TOP", SIGNIFICAND_BITS)
    monkeypatch.setattr(requantizer, "FP32_SIGNIFICAND_BITS", SIGNIFICAND_BITS)


def holds(contract: Contract, folder: Path) -> bool:
    """Whether the lane's result equals the definition; inputs are constant, so one cycle after the latency suffices."""
    latency = RequantizerLane.LATENCY
    return prove(contract, folder, depth=latency + 1, first=latency).holds


@pytest.mark.parametrize("match", list(RoundingMode))
def test_the_lane_follows_the_definition(narrow: None, tmp_path: Path, match: RoundingMode):
    assert holds(Contract(match), tmp_path)


@pytest.mark.parametrize("match", list(RoundingMode))
def test_another_rounding_rule_is_refuted(narrow: None, tmp_path: Path, match: RoundingMode):
    assert not holds(Contract(match, fault=True), tmp_path)
