"""The requantizer at its full width, for all inputs, in four parts whose composition is the whole.

The lane is a chain; each proof replaces what comes before its part by free values:

1. Sum, normalization and rounding. For all accumulators and biases, significand * 2**(32 - bits - leading_zeros) is
   the magnitude of the wrapped sum: rounded to 24 significant bits (`ort`), or itself (`exact`). The significand's top
   bit is set, or the sum is 0.
2. Product. With any values in place of the partial products, the product is their sum, each shifted to its position;
   of the lowest bits, it has one that says whether any of them is set. The point is leading_zeros + exponent minus a
   constant.
3. Partial products. Each is the exact product of its parts of significand and mantissa, which have no gap.
4. Rounding. For any product that is 0 or has one of its two top bits set, any point, sign and zero point, the result is
   that of `intloom.hw.spec.arith.requantize` for product * 2**-(bits + mantissa_bits - 8 + point).

Composition: significand and mantissa are the sums of their shifted parts, so by distributivity 2 and 3 give
significand * mantissa without a remainder. By 1 the scaled sum is significand * 2**(32 - bits - leading_zeros) *
mantissa * 2**-exponent, and by 2 this is the number that 4 rounds: point = leading_zeros + exponent - mantissa_bits
- 24. Significand and mantissa are 0 or at least half of their range, so their product is 0 or at least a quarter of its
range: the assumption of 4. `requantize` rounds the product of plain numbers, which is this one shifted right by the two
normalizations: a shift scales quotient, fraction, half and half an ulp alike. An ulp below the last bit of the plain
product counts as 0 there; here it is smaller than the distance of two products. A plain product with shift 0 has no
fraction: here its fraction is 0, which is a tie only if half an ulp reaches a half, at 2**23 and above, where every
result is clamped.
"""

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value, signed

from intloom.hw.mac.epilogue.requantizer import RequantizerLane
from intloom.hw.mac.epilogue.scale_normalizer import EXPONENT_BITS
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, RoundingMode
from intloom.hw.spec.params import HardwareParams, preset
from tests.hw.formal.planted import each_night, planted, rebased
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
SUM_BITS = 32
RESULT_BITS = 8
MODES = {
    "ort": preset("base"),
    "ort, wide multipliers": preset("base").replace(multiplier_bits=25),
    "exact": preset("base").replace(match="exact"),
}


def significand_bits(params: HardwareParams) -> int:
    """Bits of a normalized sum."""
    return FP32_SIGNIFICAND_BITS if params.match is RoundingMode.ORT else SUM_BITS


def rounded_even(value: Value, shift: int) -> Value:
    """`shift_round_even` for a fixed shift of 1 or more."""
    quotient, rest, half = value[shift:], value[:shift], 1 << (shift - 1)
    return quotient + ((rest > half) | ((rest == half) & quotient[0]))


def with_sticky_bit(product: Value, bits: int) -> Value:
    """The product's upper `bits - 1` bits, above one that says whether any other is set."""
    low = len(product) - bits + 1
    return Cat(product[:low].any(), product[low:])


class SumLane(RequantizerLane):
    """Part 1: the sum of accumulator and bias, in the lane's widths."""

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(params)
        self.params = params

    def _round_sum(self, m: Module, normal: Signal, zeros: Signal, negative: Value) -> tuple[Signal, Signal]:
        significand, leading_zeros = super()._round_sum(m, normal, zeros, negative)
        bits = significand_bits(self.params)
        # Modulo 2**32, as int32 sums wrap.
        total, magnitude = Signal(signed(SUM_BITS)), Signal(SUM_BITS)
        wanted = Signal(SUM_BITS + 1)
        m.d.comb += [
            total.eq((self.acc + self.bias)[:SUM_BITS].as_signed()),
            magnitude.eq(Mux(total < 0, -total, total)),
            wanted.eq(magnitude),
        ]
        for excess in range(1, SUM_BITS - bits + 1):
            with m.If(magnitude[bits + excess - 1]):
                m.d.comb += wanted.eq(rounded_even(magnitude, excess) << excess)
        # significand * 2**(32 - bits - leading_zeros), multiplied by 2**31 so that it is an integer; then 2**31 times
        # the wanted value is a fixed shift of it.
        scaled, positions = Signal(bits + SUM_BITS + 1), Signal(range(SUM_BITS + 1))
        m.d.comb += [
            positions.eq(SUM_BITS - 1 - leading_zeros),
            scaled.eq(significand << positions),
            Assert((leading_zeros >= -1) & (leading_zeros < SUM_BITS)),
            Assert(scaled == wanted << (bits - 1)),
            Assert(significand[-1] | (total == 0)),
        ]
        return significand, leading_zeros


