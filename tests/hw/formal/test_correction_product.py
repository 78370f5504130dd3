"""The zero-point correction's sum of shifted terms is the product of its operands, for all of them."""

from pathlib import Path

import pytest
from amaranth.asserts import AnyConst
from amaranth.hdl import Assert, Elaboratable, Module, Signal, signed

from intloom.hw.mac.weights.zero_point_correction import PRODUCT_STAGES, multiply
from intloom.hw.spec.arith import WEIGHT_BITS
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


class ProductBench(Elaboratable):
    """The multiplier with free operands that stay; the errors change them."""

    def __init__(self, bits: int, *, total_error: int = 0, zero_point_error: int = 0) -> None:
        self._bits, self._total_error, self._zero_point_error = bits, total_error, zero_point_error

    def elaborate(self, platform: object) -> Module:
        m = Module()
        wanted_total, wanted_zero_point = AnyConst(signed(self._bits)), AnyConst(signed(8))
        total, zero_point = Signal(signed(self._bits)), Signal(signed(8))
        m.d.comb += [
            total.eq(wanted_total ^ self._total_error),
            zero_point.eq(wanted_zero_point ^ self._zero_point_error),
        ]
        product = multiply(m, total, zero_point)
        m.d.comb += Assert(product == wanted_total * wanted_zero_point)
        return m


def holds(bench: ProductBench, folder: Path) -> bool:
    """Whether the product is right; operands are constant, so one cycle after the latency suffices."""
    return prove(bench, folder, depth=PRODUCT_STAGES + 1, first=PRODUCT_STAGES).holds


@pytest.mark.parametrize(
    "bits", [2, 6, *(pytest.param(WEIGHT_BITS + more, marks=pytest.mark.evidence) for more in (0, 2))]
)
def test_the_sum_of_terms_is_the_product(bits: int, tmp_path: Path) -> None:
    # The width of a sum is a parameter of the same adders; a weight and a sum of four weights take the solver minutes.
    assert holds(ProductBench(bits), tmp_path)


@pytest.mark.parametrize("fault", [{"total_error": 1 << 5}, {"zero_point_error": 0x80}])
def test_another_operand_is_found(fault: dict[str, int], tmp_path: Path) -> None:
    assert not holds(ProductBench(6, **fault), tmp_path)
