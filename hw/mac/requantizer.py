"""The requantiser: an accumulator to an int8, rounded as `hw.spec.arith.requantize` says.

Sum and scale are brought to numbers with their top bit set, so that the product's top bit stands in one of two places:
rounding to 24 bits as fp32 does (`ort`), or cutting there and remembering what was lost (`exact`), happens at a fixed
place. After the clamp only nine positions of the binary point matter; any other means 0 or a clamped result.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.mac.scale import EXPONENT_BITS
from hw.spec.arith import FP32_SIGNIFICAND_BITS, INT8_MAX, INT8_MIN, Match, Scale, requantize, wrap
from hw.spec.params import HardwareParams

_SUM_BITS = 32
_TOP = FP32_SIGNIFICAND_BITS
_POINT_BITS = 9
_MOST_PLACES = 8
"""Places of the binary point that give results from 0 to 255, less one."""


class RequantizerLane(wiring.Component):
    """One accumulator a cycle; stages without a valid value keep still.

    Members
    -------
    enable:
        Bit i is high when stage i has a value to work on; bit i + 1 follows bit i by a cycle.
    acc, bias:
        The value's sum and its channel's bias, together.
    mantissa, exponent:
        Its channel's scale as `ScaleNormalizer` gives it, `SCALE_STAGE` cycles later.
    zero_point:
        The output's zero point, `ZERO_POINT_STAGE` cycles later.
    result:
        The byte, `LATENCY` cycles later.
    """

    SCALE_STAGE = 5
    ZERO_POINT_STAGE = 9
    LATENCY = 10

    def __init__(self, params: HardwareParams) -> None:
        self._ort = params.match is Match.ORT
        self._mantissa_bits = params.mantissa_bits
        self._significand_bits = FP32_SIGNIFICAND_BITS if self._ort else _SUM_BITS
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
    def model(acc: int, bias: int, scale: Scale, zero_point: int, match: Match) -> int:
        """What `result` is: the law, on the 32-bit sum."""
        return requantize(wrap(acc + bias, _SUM_BITS), scale, zero_point, match)

    def elaborate(self, platform: object) -> Module:
        """Ten stages; the sign follows the magnitude through them."""
        m = Module()
        negative = Signal()
        signs = Signal(self.ZERO_POINT_STAGE - 1, reset_less=True)
        m.d.sync += signs.eq(Cat(negative, signs))
        magnitude = self._magnitude(m, negative)
        normal, zeros = self._normalize(m, magnitude)
        significand, zeros = self._round_sum(m, normal, zeros)
        product, point = self._multiply(m, significand, zeros)
        top, lost, point = self._round_product(m, product, point)
        self._finish(m, top, lost, point, signs[-1])
        return m

    def _magnitude(self, m: Module, negative: Signal) -> Signal:
        """Stages 0 and 1: add the bias, take the sign away."""
        total = Signal(signed(_SUM_BITS), reset_less=True)
        magnitude = Signal(_SUM_BITS, reset_less=True)
        with m.If(self.enable[0]):
            m.d.sync += total.eq(self.acc + self.bias)
        m.d.comb += negative.eq(total < 0)
        with m.If(self.enable[1]):
            m.d.sync += magnitude.eq(Mux(negative, -total, total))
        return magnitude

    def _normalize(self, m: Module, magnitude: Signal) -> tuple[Signal, Signal]:
        """Stages 2 and 3: move the top bit up to bit 31 and count the places."""
        value: Value = magnitude
        count: list[Signal] = []
        for stage, steps in ((2, (16, 8)), (3, (4, 2, 1))):
            for step in steps:
                up = Signal(name=f"up{step}")
                moved = Signal(_SUM_BITS, name=f"moved{step}")
                m.d.comb += [up.eq(~value[-step:].any()), moved.eq(Mux(up, value << step, value))]
                value = moved
                count.insert(0, up)
            held = Signal(_SUM_BITS, name=f"normal{stage}", reset_less=True)
            zeros = Signal(len(count), name=f"zeros{stage}", reset_less=True)
            with m.If(self.enable[stage]):
                m.d.sync += [held.eq(value), zeros.eq(Cat(*count))]
            value, count = held, list(zeros)
        return value, zeros

    def _round_sum(self, m: Module, normal: Signal, zeros: Signal) -> tuple[Signal, Signal]:
        """Stage 4: round to 24 bits, ties to even; a carry out leaves one leading zero less, so zeros may become -1."""
        significand = Signal(self._significand_bits, reset_less=True)
        counted = Signal(signed(len(zeros) + 1), name="counted", reset_less=True)
        with m.If(self.enable[4]):
            if self._ort:
                kept, dropped = normal[-_TOP:], normal[:-_TOP]
                rounded = Signal(_TOP + 1)
                m.d.comb += rounded.eq(kept + (dropped[-1] & (dropped[:-1].any() | kept[0])))
                carry = rounded[-1]
                m.d.sync += [
                    significand.eq(Cat(rounded[: _TOP - 1], rounded[_TOP - 1] | carry)),
                    counted.eq(zeros - carry),
                ]
            else:
                m.d.sync += [significand.eq(normal), counted.eq(zeros)]
        return significand, counted

    def _multiply(self, m: Module, significand: Signal, zeros: Signal) -> tuple[Signal, Signal]:
        """Stages 5 and 6: four partial products, each small enough for one 18 x 18 multiplier, and their sum."""
        x_split, f_split = self._significand_bits // 2, self._mantissa_bits // 2
        parts = []
        for i, x in enumerate((significand[:x_split], significand[x_split:])):
            for j, f in enumerate((self.mantissa[:f_split], self.mantissa[f_split:])):
                part = Signal(len(x) + len(f), name=f"part{i}{j}", reset_less=True)
                with m.If(self.enable[5]):
                    m.d.sync += part.eq(x * f)
                parts.append(part << (i * x_split + j * f_split))
        # Right shift that brings the top 24 bits of the largest product to their weight, less that of 255.xx.
        offset = self._mantissa_bits + (_SUM_BITS - _TOP) + (_TOP - _MOST_PLACES)
        point5 = Signal(signed(_POINT_BITS), reset_less=True)
        point6 = Signal(signed(_POINT_BITS), reset_less=True)
        product = Signal(self._significand_bits + self._mantissa_bits, reset_less=True)
        with m.If(self.enable[5]):
            m.d.sync += point5.eq(zeros + self.exponent - offset)
        with m.If(self.enable[6]):
            m.d.sync += [product.eq((parts[0] + parts[1]) + (parts[2] + parts[3])), point6.eq(point5)]
        return product, point6

    def _round_product(self, m: Module, product: Signal, point: Signal) -> tuple[Signal, Value, Signal]:
        """Stage 7: 24 bits from the top bit on, rounded as fp32 does (`ort`) or with a flag for lost bits (`exact`)."""
        aligned = Signal.like(product)
        high = product[-1]
        m.d.comb += aligned.eq(Mux(high, product, product << 1))
        kept, dropped = aligned[-_TOP:], aligned[:-_TOP]
        top = Signal(_TOP + 1, reset_less=True)
        lost = Signal(reset_less=True)
        moved = Signal.like(point, name="point7", reset_less=True)
        with m.If(self.enable[7]):
            m.d.sync += moved.eq(point + ~high)
            if self._ort:
                m.d.sync += top.eq(kept + (dropped[-1] & (dropped[:-1].any() | kept[0])))
            else:
                m.d.sync += [top.eq(kept), lost.eq(dropped.any())]
        return top, (Const(0, 1) if self._ort else lost), moved

    def _finish(self, m: Module, top: Signal, lost: Value, point: Signal, negative: Signal) -> None:
        """Stages 8 and 9: place the binary point; then round half to even, give the sign back, add, clamp."""
        kept = Signal(data.StructLayout({"fraction": _TOP, "integer": 9}))
        whole = Signal(9, reset_less=True)
        up = Signal(reset_less=True)
        huge = Signal(reset_less=True)
        m.d.comb += kept.as_value().eq((top << _MOST_PLACES) >> point[:4])
        half, rest = kept.fraction[-1], kept.fraction[:-1].any() | lost
        with m.If(self.enable[8]):
            inside = (point >= 0) & (point <= _MOST_PLACES)
            m.d.sync += [
                huge.eq((point < 0) & top[-2:].any()),
                whole.eq(Mux(inside, kept.integer, 0)),
                up.eq(inside & half & (rest | kept.integer[0])),
            ]
        rounded = Signal(10)
        total = Signal(signed(12))
        m.d.comb += [
            rounded.eq(whole + up),
            total.eq(Mux(negative, -rounded, rounded) + self.zero_point),
        ]
        with m.If(self.enable[9]):
            with m.If(Mux(huge, negative, total < INT8_MIN)):
                m.d.sync += self.result.eq(INT8_MIN)
            with m.Elif(huge | (total > INT8_MAX)):
                m.d.sync += self.result.eq(INT8_MAX)
            with m.Else():
                m.d.sync += self.result.eq(total)
