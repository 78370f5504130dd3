"""The affine datapath shared by the residual adder and the vector unit: two multipliers, one sum, one rounding shift.

It computes `hw.spec.arith.affine`: clamp((x1*m1 + x2*m2*2**(9*high) + c) * 2**-shift).

To scale one wide operand p of up to 18 bits with its sign, split it: x2 = p >> 9, x1 = p & 511, m1 = m2, `high` = 1.
"""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from .spec.arith import INT8_MAX, INT8_MIN, SHIFT_BITS, Affine, affine

OPERAND_BITS = 10
"""An int8, an int9 difference, or the unsigned low half of a split operand."""
FACTOR_BITS = 32
CONSTANT_BITS = 48
HIGH_SHIFT = 9
_LOW_FACTOR_BITS = 16
_PRODUCT_BITS = OPERAND_BITS + FACTOR_BITS
_SUM_BITS = _PRODUCT_BITS + HIGH_SHIFT + 2


class AffineLane(wiring.Component):
    """One byte a cycle through the affine law; `LATENCY` cycles from operands to result.

    Members
    -------
    valid, x1, x2:
        The operands of this cycle.
    m1, m2, c, shift, even, high:
        The constants; they must hold while operands are under way. `shift` is at most 47, the limit of its field.
    result_valid, result:
        The result; `result` keeps its value while `result_valid` is low.
    """

    LATENCY = 5

    def __init__(self) -> None:
        super().__init__(
            {
                "valid": In(1),
                "x1": In(signed(OPERAND_BITS)),
                "x2": In(signed(OPERAND_BITS)),
                "m1": In(signed(FACTOR_BITS)),
                "m2": In(signed(FACTOR_BITS)),
                "c": In(signed(CONSTANT_BITS)),
                "shift": In(SHIFT_BITS),
                "even": In(1),
                "high": In(1),
                "result_valid": Out(1),
                "result": Out(signed(8)),
            }
        )

    @staticmethod
    def model(x1: int, x2: int, k: Affine, high: bool = False) -> int:
        """What `result` is, from the law."""
        return affine(x1, x2 << HIGH_SHIFT if high else x2, k)

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
        """Stages 1 to 3: partial products, products, their sum with the constant and half of the last place."""
        products = [
            self._product(m, stage, x, f, i) for i, (x, f) in enumerate(((self.x1, self.m1), (self.x2, self.m2)))
        ]
        constant = Signal(signed(CONSTANT_BITS + 1))
        half = Signal(CONSTANT_BITS)
        m.d.comb += half.eq((1 << self.shift) >> 1)
        # The constants hold for many cycles, so their sum may lag them by one: operands take longer to get here.
        m.d.sync += constant.eq(self.c + half)
        total = Signal(signed(_SUM_BITS), reset_less=True)
        with m.If(stage[2]):
            m.d.sync += total.eq(products[0] + Mux(self.high, products[1] << HIGH_SHIFT, products[1]) + constant)
        return total

    def _product(self, m: Module, stage: list[Signal], x: Value, factor: Value, number: int) -> Signal:
        """Two stages: the factor's halves apart, each fitting one 18 x 18 multiplier, then their sum."""
        low = Signal(signed(OPERAND_BITS + _LOW_FACTOR_BITS + 1), name=f"low{number}", reset_less=True)
        high = Signal(signed(OPERAND_BITS + FACTOR_BITS - _LOW_FACTOR_BITS), name=f"high{number}", reset_less=True)
        product = Signal(signed(_PRODUCT_BITS), name=f"product{number}", reset_less=True)
        # A signal of its own keeps the sign extension one operator in simulators.
        moved = Signal(signed(_PRODUCT_BITS), name=f"moved{number}")
        m.d.comb += moved.eq(high << _LOW_FACTOR_BITS)
        with m.If(stage[0]):
            m.d.sync += [
                low.eq(x * factor[:_LOW_FACTOR_BITS]),
                high.eq(x * factor[_LOW_FACTOR_BITS:].as_signed()),
            ]
        with m.If(stage[1]):
            m.d.sync += product.eq(low + moved)
        return product

    def _round(self, m: Module, stage: list[Signal], total: Signal) -> None:
        """Stages 4 and 5: shift; then ties and clamp. `total` holds half of the last place already."""
        shifted = Signal(signed(_SUM_BITS), reset_less=True)
        below = Signal(unsigned(CONSTANT_BITS))
        even_tie = Signal(reset_less=True)
        m.d.comb += below.eq((1 << self.shift) - 1)
        with m.If(stage[3]):
            m.d.sync += [
                shifted.eq(total >> self.shift),
                # Nothing left below the last place after half was added: it was a tie.
                even_tie.eq(self.even & (self.shift != 0) & ((total & below) == 0)),
            ]
        with m.If(stage[4]):
            with m.If(shifted > INT8_MAX):
                m.d.sync += self.result.eq(INT8_MAX)
            with m.Elif(shifted < INT8_MIN):
                m.d.sync += self.result.eq(INT8_MIN)
            with m.Else():
                m.d.sync += self.result.eq(Cat(shifted[0] & ~even_tie, shifted[1:8]))
