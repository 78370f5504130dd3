"""A requantization scale as the requantizers take it: a mantissa with its top bit set, and its exponent."""

from __future__ import annotations

from itertools import chain

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, SHIFT_BITS
from intloom.hw.spec.formats import SCALE_SHIFT_LSB

EXPONENT_BITS = 7
"""The shift of up to 63, plus up to 23 shift_count by which the mantissa was shifted."""


class ScaleNormalizer(wiring.Component):
    """Moves a 24-bit mantissa up until its top bit is set, in one place for all channels, while parameters load.

    scale = mantissa * 2**-shift = normal * 2**-exponent; a mantissa of zero stays zero. `LATENCY` cycles, one scale a
    cycle; `word` is a packed scale as it stands in the weight memory.
    """

    _STEPS = ((16,), (8, 4), (2, 1))
    """Places by which a mantissa may move, those of a cycle together."""
    LATENCY = len(_STEPS) + 1

    def __init__(self, mantissa_bits: int) -> None:
        self._mantissa_bits = mantissa_bits
        super().__init__({"word": In(32), "mantissa": Out(mantissa_bits), "exponent": Out(EXPONENT_BITS)})

    @staticmethod
    def model(mantissa: int, shift: int, mantissa_bits: int = FP32_SIGNIFICAND_BITS) -> tuple[int, int]:
        """The normal mantissa and exponent of a packed scale."""
        if mantissa == 0:
            return 0, shift + sum(step for step in chain(*ScaleNormalizer._STEPS) if step < mantissa_bits)
        up = mantissa_bits - mantissa.bit_length()
        return mantissa << up, shift + up

    def elaborate(self, platform: object) -> Module:
        """Large steps first, then the exponent; steps past the mantissa's width never happen."""
        m = Module()
        mantissa = self.word[: self._mantissa_bits]
        exponent = self.word[SCALE_SHIFT_LSB : SCALE_SHIFT_LSB + SHIFT_BITS]
        # Each step is a bit of the number of shift_count, from the top: they are added in one go.
        shift_count: Value = C(0, 0)
        for steps in self._STEPS:
            for step in steps:
                mantissa, shifted = self._step(m, mantissa, step) if step < self._mantissa_bits else (mantissa, C(0, 1))
                shift_count = Cat(shifted, shift_count)
            registers = [Signal(len(value), reset_less=True) for value in (mantissa, exponent, shift_count)]
            m.d.sync += [
                after.eq(value) for after, value in zip(registers, (mantissa, exponent, shift_count), strict=True)
            ]
            mantissa, exponent, shift_count = registers
        m.d.sync += [
            output_register(m, self.mantissa).eq(mantissa),
            output_register(m, self.exponent).eq(exponent + shift_count),
        ]
        return m

    def _step(self, m: Module, mantissa: Value, step: int) -> tuple[Value, Value]:
        """The mantissa, shifted up if there is nothing in its upper bits, and whether it was."""
        shifted, empty = Signal(self._mantissa_bits, name=f"shifted{step}"), Signal(name=f"empty{step}")
        m.d.comb += [empty.eq(~mantissa[-step:].any()), shifted.eq(Mux(empty, mantissa << step, mantissa))]
        return shifted, empty
