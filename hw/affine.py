"""The affine datapath of the residual adder and the vector unit: two products, one sum, one rounding shift, a clamp.

It computes `intloom.hw.spec.arith.affine`: clamp((x1*m1 + x2*m2 + c) * 2**-shift).
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import output_register, pipeline_stages
from intloom.hw.spec import timing
from intloom.hw.spec.arith import CONSTANT_BITS, FACTOR_BITS, INT8_MAX, INT8_MIN, SHIFT_BITS, Affine, affine
from intloom.hw.yosys_attributes import REGISTER_COPY

BYTE_BITS = 8
_LOW_FACTOR_BITS = 17
"""Width of the lower, unsigned part of a factor: with a sign bit it fits a signed 18 x 18 multiplier."""
_COARSE_SHIFTS = (32, 16, 8)
_FINE_SHIFTS = (4, 2, 1)

AFFINE_LAYOUT = data.StructLayout(
    {"m1": signed(FACTOR_BITS), "m2": signed(FACTOR_BITS), "c": signed(CONSTANT_BITS), "shift": SHIFT_BITS, "even": 1}
)
"""The parameters of an affine operation. `shift` is at most `MAX_AFFINE_SHIFT`."""
PREPARED_LAYOUT = data.StructLayout(
    {
        "m1": signed(FACTOR_BITS),
        "m2": signed(FACTOR_BITS),
        "constant": signed(CONSTANT_BITS + 1),
        "shift": SHIFT_BITS,
        "to_even": 1,
    }
)
"""Precomputed for the lanes: the factors, in registers that feed only multipliers; `constant` = c plus half the weight
of the result's LSB; the shift; `to_even`: ties round to even, and the shift is not 0, so that ties exist."""


class AffineConstants(wiring.Component):
    """Precomputes the constants that all lanes of one affine operation share.

    One instance serves any number of `AffineLane`: the rounding constant is decoded and added once, not per lane.

    Members
    -------
    operation
        Parameters of the operation.
    prepared
        Constants for the lanes.

    Handshake
    ---------
    None. `prepared` follows `operation` continuously.

    Timing
    ------
    From `operation` to `prepared`: `LATENCY` = 2 cycles. A new operation may be given every cycle.

    Requirements
    ------------
    None.

    Reset and faults
    ----------------
    Reset-less: after reset the output is undefined until 2 cycles after `operation` is set. No faults.
    """

    LATENCY = 2

    def __init__(self) -> None:
        super().__init__({"operation": In(AFFINE_LAYOUT), "prepared": Out(PREPARED_LAYOUT)})

    @staticmethod
    def model(k: Affine) -> dict[str, int]:
        """The value of `prepared` for the operation `k`."""
        constant = k.c + ((1 << k.shift) >> 1)
        return {"m1": k.m1, "m2": k.m2, "constant": constant, "shift": k.shift, "to_even": k.even and k.shift != 0}

    def elaborate(self, platform: object) -> Module:
        """Decode the rounding constant, then add it to `c`."""
        m = Module()
        operation = self.operation
        half = Signal(CONSTANT_BITS, reset_less=True)
        registers = Signal(PREPARED_LAYOUT, name="registers", reset_less=True)
        m.d.sync += [
            half.eq((1 << operation.shift) >> 1),
            registers.constant.eq(operation.c + half),
            registers.to_even.eq(operation.even & (operation.shift != 0)),
            *(registers[name].eq(operation[name]) for name in ("m1", "m2", "shift")),
        ]
        m.d.comb += self.prepared.eq(registers)
        return m


