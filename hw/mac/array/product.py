"""Products of a pixel and weights: in a multiplier, two in one multiplier, or in LUTs.

The product in LUTs has one interface, a form for synthesis and a plain one for simulation.
"""

from enum import Enum, auto

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal, Value, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec import timing
from intloom.hw.spec.arith import WEIGHT_BITS
from intloom.hw.spec.params import WIDE_MULTIPLIER
from intloom.hw.yosys_attributes import LUT_PRODUCT

PRODUCT_MODULE = "intloom_lut_product"
"""Name of the module in Verilog."""

_PART_BITS = 2
"""Weight bits in each partial product: the look-up tables of one carry chain form it. The last has the sign too."""

PARTS = WEIGHT_BITS // _PART_BITS
"""Partial products of a product."""


_FIELD_BITS = 16
"""Bits of a product: no weight is -256."""


def product(m: Module, name: str, pixel: Value, weight: Value) -> Value:
    """Add a product in a multiplier, with the latency of `LutProduct`.

    All registers move into the DSP block: none of them has an enable.
    """
    factors = [
        pipeline_stages(m, f"{name}_{factor}", value, 1, reset_less=True)
        for factor, value in (("pixel", pixel), ("weight", weight))
    ]
    result = Signal(signed(_FIELD_BITS), name=name, reset_less=True)
    m.d.sync += result.eq(factors[0] * factors[1])
    return result


def joined(low: Value, high: Value) -> Value:
    """Two weights in the bits of one factor."""
    return Cat(low, low[-1].replicate(_FIELD_BITS - len(low)), high).as_signed()


def paired_factor(weights: Value) -> Value:
    """The factor `low + 2**16 * high` of two `joined` weights, by a multiplier's pre-adder: a negative one borrows.

    An operand without constant bits can have its register in the DSP block.
    """
    borrow = weights[_FIELD_BITS - 1].replicate(len(weights) - _FIELD_BITS)
    return (Cat(Const(0, _FIELD_BITS), borrow).as_signed() + weights)[:WIDE_MULTIPLIER].as_signed()


def paired_products(m: Module, name: str, pixel: Value, weights: tuple[Value, Value]) -> tuple[Value, Value, Value]:
    """Add the products of a pixel and two weights in one multiplier of 25 x 18 bits, with the latency of `LutProduct`.

    The lower product borrows from the upper one if it is negative. The results are the lower product, the upper one
    less the borrow, and the borrow: the adders of the upper product add it again, as a carry.
    """
    multiplied = Signal(signed(2 * _FIELD_BITS), name=f"{name}_multiplied", reset_less=True)
    result = Signal(2 * _FIELD_BITS, name=name, reset_less=True)
    m.d.sync += [multiplied.eq(pixel * paired_factor(joined(*weights))), result.eq(multiplied)]
    lower, upper = result[:_FIELD_BITS].as_signed(), result[_FIELD_BITS:].as_signed()
    return lower, upper, lower[-1]


def paired_sums(
    m: Module, name: str, pixels: tuple[Value, Value], factors: tuple[Value, Value], odd: Value
) -> tuple[Value, Value, Value]:
    """Add the sums of two pixels' products with two weights each, in two multipliers of which the second one adds.

    The second pixel and its factor come a cycle after the first ones, with which `odd` comes: whether the upper sum is
    odd. The sums come three cycles after the first pixel. A lower sum has one bit more than its field: it is negative,
    and borrows from the upper one, if the lowest bit of the upper field is not `odd`. The results are as those of
    `paired_products`.
    """
    first, second, before = (
        Signal(signed(2 * _FIELD_BITS), name=f"{name}_{part}", reset_less=True)
        for part in ("first", "second", "before")
    )
    total = Signal(signed(2 * _FIELD_BITS + 1), name=name, reset_less=True)
    m.d.sync += [
        first.eq(pixels[0] * factors[0]),
        second.eq(pixels[1] * factors[1]),
        before.eq(first),
        total.eq(before + second),
    ]
    borrow = total[_FIELD_BITS] ^ pipeline_stages(m, f"{name}_odd", odd, 3, reset_less=True)
    return Cat(total[:_FIELD_BITS], borrow).as_signed(), total[_FIELD_BITS:].as_signed(), borrow


def sum_with_carry(left: Value, right: Value, carry: Value | None) -> Value:
    """The sum of two signed numbers and, if there is one, a carry, in one adder."""
    if carry is None:
        return left + right
    # An extra lowest bit generates the carry.
    return ((Cat(carry, left).as_signed() + Cat(carry, right).as_signed()) >> 1).as_signed()


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
