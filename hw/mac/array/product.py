"""Product that FPGA synthesis builds from LUTs: one interface, a form for synthesis and a plain one for simulation."""

from __future__ import annotations

from enum import Enum, auto

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.spec import timing
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.yosys_attributes import LUT_PRODUCT

PRODUCT_MODULE = "intloom_lut_product"
"""Name of the module in Verilog."""

_PART_BITS = 2
"""Weight bits in each partial product: the look-up tables of one carry chain form it. The last has the sign too."""

PARTS = WEIGHT_BITS // _PART_BITS
"""Partial products of a product."""


class ProductForm(Enum):
    """How a `LutProduct` computes its result; all forms have equal outputs in every cycle."""

    PLAIN = auto()
    """One multiplication: few operations for a simulator."""
    PARTS = auto()
    """Partial products of two weight bits each, then sums: carry chains for an FPGA."""


class OneModule:
    """Elaboration platform on which components that have several forms are instances of modules in another text.

    Each `LutProduct` is an instance of `PRODUCT_MODULE`, each clock gate one of its module, and with `arrays` each
    `MacArray` is one of `ARRAY_MODULE`.
    """

    def __init__(self, *, arrays: bool) -> None:
        self.arrays = arrays


class LutProduct(wiring.Component):
    """A product of an int8 and a weight that FPGA synthesis keeps out of DSP blocks.

    The forms differ in what the register between operands and product holds: the product itself, or its parts.

    Parameters
    ----------
    form:
        How the product is computed.

    Members
    -------
    pixel, weight:
        Operands.
    product:
        Their product, `LATENCY` cycles later.

    Handshake
    ---------
    No back-pressure in either direction.

    Timing
    ------
    One product a cycle. From the operands to the product: `LATENCY` = 2 cycles.

    Requirements
    ------------
    `weight` is not -256: its product with -128 would not fit 16 bits. No difference of two int8 is.

    Reset and faults
    ----------------
    The registers are not reset; the validity of `product` follows from the operands'. There are no faults.
    """

    LATENCY = timing.PRODUCT

    def __init__(self, form: ProductForm = ProductForm.PLAIN) -> None:
        self._form = form
        super().__init__({"pixel": In(signed(8)), "weight": In(signed(WEIGHT_BITS)), "product": Out(signed(16))})

    @classmethod
    def attach(cls, m: Module, name: str, pixel: Value, weight: Value, platform: object) -> Value:
        """Add a product to `m`: an instance of the common module if the platform has one, else a submodule.

        The operands are as wide as the ports: those of an instance extend no sign.
        """
        if isinstance(platform, OneModule):
            product = Signal(signed(16), name=name)
            m.submodules[f"{name}_lut"] = Instance(
                PRODUCT_MODULE, i_clk=ClockSignal(), i_pixel=pixel, i_weight=weight, o_product=product
            )
            return product
        m.submodules[name] = component = cls()
        m.d.comb += [component.pixel.eq(pixel), component.weight.eq(weight)]
        return component.product

    def elaborate(self, platform: object) -> Module:
        """The registers of the form, and the output register beside the adders."""
        m = Module()
        computed = self._multiplied(m) if self._form is ProductForm.PLAIN else self._summed(m)
        output = Signal(signed(16), reset_less=True)
        m.d.sync += output.eq(computed)
        m.d.comb += self.product.eq(output)
        return m

    def _multiplied(self, m: Module) -> Value:
        multiplied = Signal(signed(16), reset_less=True)
        m.d.sync += multiplied.eq(self.pixel * self.weight)
        return multiplied

    def _summed(self, m: Module) -> Value:
        parts: list[Value] = []
        for number in range(PARTS):
            low, last = number * _PART_BITS, number == PARTS - 1
            digit = self.weight[low:].as_signed() if last else self.weight[low : low + _PART_BITS]
            # The product's 16 bits end with bit 9 of the last part.
            part = Signal(signed(8 + _PART_BITS), name=f"part{low}", reset_less=True, attrs={LUT_PRODUCT: 1})
            m.d.sync += part.eq(self.pixel * digit)
            parts.append(part)
        while len(parts) > 1:
            parts = [_add_parts(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]


def _add_parts(low: Value, high: Value) -> Value:
    """The sum of two partial products, the upper one `len(high) - 8` bits above the lower."""
    offset = len(high) - 8
    upper = (low[offset:].as_signed() + high)[: len(high)]
    return Cat(low[:offset], upper).as_signed()
