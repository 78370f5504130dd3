"""Requantizer: an accumulator to an int8, rounded as `intloom.hw.spec.arith.requantize` defines.

Sum and scale are normalized (top bit set), so the product's top bit has one of two positions. Because of the final
clamp only nine positions of the binary point matter; any other gives 0 or a clamped result. Below the point the half
bit suffices, with two flags: all lower bits are zeros, or all ones. The product is never rounded to 24 bits as fp32
would (`ort`), because that only turns values next to a tie into ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.epilogue.scale_normalizer import EXPONENT_BITS
from intloom.hw.pipeline import output_register
from intloom.hw.spec import timing
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, RoundingMode, Scale, requantize, wrap
from intloom.hw.spec.params import HardwareParams

_SUM_BITS = 32
_STEPS = ((16,), (8, 4), (2, 1))
"""Shift distances of each normalization stage; in all one less than the sum's bits."""
_TOP = FP32_SIGNIFICAND_BITS
_POINT_BITS = 9
_MAX_POINT = 8
"""Largest position of the binary point that gives a result from 0 to 255."""
_WINDOW_BITS = _MAX_POINT + 1
"""A result's bits and the half bit below them, at the highest position of the point."""

_BELOW = data.StructLayout({"zeros": 1, "ones": 1, "half": 1, "rest": 1})
"""Product bits below the window: all zeros, or all ones, down to the 24th; the half bit of the 24th; any bit
after it."""


_NARROW_BITS = 17
"""Bits of the narrower operand of a wide multiplier, without a sign."""


class _Part(NamedTuple):
    """A partial product and the position of its lowest bit in the product."""

    position: int
    value: Signal


@dataclass(frozen=True)
class _FixedPoint:
    """Integer part of a magnitude; 256 or more; most significant fraction bit; the fraction is a tie."""

    whole: Signal
    overflow: Signal
    half: Signal
    tie: Signal


_FIXED_POINT = {"whole": _MAX_POINT, "overflow": 1, "half": 1, "tie": 1}