class AffineLane(wiring.Component):
    """Applies an affine operation to one pair of operands per cycle and gives a byte.

    Two multiplications, two additions, a rounding right shift in two stages, and a clamp to int8. Ties round to even
    or up, as `constants.to_even` says.

    Parameters
    ----------
    wide
        Whether the target's multipliers take a whole factor and have adders behind them, as those of 25 x 18 bits do.
    x1_bits, x2_bits
        Widths of the signed operands, at most 18.

    Members
    -------
    valid, x1, x2
        The operands of this cycle.
    constants
        From `AffineConstants`.
    result_valid, result
        The result. `result` keeps its value while `result_valid` is low.

    Handshake
    ---------
    No back-pressure: the pipeline never stalls, and the receiver must take each result in its cycle.

    Timing
    ------
    One result per cycle. From `valid` to `result_valid`: `LATENCY` = 7 cycles.

    Requirements
    ------------
    `constants` are stable from the cycle of the first operands to the cycle of the last result of an operation.

    Reset and faults
    ----------------
    Reset clears the valid bits; data registers have no reset. No faults.
    """

    LATENCY = timing.AFFINE

    def __init__(self, wide: bool, x1_bits: int = BYTE_BITS, x2_bits: int = BYTE_BITS) -> None:
        self._wide = wide
        largest = (1 << (x1_bits + FACTOR_BITS - 2)) + (1 << (x2_bits + FACTOR_BITS - 2)) + (1 << CONSTANT_BITS)
        self._sum_bits = largest.bit_length() + 1
        super().__init__(
            {
                "valid": In(1),
                "x1": In(signed(x1_bits)),
                "x2": In(signed(x2_bits)),
                "constants": In(PREPARED_LAYOUT),
                "result_valid": Out(1),
                "result": Out(signed(BYTE_BITS)),
            }
        )

    @staticmethod
    def model(x1: int, x2: int, k: Affine) -> int:
        """The value of `result`, by the fixed-point semantics."""
        return affine(x1, x2, k)

    def elaborate(self, platform: object) -> Module:
        """Multiply, add, shift, clamp."""
        m = Module()
        in_flight = Signal(self.LATENCY)
        m.d.sync += in_flight.eq(Cat(self.valid, in_flight))
        stage = [self.valid, *in_flight]
        total = self._sum_in_multipliers(m, stage) if self._wide else self._sum_of_parts(m, stage)
        # Copies in each lane: one register for all lanes would route to 24 bits in each, across the device.
        shift, to_even = (
            Signal.like(self.constants[name], name=f"lane_{name}", reset_less=True, attrs={REGISTER_COPY: 1})
            for name in ("shift", "to_even")
        )
        m.d.sync += [shift.eq(self.constants.shift), to_even.eq(self.constants.to_even)]
        self._round(m, stage, total, shift, to_even)
        m.d.comb += self.result_valid.eq(stage[self.LATENCY])
        return m

    def _operand(self, m: Module, number: int, delay: int) -> Signal:
        """Stage 1 and `delay` more: an operand in registers that feed only its multiplier, which can take them in."""
        # No clock enable and no reset: only such registers move into ECP5 DSP blocks (`hw.fpga.blocks`).
        operand = (self.x1, self.x2)[number - 1]
        x = Signal.like(operand, name=f"multiplied{number}", reset_less=True)
        m.d.sync += x.eq(operand)
        return pipeline_stages(m, f"late{number}_", x, delay, reset_less=True)

    def _product(self, m: Module, name: str, x: Signal, factor: Value) -> Signal:
        """A product and its register, which feeds nothing but adders."""
        product = Signal((x * factor).shape(), name=name, reset_less=True)
        m.d.sync += product.eq(x * factor)
        return product

    def _sum_in_multipliers(self, m: Module, stage: list[Signal]) -> Signal:
        """Stages 2 to 5: products, to which the adder behind the first multiplier adds the constant.

        The first operand waits a stage, the second one two, whose product is added to that sum.
        """
        first = self._product(m, "product1", self._operand(m, 1, 1), self.constants.m1)
        second = self._product(m, "product2", self._operand(m, 2, 2), self.constants.m2)
        begun = Signal(signed(self._sum_bits), reset_less=True)
        total = Signal(signed(self._sum_bits), reset_less=True)
        m.d.sync += begun.eq(first + self.constants.constant)
        with m.If(stage[4]):
            m.d.sync += total.eq(begun + second)
        return total

    def _sum_of_parts(self, m: Module, stage: list[Signal]) -> Signal:
        """Stages 2 to 5: products with both parts of each factor, the sums of each part, and all with the constant."""
        lows, highs = [], []
        for number, factor in enumerate((self.constants.m1, self.constants.m2), start=1):
            x = self._operand(m, number, 0)
            lows.append(self._product(m, f"low{number}", x, factor[:_LOW_FACTOR_BITS]))
            highs.append(self._product(m, f"high{number}", x, factor[_LOW_FACTOR_BITS:].as_signed()))
        low = Signal((lows[0] + lows[1]).shape(), reset_less=True)
        high = Signal((highs[0] + highs[1]).shape(), reset_less=True)
        both = Signal(signed(len(high) + 1 + _LOW_FACTOR_BITS), reset_less=True)
        total = Signal(signed(self._sum_bits), reset_less=True)
        with m.If(stage[2]):
            m.d.sync += [low.eq(lows[0] + lows[1]), high.eq(highs[0] + highs[1])]
        with m.If(stage[3]):
            m.d.sync += both.eq(Cat(low[:_LOW_FACTOR_BITS], high + low[_LOW_FACTOR_BITS:].as_signed()))
        with m.If(stage[4]):
            m.d.sync += total.eq(both + self.constants.constant)
        return total

    def _round(self, m: Module, stage: list[Signal], total: Signal, shift: Signal, to_even: Signal) -> None:
        """Stages 6 and 7: shift down to a byte, one bit of `shift` per multiplexer level; then ties and the clamp.

        `total` includes half the weight of the result's LSB: when all bits below the LSB are zero, there was a tie.
        """
        negative = Signal(reset_less=True)
        value = Signal(BYTE_BITS - 1 + _COARSE_SHIFTS[-1], reset_less=True)
        outside = Signal(reset_less=True)
        below = Signal(reset_less=True)
        narrowed, lost, rest = self._narrow(m, total, total[-1], shift, _COARSE_SHIFTS)
        with m.If(stage[5]):
            m.d.sync += [negative.eq(total[-1]), value.eq(narrowed), outside.eq(lost.any()), below.eq(rest.any())]
        # Three multiplexer levels in each of the two stages: all six in one cycle would be the longest path of the
        # lane.
        byte, lost, rest = self._narrow(m, value, negative, shift, _FINE_SHIFTS)
        clamp, tie = Signal(), Signal()
        m.d.comb += [
            clamp.eq(outside | lost.any() | (byte[-1] != negative)),
            tie.eq(to_even & ~below & ~rest.any()),
        ]
        result = output_register(m, self.result)
        with m.If(stage[6]):
            with m.If(clamp):
                m.d.sync += result.eq(Mux(negative, INT8_MIN, INT8_MAX))
            with m.Else():
                m.d.sync += result.eq(Cat(byte[0] & ~tie, byte[1:]))

    def _narrow(
        self, m: Module, value: Value, negative: Value, shift: Signal, steps: tuple[int, ...]
    ) -> tuple[Value, Value, Value]:
        """Shift right by each of `steps` whose bit is set in `shift`.

        Returns the value and, per step, whether bits above it differed from the sign, and whether a 1 was shifted out.
        """
        lost, rest = [], []
        for step in steps:
            kept = BYTE_BITS - 1 + step
            padded = Cat(value, negative.replicate(max(0, kept + step - len(value))))
            moves = shift[step.bit_length() - 1]
            narrowed = Signal(kept, name=f"narrowed{step}")
            m.d.comb += narrowed.eq(Mux(moves, padded[step : step + kept], padded[:kept]))
            lost.append(~moves & (value[kept:] ^ negative.replicate(len(value) - kept)).any())
            rest.append(moves & value[:step].any())
            value = narrowed
        return value, Cat(lost), Cat(rest)
