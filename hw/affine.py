"""The affine datapath shared by the residual adder and the vector unit: two products, one sum, one rounding shift.

It computes `hw.spec.arith.affine`: clamp((x1*m1 + x2*m2 + c) * 2**-shift).
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .spec.arith import INT8_MAX, INT8_MIN, SHIFT_BITS, Affine, affine

FACTOR_BITS = 32
CONSTANT_BITS = 48
BYTE_BITS = 8
_LOW_FACTOR_BITS = 17
"""An unsigned half of a factor that fits a signed 18 x 18 multiplier."""
_EARLY_STEPS = (32, 16, 8)
_LATE_STEPS = (4, 2, 1)


class AffineRounding(wiring.Component):
    """What all lanes with the same constants need of them, made once; `LATENCY` cycles.

    Members
    -------
    c, shift, even:
        The constants as the law has them. `shift` is at most 47, the limit of its field.
    constant:
        `c` and half of the last place.
    to_even:
        Ties go to even, and there are ties.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "c": In(signed(CONSTANT_BITS)),
                "shift": In(SHIFT_BITS),
                "even": In(1),
                "constant": Out(signed(CONSTANT_BITS + 1)),
                "to_even": Out(1),
            }
        )

    @staticmethod
    def model(k: Affine) -> tuple[int, int]:
        """What `constant` and `to_even` are."""
        return k.c + ((1 << k.shift) >> 1), int(k.even and k.shift != 0)

    def elaborate(self, platform: object) -> Module:
        """An adder and a decoder."""
        m = Module()
        half = Signal(CONSTANT_BITS)
        m.d.comb += half.eq((1 << self.shift) >> 1)
        constant = Signal.like(self.constant, reset_less=True)
        m.d.comb += self.constant.eq(constant)
        m.d.sync += [constant.eq(self.c + half), self.to_even.eq(self.even & (self.shift != 0))]
        return m


class AffineLane(wiring.Component):
    """One byte a cycle through the affine law; `LATENCY` cycles from operands to result.

    Parameters
    ----------
    x1_bits, x2_bits
        Widths of the operands, with their signs, up to 18.

    Members
    -------
    valid, x1, x2:
        The operands of this cycle.
    m1, m2, shift:
        The constants; they must hold while operands are under way.
    constant, to_even:
        From `AffineRounding`, no later than the cycle after the first operands.
    result_valid, result:
        The result; `result` keeps its value while `result_valid` is low.
    """

    LATENCY = 5

    def __init__(self, x1_bits: int = BYTE_BITS, x2_bits: int = BYTE_BITS) -> None:
        largest = (1 << (x1_bits + FACTOR_BITS - 2)) + (1 << (x2_bits + FACTOR_BITS - 2)) + (1 << CONSTANT_BITS)
        self._sum_bits = largest.bit_length() + 1
        super().__init__(
            {
                "valid": In(1),
                "x1": In(signed(x1_bits)),
                "x2": In(signed(x2_bits)),
                "m1": In(signed(FACTOR_BITS)),
                "m2": In(signed(FACTOR_BITS)),
                "constant": In(signed(CONSTANT_BITS + 1)),
                "shift": In(SHIFT_BITS),
                "to_even": In(1),
                "result_valid": Out(1),
                "result": Out(signed(BYTE_BITS)),
            }
        )

    @staticmethod
    def model(x1: int, x2: int, k: Affine) -> int:
        """What `result` is, from the law."""
        return affine(x1, x2, k)

    def elaborate(self, platform: object) -> Module:
        """Multiply, add, shift, clamp."""
        m = Module()
        under_way = Signal(self.LATENCY)
        m.d.sync += under_way.eq(Cat(self.valid, under_way))
        stage = [self.valid, *under_way]
        total = self._sum(m, stage)
        self._round(m, stage, total)
        m.d.comb += self.result_valid.eq(stage[self.LATENCY])
        return m

    def _sum(self, m: Module, stage: list[Signal]) -> Signal:
        """Stages 1 to 3: products with each half of the factors, sums of equal weight, the whole."""
        split, top = _LOW_FACTOR_BITS, self._sum_bits - _LOW_FACTOR_BITS
        lows, highs = [], []
        for i, (x, factor) in enumerate(((self.x1, self.m1), (self.x2, self.m2))):
            lows.append(Signal(signed(len(x) + split), name=f"low{i}", reset_less=True))
            highs.append(Signal(signed(len(x) + FACTOR_BITS - split), name=f"high{i}", reset_less=True))
            with m.If(stage[0]):
                m.d.sync += [lows[i].eq(x * factor[:split]), highs[i].eq(x * factor[split:].as_signed())]
        low = Signal(signed(max(map(len, lows)) + 1), reset_less=True)
        high = Signal(signed(top), reset_less=True)
        total = Signal(signed(self._sum_bits), reset_less=True)
        # The halves may wrap: the whole, which fits, is right all the same.
        with m.If(stage[1]):
            m.d.sync += [
                low.eq(lows[0] + lows[1]),
                high.eq(highs[0] + highs[1] + self.constant[split:].as_signed()),
            ]
        with m.If(stage[2]):
            m.d.sync += total.eq(low + Cat(self.constant[:split], high).as_signed())
        return total

    def _round(self, m: Module, stage: list[Signal], total: Signal) -> None:
        """Stages 4 and 5: down to a byte, a bit of the shift at a time; then ties and clamp.

        `total` holds half of the last place already: when nothing is left below the last place, there was a tie.
        """
        negative = Signal(reset_less=True)
        value = Signal(BYTE_BITS - 1 + _EARLY_STEPS[-1], reset_less=True)
        outside = Signal(reset_less=True)
        below = Signal(reset_less=True)
        narrowed, lost, rest = self._narrow(m, total, total[-1], _EARLY_STEPS)
        with m.If(stage[3]):
            m.d.sync += [negative.eq(total[-1]), value.eq(narrowed), outside.eq(lost.any()), below.eq(rest.any())]
        byte, lost, rest = self._narrow(m, value, negative, _LATE_STEPS)
        clamp, tie = Signal(), Signal()
        m.d.comb += [
            clamp.eq(outside | lost.any() | (byte[-1] != negative)),
            tie.eq(self.to_even & ~below & ~rest.any()),
        ]
        with m.If(stage[4]):
            with m.If(clamp):
                m.d.sync += self.result.eq(Mux(negative, INT8_MIN, INT8_MAX))
            with m.Else():
                m.d.sync += self.result.eq(Cat(byte[0] & ~tie, byte[1:]))

    def _narrow(self, m: Module, value: Value, negative: Value, steps: tuple[int, ...]) -> tuple[Value, Value, Value]:
        """Shift right by those steps that `shift` has.

        Also, for each step: above the value there was something else than its sign; something went out below.
        """
        lost, rest = [], []
        for step in steps:
            kept = BYTE_BITS - 1 + step
            padded = Cat(value, negative.replicate(max(0, kept + step - len(value))))
            moves = self.shift[step.bit_length() - 1]
            narrowed = Signal(kept, name=f"narrowed{step}")
            m.d.comb += narrowed.eq(Mux(moves, padded[step : step + kept], padded[:kept]))
            lost.append(~moves & (value[kept:] ^ negative.replicate(len(value) - kept)).any())
            rest.append(moves & value[:step].any())
            value = narrowed
        return value, Cat(lost), Cat(rest)
