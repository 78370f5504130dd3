"""Normalizes a requantization scale: a mantissa with its top bit set, and its exponent."""

from itertools import chain

from amaranth.hdl import C, Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register
from intloom.hw.spec.arith import FP32_SIGNIFICAND_BITS, SHIFT_BITS
from intloom.hw.spec.formats import SCALE_SHIFT_LSB

EXPONENT_BITS = 7
"""Shift of up to 63, plus up to 23 bits of normalization."""


class ScaleNormalizer(wiring.Component):
    """Shifts a 24-bit mantissa up until its top bit is set; one instance serves all channels while parameters load.

    scale = mantissa * 2**-shift = normal * 2**-exponent; a mantissa of zero stays zero.

    Members
    -------
    word:
        A packed scale as the weight memory holds it.
    mantissa, exponent:
        The normalized scale.

    Handshake
    ---------
    None: a free-running pipeline.

    Timing
    ------
    One scale a cycle. From `word` to the result: `LATENCY` = 4 cycles.

    Requirements
    ------------
    Mantissa bits above `mantissa_bits` are zero.

    Reset and faults
    ----------------
    Registers are not reset. There are no faults.
    """

    _STEPS = ((16,), (8, 4), (2, 1))
    """Shift distances, those of one stage together."""
    LATENCY = len(_STEPS) + 1

    def __init__(self, mantissa_bits: int) -> None:
        self._mantissa_bits = mantissa_bits
        super().__init__({"word": In(32), "mantissa": Out(mantissa_bits), "exponent": Out(EXPONENT_BITS)})

    @staticmethod
    def model(mantissa: int, shift: int, mantissa_bits: int = FP32_SIGNIFICAND_BITS) -> tuple[int, int]:
        """The normalized mantissa and exponent of a packed scale."""
        if mantissa == 0:
            return 0, shift + sum(step for step in chain(*ScaleNormalizer._STEPS) if step < mantissa_bits)
        up = mantissa_bits - mantissa.bit_length()
        return mantissa << up, shift + up

    def elaborate(self, platform: object) -> Module:
        """Large shifts first, then the exponent; shifts beyond the mantissa's width are left out."""
        m = Module()
        mantissa = self.word[: self._mantissa_bits]
        exponent = self.word[SCALE_SHIFT_LSB : SCALE_SHIFT_LSB + SHIFT_BITS]
        # Each shift decision is one bit of the shift count, so the exponent needs a single addition.
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
