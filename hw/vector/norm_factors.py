"""Factor and offset of a pixel that is normalized, from its sums."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.spec.norm import (
    COUNT_BITS,
    EPSILON_BITS,
    FALL_BITS,
    MANTISSA_BITS,
    OFFSET_BITS,
    ROOT_BITS,
    ROOT_SHIFT,
    SEGMENT_BITS,
    SEGMENTS,
    SQUARE_BITS,
    SUM_BITS,
    VARIANCE_SHIFT,
    factor_offset,
)

_LOW_BITS = 17
"""Width of the lower, unsigned part of a factor: with a sign bit it fits a signed 18 x 18 multiplier."""
_W_BITS = EPSILON_BITS + 1
_DIGITS_BITS = 5


def _product(m: Module, name: str, a: Value, b: Value) -> Value:
    """The product, two cycles later: with both parts of `b`, then their sum."""
    split = b[:_LOW_BITS], b[_LOW_BITS:].as_signed() if b.shape().signed else b[_LOW_BITS:]
    low, high = (pipeline_stages(m, f"{name}_{k}", a * part, 1, reset_less=True) for k, part in enumerate(split))
    return pipeline_stages(m, name, low + (high << _LOW_BITS), 1, reset_less=True)


class NormFactors(wiring.Component):
    """Computes A and B of `intloom.hw.spec.norm` in a pipeline that never stalls.

    Members
    -------
    count, center, epsilon
        Channels of a pixel, and fields of the instruction.
    valid, total, squares
        Sums of a pixel's deviations and of their squares.
    result_valid, result
        A, and B in the cycle after it, from one multiplier and one shifter.

    Handshake
    ---------
    No back-pressure: sums are taken in every cycle with `valid`, which is at most every second one.

    Timing
    ------
    A pixel every other cycle. From `valid` to `result_valid`: `LATENCY` = 13 cycles.

    Requirements
    ------------
    `count`, `center` and `epsilon` are stable while pixels are in flight. `count * squares` is at least the square of
    `total`.

    Reset and faults
    ----------------
    Soft reset clears the valid flags only. There are no faults.
    """

    LATENCY = 13

    def __init__(self) -> None:
        super().__init__(
            {
                "count": In(COUNT_BITS),
                "center": In(1),
                "epsilon": In(EPSILON_BITS),
                "valid": In(1),
                "total": In(signed(SUM_BITS)),
                "squares": In(SQUARE_BITS),
                "result_valid": Out(1),
                "result": Out(signed(OFFSET_BITS)),
            }
        )

    @staticmethod
    def model(count: int, total: int, squares: int, center: bool, epsilon: int) -> tuple[int, int]:
        """A and B."""
        return factor_offset(count, total, squares, center, epsilon)

    def elaborate(self, platform: object) -> Module:
        """Variance, base-4 mantissa, root, products with the root, shift."""
        m = Module()

        def later(name: str, value: Value, cycles: int = 1) -> Value:
            return pipeline_stages(m, name, value, cycles, reset_less=True)

        mean = Mux(self.center, self.total, 0).as_signed()
        scaled, squared = _product(m, "scaled", self.count, self.squares), _product(m, "squared", mean, mean)
        variance = later("variance", (scaled - squared)[: _W_BITS - 1 - VARIANCE_SHIFT])
        w = later("w", ((variance << VARIANCE_SHIFT) + self.epsilon)[:_W_BITS])
        varies = later("varies", variance.any())
        digits, mantissa = self._mantissa(m, w)
        valid = pipeline_stages(m, "root_valid", self.valid, 9, reset_less=False)
        root = self._root(m, mantissa, later("varied", varies, 5), valid)
        # The count meets the root first, and the mean a cycle later.
        number = later("number", Mux(valid, self.count, later("mean_", mean, 10)).as_signed())
        late = pipeline_stages(m, "late_valid", valid, 1, reset_less=False)
        shift, digits = Signal.like(digits, name="shift", reset_less=True), later("digits_", digits, 5)
        with m.If(late):
            m.d.sync += shift.eq(digits)
        product = later("product", number * root)
        coarse = later("coarse_product", ((product << ROOT_SHIFT) >> (shift[3:] << 3))[: OFFSET_BITS + 7].as_signed())
        m.d.sync += output_register(m, self.result).eq(coarse >> later("fine_shift", shift[:3]))
        m.d.comb += self.result_valid.eq(pipeline_stages(m, "result_valid", late, 3, reset_less=False))
        return m

    def _mantissa(self, m: Module, w: Value) -> tuple[Value, Value]:
        """The number of base-4 digits less 1, a cycle later, and the mantissa, two cycles after that."""
        digits = Signal(_DIGITS_BITS, reset_less=True)
        for k in range(1, _W_BITS // 2):
            with m.If(w[2 * k : 2 * k + 2].any()):
                m.d.sync += digits.eq(k)
        with m.If(~w[2:].any()):
            m.d.sync += digits.eq(0)
        late = pipeline_stages(m, "w_late", w, 1, reset_less=True)
        # Shifts by 16 times the higher bits of `digits`, then by 2 times the others.
        coarse = ((late << MANTISSA_BITS - 2) >> (digits[3:] << 4))[: MANTISSA_BITS + 14]
        coarse = pipeline_stages(m, "coarse", coarse, 1, reset_less=True)
        fine = pipeline_stages(m, "fine", digits[:3], 1, reset_less=True)
        mantissa = (coarse >> (fine << 1))[:MANTISSA_BITS]
        return digits, pipeline_stages(m, "mantissa", mantissa, 1, reset_less=True)

    def _root(self, m: Module, mantissa: Value, varies: Value, valid: Value) -> Value:
        """The reciprocal root, three cycles later, then kept a cycle: a chord's start minus a part of its fall.

        It is 0 without variance. `valid` comes with its last stage.
        """
        start, fall = Signal(ROOT_BITS, reset_less=True), Signal(FALL_BITS, reset_less=True)
        # A case for each chord, not a memory: memories have no initial words.
        with m.Switch(mantissa[SEGMENT_BITS:]):
            for index, chord in enumerate(SEGMENTS):
                with m.Case(index):
                    m.d.sync += Cat(start, fall).eq(Cat(Const(chord[0], ROOT_BITS), Const(chord[1], FALL_BITS)))
        part = pipeline_stages(m, "part", mantissa[:SEGMENT_BITS], 1, reset_less=True)
        fallen = pipeline_stages(m, "fallen", part * fall, 1, reset_less=True)
        start = pipeline_stages(m, "start_", start, 1, reset_less=True)
        root = Signal(ROOT_BITS, reset_less=True)
        with m.If(valid):
            m.d.sync += root.eq(Mux(varies, start - fallen[SEGMENT_BITS:], 0))
        return root