class RequantizerLane(wiring.Component):
    """Requantizes one accumulator a cycle: bias, scale, round, zero point, clamp.

    Members
    -------
    enable:
        Bit i: stage i holds a valid value; bit i + 1 follows bit i by one cycle.
    acc, bias:
        The value's sum and its channel's bias.
    mantissa, exponent:
        Its channel's scale from `ScaleNormalizer`.
    zero_point:
        The output's zero point.
    result:
        The byte.

    Handshake
    ---------
    No back-pressure. Stages without a valid value keep their registers (clock enable), except for the multiplier
    stages.

    Timing
    ------
    One value a cycle. From `acc` and `bias` to `mantissa` and `exponent`: `SCALE_STAGE` = 5 cycles; to `zero_point`:
    `ZERO_POINT_STAGE` = 10; to `result`: `LATENCY` = 12.

    Requirements
    ------------
    `mantissa` has its top bit set or is 0.

    Reset and faults
    ----------------
    Data registers are not reset. There are no faults.
    """

    SCALE_STAGE = 5
    ZERO_POINT_STAGE = 10
    LATENCY = timing.REQUANTIZE

    def __init__(self, params: HardwareParams) -> None:
        self._ort = params.match is RoundingMode.ORT
        self._mantissa_bits = params.mantissa_bits
        self._significand_bits = FP32_SIGNIFICAND_BITS if self._ort else _SUM_BITS
        self._wide = self._ort and params.wide_multipliers
        super().__init__(
            {
                "enable": In(self.LATENCY),
                "acc": In(signed(params.acc_bits)),
                "bias": In(signed(_SUM_BITS)),
                "mantissa": In(params.mantissa_bits),
                "exponent": In(EXPONENT_BITS),
                "zero_point": In(signed(8)),
                "result": Out(signed(8)),
            }
        )

    @staticmethod
    def model(acc: int, bias: int, scale: Scale, zero_point: int, match: RoundingMode) -> int:
        """The value of `result`: the requantization rule on the 32-bit sum."""
        return requantize(wrap(acc + bias, _SUM_BITS), scale, zero_point, match)

    def elaborate(self, platform: object) -> Module:
        """Twelve stages; the sign travels beside them."""
        m = Module()
        total = Signal(signed(_SUM_BITS), reset_less=True)
        with m.If(self.enable[0]):
            m.d.sync += total.eq(self.acc + self.bias)
        sign_stages = Signal(self.ZERO_POINT_STAGE - 1, reset_less=True)
        signs = Cat(total[-1], sign_stages)
        m.d.sync += sign_stages.eq(signs)
        normal, zeros = self._normalize(m, total, signs)
        significand, zeros = self._round_sum(m, normal, zeros, signs[3])
        product, point = self._multiply(m, significand, zeros)
        window, below, point = self._align(m, product, point)
        self._finish(m, self._fix_point(m, window, below, point), signs[-1])
        return m

    def _normalize(self, m: Module, total: Signal, signs: Value) -> tuple[Signal, Signal]:
        """Stages 1 to 3: shift the top bit up to bit 31 and count the leading zeros.

        A negative sum is inverted, with ones shifted in from below; the missing increment is added in stage 4.
        """
        value: Value = total.as_unsigned() ^ signs[0].replicate(_SUM_BITS)
        count: list[Signal] = []
        for stage, steps in enumerate(_STEPS, start=1):
            fill = signs[stage - 1]
            for step in steps:
                up = Signal(name=f"up{step}")
                shifted = Signal(_SUM_BITS, name=f"shifted{step}")
                higher = Cat(fill.replicate(step), value)[:_SUM_BITS]
                m.d.comb += [up.eq(~value[-step:].any()), shifted.eq(Mux(up, higher, value))]
                value = shifted
                count.insert(0, up)
            register = Signal(_SUM_BITS, name=f"normal{stage}", reset_less=True)
            zeros = Signal(len(count), name=f"zeros{stage}", reset_less=True)
            with m.If(self.enable[stage]):
                m.d.sync += [register.eq(value), zeros.eq(Cat(*count))]
            value, count = register, list(zeros)
        return value, zeros

    def _round_sum(self, m: Module, normal: Signal, zeros: Signal, negative: Value) -> tuple[Signal, Signal]:
        """Stage 4: add the increment of a negative sum and round to 24 bits, ties to even.

        A carry out means one leading zero less, so the count may become -1.
        """
        bits = self._significand_bits
        significand = Signal(bits, reset_less=True)
        leading_zeros = Signal(signed(len(zeros) + 1), name="leading_zeros", reset_less=True)
        kept, dropped = normal[-bits:], normal[:-bits]
        increment = self._rounds_up(kept[0], dropped, negative) if len(dropped) else negative
        rounded, carry = Signal(bits), Signal()
        # The carry is an AND over the kept bits, parallel to the adder: it does not wait for the carry chain.
        m.d.comb += [rounded.eq(kept + increment), carry.eq(kept.all() & increment)]
        with m.If(self.enable[4]):
            m.d.sync += [
                significand.eq(Cat(rounded[:-1], rounded[-1] | carry)),
                leading_zeros.eq(zeros - carry),
            ]
        return significand, leading_zeros

    def _rounds_up(self, last: Value, dropped: Value, negative: Value) -> Value:
        """Whether the dropped bits, plus one if `negative`, exceed a half, or equal it while `last` is set."""
        half, rest = dropped[-1], dropped[:-1]
        return Mux(negative, half | (rest.all() & last), half & (rest.any() | last))

    def _multiply(self, m: Module, significand: Signal, zeros: Signal) -> tuple[Signal, Signal]:
        """Stages 5 to 7: partial products and their sum; position of the product's binary point.

        Rounding does not tell the product's lowest bits, which are those of one partial product, from each other: its
        lowest bit stands for them and says whether any is set.
        """
        parts = self._parts(m, significand)
        total, low = self._sum_parts(parts)
        # Right shift of the largest product's top 24 bits to their weight, minus the shift that yields 255.xx.
        offset = self._mantissa_bits + (_SUM_BITS - _TOP) + (_TOP - _MAX_POINT)
        point5, point6, point7 = (Signal(signed(_POINT_BITS), name=f"point{i}", reset_less=True) for i in (5, 6, 7))
        product = Signal(self._significand_bits + self._mantissa_bits - low + 1, reset_less=True)
        with m.If(self.enable[5]):
            m.d.sync += point5.eq(zeros + self.exponent)
        # The offset is constant, but added in a cycle of its own, while the multipliers take theirs anyway.
        with m.If(self.enable[6]):
            m.d.sync += point6.eq(point5 - offset)
        with m.If(self.enable[7]):
            m.d.sync += [product.eq(Cat(parts[0].value[:low].any(), total)), point7.eq(point6)]
        return product, point7

    def _sum_parts(self, parts: list[_Part]) -> tuple[Value, int]:
        """The product without the lowest bits, which have one term, by one adder; the number of these bits."""
        first, *middle = parts
        if self._wide:
            low = middle[0].position
            return first.value[low:] + middle[0].value, low
        # The outer partial products do not overlap.
        outer, low = Cat(first.value, middle.pop().value), min(part.position for part in middle)
        return outer[low:] + sum(part.value << (part.position - low) for part in middle), low

    def _parts(self, m: Module, significand: Signal) -> list[_Part]:
        """Stages 5 and 6: partial products, each small enough for one multiplier of the FPGA.

        A multiplier of 18 x 18 bits takes a half of each factor; one of 25 x 18 bits the whole significand and 17 bits
        of the mantissa. Multipliers absorb their input and output registers only if they feed nothing else.
        """
        x = Signal.like(significand, name="factor", reset_less=True)
        f = Signal.like(self.mantissa, name="scale", reset_less=True)
        m.d.sync += [x.eq(significand), f.eq(self.mantissa)]
        x_cuts = (0, len(x)) if self._wide else (0, len(x) // 2, len(x))
        f_cuts = (0, _NARROW_BITS if self._wide else len(f) // 2, len(f))
        parts = []
        for x_low, x_high in pairwise(x_cuts):
            for f_low, f_high in pairwise(f_cuts):
                bits = x_high - x_low + f_high - f_low
                part = Signal(bits, name=f"part{x_low}_{f_low}", reset_less=True)
                m.d.sync += part.eq(x[x_low:x_high] * f[f_low:f_high])
                parts.append(_Part(x_low + f_low, part))
        return parts

    def _align(self, m: Module, product: Signal, point: Signal) -> tuple[Signal, data.View[data.StructLayout], Signal]:
        """Stage 8: a window of bits from the product's top bit down, and flags of the bits below."""
        high = product[-1]
        after_window = len(product) - 1 - _WINDOW_BITS
        after_kept = len(product) - 1 - _TOP
        # Positions for a clear top bit; with a set one they are one higher.
        kept, ends = product[after_kept + 1 : after_window], (product[after_kept], product[after_window])
        window = Signal(_WINDOW_BITS, reset_less=True)
        below = Signal(_BELOW, reset_less=True)
        shifted = Signal.like(point, name="point8", reset_less=True)
        with m.If(self.enable[8]):
            m.d.sync += [
                shifted.eq(point + ~high),
                window.eq(Mux(high, product[-_WINDOW_BITS:], product[after_window:-1])),
                below.zeros.eq(~kept.any() & ~Mux(high, *reversed(ends))),
                below.ones.eq(kept.all() & Mux(high, *reversed(ends))),
                below.half.eq(Mux(high, product[after_kept], product[after_kept - 1])),
                below.rest.eq(product[: after_kept - 1].any() | (high & product[after_kept - 1])),
            ]
        return window, below, shifted

    def _fix_point(self, m: Module, window: Signal, below: data.View[data.StructLayout], point: Signal) -> _FixedPoint:
        """Stage 9: fix the binary point and classify the fraction."""
        value: Value = window
        zeros, ones = below.zeros, below.ones
        for step in (8, 4, 2, 1):
            shifts, out = point[step.bit_length() - 1], value[:step]
            zeros, ones = zeros & ~(shifts & out.any()), ones & (~shifts | out.all())
            value = Mux(shifts, value[step:], value)
        half = value[0]
        if self._ort:
            # fp32 rounds a product within half an ulp of the tie to the tie, so it counts as one.
            tie = Mux(half, zeros & ~(below.half & below.rest), ones & below.half)
        else:
            tie = half & zeros & ~below.half & ~below.rest
        inside = (point >= 0) & (point <= _MAX_POINT)
        fixed = _FixedPoint(*(Signal(width, name=name, reset_less=True) for name, width in _FIXED_POINT.items()))
        with m.If(self.enable[9]):
            m.d.sync += [
                fixed.overflow.eq((point < 0) & window[-1]),
                fixed.whole.eq(Mux(inside, value[1:], 0)),
                fixed.half.eq(inside & half),
                fixed.tie.eq(inside & tie),
            ]
        return fixed

    def _finish(self, m: Module, fixed: _FixedPoint, negative: Value) -> None:
        """Stages 10 and 11: round half to even, restore the sign, add the zero point; then clamp."""
        up = Mux(fixed.tie, fixed.whole[0], fixed.half)
        signed_whole = fixed.whole ^ negative.replicate(_MAX_POINT)
        added = Signal(signed(_MAX_POINT + 2), reset_less=True)
        overflow, below_zero = Signal(reset_less=True), Signal(reset_less=True)
        # -(whole + up) = ~whole + 1 - up: an extra lowest bit feeds the carry, so one adder serves both signs.
        carry = up ^ negative
        doubled = Cat(carry, signed_whole, negative).as_signed() + Cat(carry, self.zero_point).as_signed()
        with m.If(self.enable[10]):
            m.d.sync += [added.eq(doubled >> 1), overflow.eq(fixed.overflow), below_zero.eq(negative)]
        low = Mux(overflow, below_zero, added[-1])
        fits = (added[7:] == 0) | added[7:].all()
        result = output_register(m, self.result)
        with m.If(self.enable[11]):
            m.d.sync += result.eq(Mux(fits & ~overflow, added[:8], Mux(low, INT8_MIN, INT8_MAX)))
