"""Divides by one number after another, a quotient each cycle."""

from amaranth.hdl import Cat, Module, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.spec.softmax import QUOTIENT_BITS, TOTAL_BITS, quotient

DIVIDEND_BITS = TOTAL_BITS + 1


def step(remainder: Value, bit: Value, divisor: Value) -> Value:
    """The remainder after one more bit of the dividend; it is negative where the quotient bit is 0."""
    below = remainder[-1]
    # Minus the complement of the divisor is the divisor plus 1, and bit 0 of both operands borrows this 1. FPGA mapping
    # makes one chain of the difference and of the choice of its second operand. Yosys exchanges the operands of sums,
    # not of differences; exchanged ones would take one LUT more for each bit on the 7 series.
    subtracted = Cat(1, divisor ^ below.replicate(len(divisor)), below)
    return (Cat(~below, bit, remainder[:-1]) - subtracted)[1 : len(remainder) + 1]


class Divider(wiring.Component):
    """The quotient of two unsigned numbers, rounded down, in one stage per quotient bit.

    Division without restoring: each stage subtracts the divisor from the shifted remainder, or adds it if the remainder
    is negative. The sign of the result is the quotient bit that a restoring division finds, because twice a remainder
    that is `divisor` too small, plus `divisor`, is twice the right remainder minus `divisor`. A stage is one adder.

    Members
    -------
    valid, dividend
        A dividend.
    divisors
        The divisor of the dividends in the first `STAGES` = 3 stages, in the next ones, and in the last ones.
    result_valid, quotient
        The quotient; all ones if the divisor is 0.

    Handshake
    ---------
    No back-pressure: a dividend is taken in every cycle with `valid`.

    Timing
    ------
    One dividend a cycle. From `valid` to `result_valid`: `LATENCY` = 9 cycles.

    Requirements
    ------------
    A dividend's divisor is in the first of `divisors` from the cycle with `valid` for `STAGES` cycles, then in the next
    one. The dividend is less than 512 times the divisor, or both are 0.

    Reset and faults
    ----------------
    Soft reset clears the valid flags only. There are no faults.
    """

    LATENCY = QUOTIENT_BITS
    DIVISORS = 3
    STAGES = LATENCY // DIVISORS

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": In(1),
                "dividend": In(DIVIDEND_BITS),
                "divisors": In(data.ArrayLayout(TOTAL_BITS, self.DIVISORS)),
                "result_valid": Out(1),
                "quotient": Out(QUOTIENT_BITS),
            }
        )

    @staticmethod
    def model(dividend: int, divisor: int) -> int:
        """The value of `quotient`."""
        return quotient(dividend, divisor)

    def elaborate(self, platform: object) -> Module:
        """One stage per quotient bit, from the highest on."""
        m = Module()
        in_flight = Signal(self.LATENCY)
        m.d.sync += in_flight.eq(Cat(self.valid, in_flight))
        m.d.comb += self.result_valid.eq(in_flight[-1])
        remainder = Signal(signed(TOTAL_BITS + 1))
        # Dividend bits that are not yet in the remainder, below them the quotient bits that are known.
        rest = Signal(QUOTIENT_BITS)
        m.d.comb += [remainder.eq(self.dividend[QUOTIENT_BITS:]), rest.eq(self.dividend[:QUOTIENT_BITS])]
        for number in range(self.LATENCY):
            after = Signal.like(remainder, name=f"remainder{number}", reset_less=True)
            left = Signal.like(rest, name=f"rest{number}", reset_less=True)
            total = Signal(TOTAL_BITS + 1, name=f"total{number}")
            m.d.comb += total.eq(step(remainder, rest[-1], self.divisors[number // self.STAGES]))
            m.d.sync += [after.eq(total), left.eq(Cat(~total[-1], rest[:-1]))]
            remainder, rest = after, left
        m.d.comb += self.quotient.eq(rest)
        return m
