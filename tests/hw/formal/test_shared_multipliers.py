"""Sums and products that share the multipliers and adders of DSP blocks, for all operands."""

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Assume, Const, Elaboratable, Module, Mux, ResetSignal, Signal, Value, signed

from intloom.hw.affine import AffineLane
from intloom.hw.spec.arith import CONSTANT_BITS
from intloom.hw.spec.norm import DEVIATION_BITS, FACTOR_BITS, OFFSET_BITS
from intloom.hw.spec.params import preset
from intloom.hw.vector.norm import Norm
from intloom.hw.vector.operand_stage import WIDE_BITS, OperandStage
from intloom.hw.vector.pool import SUM_BITS
from tests.hw.formal.planted import planted, rebased, with_locals
from tests.hw.formal.prover import prove
from tests.hw.streams import made

pytestmark = pytest.mark.slow
BASE = preset("base")
SETTLED = 8
"""Cycles after which pipelines with constant operands show their results."""


def holds(bench: Elaboratable, folder: Path) -> bool:
    """Whether assertions hold once the pipelines are filled."""
    return prove(bench, folder, depth=SETTLED + 1, first=SETTLED).holds


class SumLane(AffineLane):
    """The sum of any products and any constant."""

    whole: Value = Const(0)
    """The products at their positions."""

    def elaborate(self, platform: object) -> Module:
        m = super().elaborate(platform)
        m.d.comb += [
            Assume(~ResetSignal()),
            self.valid.eq(1),
            self.constants.constant.eq(AnyConst(signed(CONSTANT_BITS + 1))),
        ]
        return m

    def _product(self, m: Module, name: str, x: Signal, factor: Value) -> Signal:
        """Any product of its width; `whole` is the sum of all."""
        product = Signal.like(super()._product(m, name, x, factor), name=f"any_{name}")
        m.d.comb += product.eq(AnyConst(product.shape()))
        self.whole += product << (17 if name.startswith("high") else 0)
        return product

    def _round(self, m: Module, stage: list[Signal], total: Signal, shift: Signal, to_even: Signal) -> None:
        super()._round(m, stage, total, shift, to_even)
        m.d.comb += Assert(total == (self.whole + self.constants.constant)[: len(total)].as_signed())


@pytest.mark.parametrize("bits", [8, WIDE_BITS])
@pytest.mark.parametrize("wide", [False, True])
def test_both_forms_of_an_affine_lane_add_all_terms(wide: bool, bits: int, tmp_path: Path) -> None:
    assert holds(SumLane(wide, bits), tmp_path)


@pytest.mark.parametrize(
    ("wide", "change"),
    [
        (False, ("both + self.constants.constant", "both")),
        (True, ("begun.eq(first + self.constants.constant)", "begun.eq(first)")),
        (True, ("begun + second", "begun - second")),
    ],
)
def test_a_wrong_sum_is_found(wide: bool, change: tuple[str, str], tmp_path: Path) -> None:
    assert not holds(rebased(SumLane, planted(AffineLane, change))(wide, 8), tmp_path)


class MultiplyBench(Elaboratable):
    """A lane of a normalization in either pass."""

    def __init__(self, norm: type[Norm] = Norm) -> None:
        self._norm = norm

    def elaborate(self, platform: object) -> Module:
        m = Module()
        applies, wanted, other = AnyConst(1), AnyConst(signed(DEVIATION_BITS)), AnyConst(signed(DEVIATION_BITS))
        factor, offset = AnyConst(FACTOR_BITS), AnyConst(signed(OFFSET_BITS))
        deviation, own = Signal(signed(DEVIATION_BITS)), Signal(signed(DEVIATION_BITS))
        scale, minus_offset = Signal(FACTOR_BITS), Signal(signed(OFFSET_BITS))
        # Beyond the channels a deviation is 0, and `own` is another number.
        m.d.comb += [
            deviation.eq(wanted),
            own.eq(Mux(applies, 0, Mux(wanted == 0, other, wanted))),
            scale.eq(Mux(applies, factor, 0)),
            minus_offset.eq(Mux(applies, -offset, 0)),
        ]
        norm = made(self._norm, BASE)
        moved, inside = with_locals(norm._multiply, m, 0, deviation, own, (scale, minus_offset))
        operand, scaled = (inside["_multiply"][name] for name in ("operand", "scaled"))
        # The multiplier occurs once: comparing two of them would take the solver hours.
        result = Signal(len(moved), reset_less=True)
        m.d.sync += result.eq(scaled - Mux(applies, offset, 0))
        m.d.comb += [
            Assert((wanted == 0) | (operand == Mux(applies, factor, wanted))),
            Assert(moved == result),
        ]
        return m


def test_one_multiplier_serves_both_passes_of_a_normalization(tmp_path: Path) -> None:
    assert holds(MultiplyBench(), tmp_path)


@pytest.mark.parametrize("change", [("register.eq(own)", "register.eq(own[:8])"), ("scaled + minus_offset", "scaled")])
def test_a_wrong_product_is_found(change: tuple[str, str], tmp_path: Path) -> None:
    assert not holds(MultiplyBench(planted(Norm, change)), tmp_path)


class OperandBench(Elaboratable):
    """An operand stage of one lane with constant inputs of an operation that multiplies nothing."""

    def __init__(self, multiplier: bool, stage: type[OperandStage] = OperandStage) -> None:
        self._params = BASE.replace(vector_lanes=1, vector_multiply=multiplier)
        self._stage = stage

    def elaborate(self, platform: object) -> Module:
        m = Module()
        m.submodules.stage = stage = self._stage(self._params)
        a, b, total, average = AnyConst(signed(8)), AnyConst(signed(8)), AnyConst(signed(SUM_BITS)), AnyConst(1)
        m.d.comb += [
            Assume(~ResetSignal()),
            stage.valid.eq(1),
            stage.a[0].eq(a),
            stage.b[0].eq(b),
            stage.total[0].eq(total),
            stage.average.eq(average),
            Assert(stage.x1[0] == Mux(average, total, a)),
            Assert(stage.x2[0] == Mux(average, 0, b)),
        ]
        return m


@pytest.mark.parametrize("multiplier", [True, False])
def test_operands_pass_the_multiplier(multiplier: bool, tmp_path: Path) -> None:
    assert holds(OperandBench(multiplier), tmp_path)


def test_a_wrong_operand_is_found(tmp_path: Path) -> None:
    fault = planted(OperandStage, ('Mux(self._routed["multiply"], second, 1)', "second"))
    assert not holds(OperandBench(True, fault), tmp_path)