class ProductLane(RequantizerLane):
    """Part 2: any partial products, any significand and leading zeros."""

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(params)
        self.params = params

    def _round_sum(self, m: Module, normal: Signal, zeros: Signal, negative: Value) -> tuple[Signal, Signal]:
        significand = Signal(significand_bits(self.params))
        leading_zeros = Signal(signed(len(zeros) + 1))
        m.d.comb += [significand.eq(AnyConst(len(significand))), leading_zeros.eq(AnyConst(signed(len(zeros) + 1)))]
        return significand, leading_zeros

    def _parts(self, m: Module, significand: Signal) -> list[Any]:
        self.parts = [
            part._replace(value=Signal.like(part.value, name="any")) for part in super()._parts(m, significand)
        ]
        m.d.comb += [part.value.eq(AnyConst(len(part.value))) for part in self.parts]
        return self.parts

    def _multiply(self, m: Module, significand: Signal, zeros: Signal) -> tuple[Signal, Signal]:
        product, point = super()._multiply(m, significand, zeros)
        whole = Signal(significand_bits(self.params) + self.params.mantissa_bits)
        m.d.comb += [
            whole.eq(sum(part.value << part.position for part in self.parts)),
            Assert(product == with_sticky_bit(whole, len(product))),
            Assert(point == zeros + self.exponent - self.params.mantissa_bits - 24),
        ]
        return product, point


class PartsLane(RequantizerLane):
    """Part 3: any significand; partial products beside sums of shifted terms."""

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(params)
        self.params = params

    def _round_sum(self, m: Module, normal: Signal, zeros: Signal, negative: Value) -> tuple[Signal, Signal]:
        significand = Signal(significand_bits(self.params))
        m.d.comb += significand.eq(AnyConst(len(significand)))
        return significand, zeros

    def _parts(self, m: Module, significand: Signal) -> list[Any]:
        parts = super()._parts(m, significand)
        x_parts, f_parts = (
            ((significand, 0, 24),), ((self.mantissa, 0, 17), (self.mantissa, 17, 24))
        ) if self.params.wide_multipliers else (
            _halves(significand), _halves(self.mantissa)
        )  # fmt: skip
        for part, ((x, x_low, x_end), (f, f_low, f_end)) in zip(parts, product(x_parts, f_parts), strict=True):
            wide_x, wide_f, whole = (Signal(48) for _ in range(3))
            m.d.comb += [
                wide_x.eq(x[x_low:x_end]),
                wide_f.eq(f[f_low:f_end]),
                whole.eq(wide_x * wide_f),
                Assert(part.value == whole),
                Assert(part.position == x_low + f_low),
            ]
        return parts


def _halves(factor: Signal) -> tuple[tuple[Signal, int, int], ...]:
    middle = len(factor) // 2
    return (factor, 0, middle), (factor, middle, len(factor))


