"""The requantiser proved against its law stated as inequalities: no shift, no rounding step, no normal form.

Sums are narrow and mantissas have few free bits, so that the solver can compare two products. Within that the proof
covers every sum, every such mantissa, every zero point, and every exponent at which a result is neither 0 nor clamped.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Cat, Const, Elaboratable, Module, Mux, Signal, Value, signed

from hw.mac.requantizer import RequantizerLane
from hw.spec.arith import Match
from hw.spec.params import HardwareParams, preset
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow
WIDE = 28
"""Bits in which every side of an inequality fits, besides those of the least exponent."""
FP32_BITS = 24
EXPONENT_BITS = 4


class LawBench(Elaboratable):
    """One value through the lane; asserts the law on its result.

    `low_bits` and `high_bits` of the mantissa are free, at its low end and below its top bit. `ties_up` states another
    law, to show that the proof tells the difference.
    """

    def __init__(
        self,
        params: HardwareParams,
        sum_bits: int,
        low_bits: int,
        high_bits: int,
        *,
        least_exponent: int = 0,
        ties_up: bool = False,
    ) -> None:
        self.params = params
        self.sum_bits = sum_bits
        self.low_bits = low_bits
        self.high_bits = high_bits
        self.least_exponent = least_exponent
        self.wide = WIDE + least_exponent
        self.ties_up = ties_up

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.lane = lane = RequantizerLane(self.params)
        total = Signal(signed(self.sum_bits))
        mantissa = Signal(self.params.mantissa_bits)
        exponent = Signal(EXPONENT_BITS)
        zero_point = Signal(signed(8))
        between = self.params.mantissa_bits - 1 - self.low_bits - self.high_bits
        bias = AnyConst(signed(4))
        m.d.comb += [
            total.eq(AnyConst(signed(self.sum_bits))),
            mantissa.eq(Cat(AnyConst(self.low_bits), Const(0, between), AnyConst(self.high_bits), Const(1, 1))),
            exponent.eq(AnyConst(EXPONENT_BITS)),
            zero_point.eq(AnyConst(signed(8))),
            lane.enable.eq(-1),
            lane.acc.eq(total - bias),
            lane.bias.eq(bias),
            lane.mantissa.eq(mantissa),
            lane.exponent.eq(exponent + self.least_exponent),
            lane.zero_point.eq(zero_point),
        ]
        product = Signal(signed(self.wide))
        m.d.comb += product.eq(total * mantissa)
        scaled = self._as_fp32(m, product) if self.params.match is Match.ORT else product
        cycle = Signal(range(RequantizerLane.LATENCY + 2))
        m.d.sync += cycle.eq(cycle + 1)
        with m.If(cycle == RequantizerLane.LATENCY):
            self._assert_law(m, scaled, exponent, zero_point, lane.result)
        return m

    def _as_fp32(self, m: Module, product: Signal) -> Signal:
        """The number of 24 significant bits nearest to the product, of two such the one with an even last bit."""
        size = Signal(self.wide)
        nearest = Signal(self.wide)
        m.d.comb += [size.eq(Mux(product < 0, -product, product)), nearest.eq(AnyConst(FP32_BITS + self.sum_bits))]
        with m.If(size < 1 << FP32_BITS):
            m.d.comb += Assume(nearest == size)
        for extra in range(1, self.sum_bits + 1):
            step = 1 << extra
            with m.If((size >= 1 << (FP32_BITS + extra - 1)) & (size < 1 << (FP32_BITS + extra))):
                twice = Signal(signed(self.wide), name=f"twice{extra}")
                m.d.comb += [
                    twice.eq(2 * (size - nearest)),
                    Assume(nearest[:extra] == 0),
                    Assume((twice <= step) & (twice >= -step)),
                    Assume(((twice != step) & (twice != -step)) | ~nearest[extra]),
                ]
        result = Signal(signed(self.wide))
        m.d.comb += result.eq(Mux(product < 0, -nearest, nearest))
        return result

    def _assert_law(self, m: Module, scaled: Value, exponent: Value, zero_point: Value, result: Value) -> None:
        """Result less zero point is nearest to scaled * 2**-exponent, of two such the even one; or it is clamped."""
        unit = Signal(signed(self.wide))
        whole = Signal(signed(10))
        twice = Signal(signed(self.wide))
        m.d.comb += [
            unit.eq((1 << exponent) << self.least_exponent),
            whole.eq(result - zero_point),
            twice.eq(2 * scaled - ((whole << exponent) << (self.least_exponent + 1))),
        ]
        even = ~whole[0]
        not_above = (twice < unit) | ((twice == unit) & (Const(0, 1) if self.ties_up else even))
        not_below = (twice > -unit) | ((twice == -unit) & (Const(1, 1) if self.ties_up else even))
        m.d.comb += [
            Assert(not_above | (result == 127)),
            Assert(not_below | (result == -128)),
        ]


EXACT = preset("nano").replace(match="exact", mantissa_bits=8, acc_bits=20)
ORT = preset("nano").replace(acc_bits=20)
DEPTH = RequantizerLane.LATENCY + 1


@pytest.mark.parametrize(
    ("params", "free", "least_exponent"),
    [(EXACT, (5, 2, 2), 0), (ORT, (4, 2, 1), 18)],
    ids=["exact", "ort"],
)
def test_the_lane_obeys_the_law(
    params: HardwareParams, free: tuple[int, int, int], least_exponent: int, tmp_path: Path
) -> None:
    bench = LawBench(params, *free, least_exponent=least_exponent)
    verdict = prove(bench, tmp_path, depth=DEPTH, first=DEPTH - 1)
    assert verdict.holds, verdict.log


def test_the_proof_tells_half_up_from_half_to_even(tmp_path: Path) -> None:
    assert not prove(LawBench(EXACT, 4, 1, 1, ties_up=True), tmp_path, depth=DEPTH, first=DEPTH - 1).holds
