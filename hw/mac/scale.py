"""A requantisation scale as the requantisers take it: a mantissa with its top bit set, and its exponent."""

from __future__ import annotations

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.spec.arith import FP32_SIGNIFICAND_BITS, SHIFT_BITS

EXPONENT_BITS = 7
"""The shift of up to 63, plus up to 23 places by which the mantissa was moved."""


class ScaleNormalizer(wiring.Component):
    """Moves a 24-bit mantissa up until its top bit is set, in one place for all channels, while parameters load.

    scale = mantissa * 2**-shift = normal * 2**-exponent; a mantissa of zero stays zero. `LATENCY` cycles, one scale a
    cycle; `word` is a packed scale as it stands in the weight memory.
    """

    LATENCY = 2
    _STEPS = (16, 8, 4, 2, 1)
    _FIRST_STEPS = 2

    def __init__(self, mantissa_bits: int) -> None:
        self._mantissa_bits = mantissa_bits
        super().__init__({"word": In(32), "mantissa": Out(mantissa_bits), "exponent": Out(EXPONENT_BITS)})

    @staticmethod
    def model(mantissa: int, shift: int, mantissa_bits: int = FP32_SIGNIFICAND_BITS) -> tuple[int, int]:
        """The normal mantissa and exponent of a packed scale."""
        if mantissa == 0:
            return 0, shift + sum(step for step in ScaleNormalizer._STEPS if step < mantissa_bits)
        up = mantissa_bits - mantissa.bit_length()
        return mantissa << up, shift + up

    def elaborate(self, platform: object) -> Module:
        """Large steps in the first cycle, small ones in the second; steps past the mantissa's width never happen."""
        m = Module()
        mantissa = self.word[: self._mantissa_bits]
        exponent = self.word[FP32_SIGNIFICAND_BITS : FP32_SIGNIFICAND_BITS + SHIFT_BITS]
        for number, steps in enumerate((self._STEPS[: self._FIRST_STEPS], self._STEPS[self._FIRST_STEPS :])):
            counted: dict[int, Value] = {}
            for step in steps:
                if step < self._mantissa_bits:
                    mantissa, counted[step] = self._step(m, mantissa, step)
            # Each step is a bit of its own: they are added in one go, off the way of the mantissa.
            exponent = exponent + Cat(
                counted.get(1 << bit, C(0, 1)) for bit in range(max(counted, default=1).bit_length())
            )
            registers = (
                Signal.like(self.mantissa, name=f"mantissa{number}", reset_less=True),
                Signal.like(self.exponent, name=f"exponent{number}", reset_less=True),
            )
            m.d.sync += [registers[0].eq(mantissa), registers[1].eq(exponent)]
            mantissa, exponent = registers
        m.d.comb += [self.mantissa.eq(mantissa), self.exponent.eq(exponent)]
        return m

    def _step(self, m: Module, mantissa: Value, step: int) -> tuple[Value, Value]:
        """The mantissa, moved up if there is nothing in its upper bits, and whether it was."""
        moved, empty = Signal(self._mantissa_bits, name=f"moved{step}"), Signal(name=f"empty{step}")
        m.d.comb += [empty.eq(~mantissa[-step:].any()), moved.eq(Mux(empty, mantissa << step, mantissa))]
        return moved, empty