class RoundingLane(RequantizerLane):
    """Part 4: any product, point and sign."""

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(params)
        self.params = params

    def _multiply(self, m: Module, significand: Signal, zeros: Signal) -> tuple[Signal, Signal]:
        product, point = super()._multiply(m, significand, zeros)
        bits = significand_bits(self.params) + self.params.mantissa_bits
        self.product, self.point = Signal(bits), Signal(signed(len(point)))
        short = Signal(len(product))
        high = self.product[-2:].any()
        m.d.comb += [
            self.product.eq(AnyConst(bits)),
            short.eq(with_sticky_bit(self.product, len(product))),
            self.point.eq(AnyConst(signed(len(point)))),
            Assume(high | (self.product == 0)),
            # From the ranges of leading zeros and exponent; so the point does not wrap.
            Assume(self.point >= -1 - self.params.mantissa_bits - 24),
            Assume(self.point <= SUM_BITS - 1 + (1 << EXPONENT_BITS) - 1 - self.params.mantissa_bits - 24),
        ]
        return short, self.point

    def _round(self, shift: int) -> Value:
        """The product shifted right by `shift` bits, rounded as `requantize` does."""
        product, bits = self.product, len(self.product)
        wide = Cat(product, Const(0, 4))
        if self.params.match is RoundingMode.EXACT:
            return rounded_even(wide, shift)
        quotient, fraction, half = wide[shift:], Cat(wide[:shift], 0, 0), 1 << (shift - 1)
        # Half an ulp of a product with its top bit set, and of one with its second bit set.
        blur = Mux(product[-1], 1 << (bits - FP32_SIGNIFICAND_BITS - 1), 1 << (bits - FP32_SIGNIFICAND_BITS - 2))
        tie = (fraction + blur >= half) & (fraction <= half + blur)
        return quotient + Mux(tie, quotient[0], fraction > half)

    def _finish(self, m: Module, fixed: object, negative: Value) -> None:
        super()._finish(m, fixed, negative)  # type: ignore[arg-type]  # a private class
        low, high = -2, RESULT_BITS + 2
        magnitude = Signal(RESULT_BITS + 8)
        for point in range(low, high + 1):
            with m.If(self.point == point):
                m.d.comb += magnitude.eq(self._round(len(self.product) - RESULT_BITS + point))
        # Below these points a product is at least 2**8, which any zero point leaves out of range; above, below 1/4.
        with m.If((self.point < low) & (self.product != 0)):
            m.d.comb += magnitude.eq(1 << RESULT_BITS)
        wanted = Signal(signed(RESULT_BITS + 10))
        m.d.comb += [
            wanted.eq(Mux(negative, -magnitude, magnitude) + self.zero_point),
            Assert(self.result == Mux(wanted > INT8_MAX, INT8_MAX, Mux(wanted < INT8_MIN, INT8_MIN, wanted))),
        ]


class LaneBench(Elaboratable):
    """A lane with one input held for ever."""

    def __init__(self, component: Callable[[HardwareParams], RequantizerLane], params: HardwareParams) -> None:
        self.component, self.params = component, params

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.dut = dut = self.component(self.params)
        m.d.comb += [dut.enable.eq(~0), Assume(~ResetSignal())]
        for port in (dut.acc, dut.bias, dut.mantissa, dut.exponent, dut.zero_point):
            m.d.comb += port.eq(AnyConst(port.shape()))
        return m


PARTS = {
    "sum": (SumLane, RequantizerLane.SCALE_STAGE),
    "product": (ProductLane, RequantizerLane.ZERO_POINT_STAGE),
    "parts": (PartsLane, RequantizerLane.ZERO_POINT_STAGE),
    "rounding": (RoundingLane, RequantizerLane.LATENCY),
}
"""Each part's lane and the cycles after which its values are stable: its inputs are constant."""


def holds(part: str, mode: str, folder: Path, *changes: tuple[str, str]) -> bool:
    """Whether a part follows its definition; `changes` plant a fault."""
    component, latency = PARTS[part]
    if changes:
        component = rebased(component, planted(RequantizerLane, *changes))
    return prove(LaneBench(component, MODES[mode]), folder, depth=latency + 1, first=latency).holds


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_lane_follows_its_definition(part: str, mode: str, tmp_path: Path) -> None:
    assert holds(part, mode, tmp_path)


_FAULTS = {
    "sum: no carry": ("ort", ("kept.all() & increment", "kept[1:].all() & increment")),
    "product: carry between halves": ("ort", ("outer[low:] + sum(", "outer[low:-1] + sum(")),
    "product: offset": ("exact", ("(_SUM_BITS - _TOP)", "(_SUM_BITS - _TOP - 1)")),
    "parts: a bit less": ("ort", ("f_high - f_low\n", "f_high - f_low - 1\n")),
    "rounding: ties up": ("exact", ("up = Mux(fixed.tie, fixed.whole[0], fixed.half)", "up = fixed.half")),
    "rounding: a sticky bit less": ("exact", ("product[: after_kept - 1]", "product[1 : after_kept - 1]")),
}  # fmt: skip


@pytest.mark.parametrize("fault", each_night(_FAULTS))
def test_a_faulty_part_is_refuted(fault: str, tmp_path: Path) -> None:
    mode, change = _FAULTS[fault]
    assert not holds(fault.split(":", maxsplit=1)[0], mode, tmp_path, change)
