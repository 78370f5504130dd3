"""The affine lane at its full widths, for all operands and coefficients, in two parts whose composition is the whole.

1. Products. For all operands and factors, the low product plus the high one shifted by the split is their exact product.
2. Sum and rounding. With any values in place of the four products, and any coefficients, the result is that of
   `intloom.hw.spec.arith.affine`, with the sum of the products in place of x1 * m1 + x2 * m2.

Composition: what 2 allows as products includes what 1 gives, and by distributivity the sum of the products is x1 * m1 +
x2 * m2.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value, signed

from intloom.hw.affine import _LOW_FACTOR_BITS, BYTE_BITS, AffineConstants, AffineLane
from intloom.hw.spec.arith import INT8_MAX, INT8_MIN
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.vector.operand_stage import WIDE_BITS
from tests.hw.formal.planted import planted, rebased
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
WIDTHS = {"residual adder": (BYTE_BITS, BYTE_BITS), "vector unit": (WIDE_BITS, BYTE_BITS)}
"""Of the operands, as the two units instantiate the lane."""
LONGEST_SHIFT = BY_KIND[Kind.VADD].field("shift").maximum


class ProductLane(AffineLane):
    """Part 1: products beside sums of shifted terms."""

    def _multiply(self, m: Module) -> list[tuple[Signal, Signal]]:
        products = super()._multiply(m)
        operands = ((self.x1, self.constants.m1), (self.x2, self.constants.m2))
        for (low, high), (operand, factor) in zip(products, operands, strict=True):
            # Wide enough for every product; the factor's bits one by one.
            whole = Signal(signed(len(operand) + len(factor)))
            terms = [Mux(factor[bit], operand << bit, 0) for bit in range(len(factor) - 1)]
            m.d.comb += whole.eq(sum(terms) - Mux(factor[-1], operand << len(factor) - 1, 0))
            m.d.comb += Assert(low + (high << _LOW_FACTOR_BITS) == whole)
        return products


class SumLane(AffineLane):
    """Part 2: any products."""

    def _multiply(self, m: Module) -> list[tuple[Signal, Signal]]:
        pairs = super()._multiply(m)
        self.parts = [[Signal(part.shape(), name=f"any_{part.name}") for part in pair] for pair in pairs]
        m.d.comb += [part.eq(AnyConst(part.shape())) for pair in self.parts for part in pair]
        return [(low, high) for low, high in self.parts]

    def products(self) -> Value:
        """What the products add up to."""
        return sum((low + (high << _LOW_FACTOR_BITS) for low, high in self.parts), Const(0))


class ProductBench(Elaboratable):
    """Part 1: any operands and factors."""

    def __init__(self, lane: AffineLane) -> None:
        self.lane = lane

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = self.lane
        m.d.comb += Assume(~ResetSignal())
        for port in (self.lane.x1, self.lane.x2, self.lane.constants.m1, self.lane.constants.m2):
            m.d.comb += port.eq(AnyConst(port.shape()))
        return m


class SumBench(Elaboratable):
    """Part 2: the lane behind its constants, with one operation and one pair of operands held for ever."""

    def __init__(self, lane: SumLane) -> None:
        self.lane = lane

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = lane = self.lane
        m.submodules.constants = constants = AffineConstants()
        operation = constants.operation
        m.d.comb += [
            Assume(~ResetSignal()),
            lane.constants.eq(constants.prepared),
            lane.valid.eq(1),
            operation.as_value().eq(AnyConst(len(operation.as_value()))),
            Assume(operation.shift <= LONGEST_SHIFT),
        ]
        total = lane.products() + operation.c
        rounded = Signal(total.shape())
        for shift in range(LONGEST_SHIFT + 1):
            with m.If(operation.shift == shift):
                m.d.comb += rounded.eq(_rounded(total, shift, operation.even))
        limited = Mux(rounded > INT8_MAX, INT8_MAX, Mux(rounded < INT8_MIN, INT8_MIN, rounded))
        m.d.comb += Assert(lane.result == limited)
        return m


def _rounded(total: Value, shift: int, even: Value) -> Value:
    """`shift_round_even` or `shift_round_up` for a fixed shift."""
    if shift == 0:
        return total
    whole, rest, half = total[shift:].as_signed(), total[:shift], 1 << (shift - 1)
    return whole + Mux(even, (rest > half) | ((rest == half) & whole[0]), rest >= half)


def holds(part: str, widths: tuple[int, int], folder: Path, *changes: tuple[str, str]) -> bool:
    """Whether a part follows its definition; `changes` plant a fault in the lane."""
    lane = {"products": ProductLane, "sum": SumLane}[part]
    if changes:
        lane = rebased(lane, planted(AffineLane, *changes))
    bench = {"products": ProductBench, "sum": SumBench}[part](lane(*widths))
    first = AffineConstants.LATENCY + AffineLane.LATENCY
    return prove(bench, folder, depth=first + 1, first=first).holds


@pytest.mark.parametrize("unit", WIDTHS)
@pytest.mark.parametrize("part", ["products", "sum"])
def test_a_part_of_the_lane_follows_its_definition(part: str, unit: str, tmp_path: Path) -> None:
    assert holds(part, WIDTHS[unit], tmp_path)


_FAULTS = {
    "products: sign of the upper half": ("factor[_LOW_FACTOR_BITS:].as_signed()", "factor[_LOW_FACTOR_BITS:]"),
    "sum: carry between halves": ("high + low[split:].as_signed()", "high + low[split:-1].as_signed()"),
    "sum: a sticky bit less": ("moves & value[:step].any()", "moves & value[1:step].any()"),
    "sum: ties": ("tie.eq(to_even & ~below & ~rest.any())", "tie.eq(to_even & ~below)"),
    "sum: clamp": ("outside | lost.any() | (byte[-1] != negative)", "outside | lost.any()"),
    "sum: sign of a clamped value": ("Mux(negative, INT8_MIN, INT8_MAX)", "INT8_MAX"),
}


@pytest.mark.parametrize("fault", _FAULTS)
def test_a_faulty_part_is_refuted(fault: str, tmp_path: Path) -> None:
    assert not holds(fault.split(":", maxsplit=1)[0], WIDTHS["vector unit"], tmp_path, _FAULTS[fault])
