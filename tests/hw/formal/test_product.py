"""The forms of a product are equal in every cycle, and equal to a multiplication `LutProduct.LATENCY` cycles before."""

from itertools import pairwise
from pathlib import Path

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import Assert, Elaboratable, Module, Signal, signed

from intloom.hw.mac.array.product import LutProduct, ProductForm
from intloom.hw.spec.arith import WEIGHT_BITS
from tests.hw.formal.prover import prove

pytestmark = pytest.mark.slow


class FormsBench(Elaboratable):
    """Both forms with free operands in every cycle; `early` and `weight_error` change the operands of one form.

    Pixels have all values of `pixel_bits`.
    """

    def __init__(self, *, early: bool = False, weight_error: int = 0, pixel_bits: int = 8) -> None:
        self._early, self._weight_error, self._pixel_bits = early, weight_error, pixel_bits

    def elaborate(self, platform: object) -> Module:
        m = Module()
        pixels, weights = (
            [Signal(signed(bits), name=f"{name}{n}", reset_less=True) for n in range(4)]
            for name, bits in (("pixel", 8), ("weight", WEIGHT_BITS))
        )
        for operands, bits in ((pixels, self._pixel_bits), (weights, WEIGHT_BITS)):
            m.d.comb += operands[0].eq(AnySeq(signed(bits)))
            m.d.sync += [later.eq(operand) for operand, later in pairwise(operands)]
        m.submodules.plain, m.submodules.parts = plain, parts = (
            LutProduct(ProductForm.PLAIN),
            LutProduct(ProductForm.PARTS),
        )
        given = 0 if self._early else 1
        m.d.comb += [
            plain.pixel.eq(pixels[1]),
            plain.weight.eq(weights[1]),
            parts.pixel.eq(pixels[given]),
            parts.weight.eq(weights[given] ^ self._weight_error),
            Assert(plain.product == parts.product),
            Assert((plain.product == pixels[3] * weights[3]) | (weights[3] == -256)),
        ]
        return m


@pytest.mark.parametrize("pixel_bits", [4, pytest.param(8, marks=pytest.mark.nightly)])
def test_all_forms_are_the_product_of_the_operands(pixel_bits: int, tmp_path: Path) -> None:
    """With 8 bits it takes about 25 seconds; `tests/hw/mac/array/test_product.py` simulates all operands."""
    assert LutProduct.LATENCY == 2
    result = prove(FormsBench(pixel_bits=pixel_bits), tmp_path, depth=5)
    assert result.holds, result.log


@pytest.mark.parametrize("fault", [{"early": True}, {"weight_error": 0x80}, {"weight_error": 0x100}])
def test_another_latency_or_operand_is_found(fault: dict[str, int], tmp_path: Path) -> None:
    assert not prove(FormsBench(**fault), tmp_path, depth=5).holds
