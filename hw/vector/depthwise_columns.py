"""Sums of a depthwise convolution: every input word is multiplied for all kernel columns at once."""

from collections.abc import Mapping, Sequence

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from intloom.hw.mac.array.product import LutProduct, paired_products, product, sum_with_carry
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.spec.arith import INT8_MIN, WEIGHT_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import GROUPS, TAPS
from intloom.hw.vector.depthwise_constants import COLUMN_BITS, KERNEL_BITS, constant_write
from intloom.hw.vector.window_walker import TAP_LAYOUT
from intloom.hw.yosys_attributes import REGISTER_COPY

_LARGEST = ((1 << KERNEL_BITS) - 1) * INT8_MIN * INT8_MIN
"""The largest magnitude of a kernel column's products."""


def sum_bits(columns: int) -> int:
    """Bits of the sum of this many kernel columns, with its sign."""
    return (columns * _LARGEST).bit_length() + 1


SUM_BITS = sum_bits(TAPS)

_Term = tuple[Value, Value | None]
"""A product, and a carry to add or none."""


def _widened(weight: Value) -> Value:
    """A weight with as many bits as a product takes: the port of an instance extends no sign."""
    return Cat(weight, weight[-1].replicate(WEIGHT_BITS - len(weight))).as_signed()


class DepthwiseColumns(wiring.Component):
    """Multiplies words by the weights of their kernel row and sums the products of each window.

    Of every channel, sum k has the products of columns 0 to k of one window: its first k input columns and those
    words of the current column that have come. The first word of a column moves every sum on: sum k takes
    over sum k - 1. A kernel takes the last `kernel_w` of the `TAPS` columns; the sums before them stay 0.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    write
        Words of constants, of which weights are stored.
    valid, word, tap
        A word, and whether it is its column's first, or the last one of a window.
    kernel_w
        Kernel columns.
    sums_valid, sums
        The sums of a window; they may change in the next cycle.

    Handshake
    ---------
    No back-pressure: a word is taken in every cycle with `valid`.

    Timing
    ------
    One word a cycle. From the last word of a window to its sums: `LATENCY` = 5 cycles (kernel row, weights, 2 product,
    sum). A word may come in the cycle after `write` has had its weights.

    Requirements
    ------------
    The words of a column come from top to bottom; it has no more of them than weights are stored. Weights are not
    written in the cycle after a word. `kernel_w` is stable from 2 cycles before the first word of an instruction until
    its last sums.

    Reset and faults
    ----------------
    Soft reset clears the valid flags; stored weights and sums keep their values. There are no faults.
    """

    _OPERANDS = 2
    """Cycles from a word to the factors of its products."""
    LATENCY = _OPERANDS + LutProduct.LATENCY + 1

    def __init__(self, params: HardwareParams) -> None:
        self._word_bytes = params.word_bytes
        self._lut_products = params.depthwise_lut_products
        self._paired = params.wide_multipliers
        super().__init__(
            {
                "write": In(constant_write(params)),
                "kernel_w": In(COLUMN_BITS),
                "valid": In(1),
                "word": In(8 * params.word_bytes),
                "tap": In(TAP_LAYOUT),
                "sums_valid": Out(1),
                "sums": Out(data.ArrayLayout(signed(SUM_BITS), params.word_bytes)),
            }
        )

    @staticmethod
    def model(weights: Sequence[Sequence[Sequence[int]]], window: Mapping[tuple[int, int], Sequence[int]]) -> list[int]:
        """The sum of each channel of a window: `weights[ky][kx]` and `window[ky, kx]` have a value for each."""
        channels = range(len(weights[0][0]))
        return [sum(weights[ky][kx][c] * word[c] for (ky, kx), word in window.items()) for c in channels]

    def elaborate(self, platform: object) -> Module:
        """Kernel row, weights, products, sums."""
        m = Module()
        valid = [self.valid]
        for number in range(1, self.LATENCY):
            valid.append(pipeline_stages(m, f"valid{number}_", valid[-1], 1, reset_less=False))
        taps = pipeline_stages(m, "tap", self.tap, self.LATENCY - 2, reset_less=True)
        m.d.sync += self.sums_valid.eq(valid[-1] & pipeline_stages(m, "late_tap", taps, 1, reset_less=True).last)
        word = pipeline_stages(m, "word", self.word, self._OPERANDS, reset_less=True)
        weights = [self._weights(m, kx) for kx in range(TAPS)]
        group = self._word_bytes // GROUPS
        for first in range(0, self._word_bytes, group):
            # A copy for each group of channels: both reach every bit of every sum.
            adds, opens = (
                Signal(name=f"{name}{first}", reset_less=name == "opens", attrs={REGISTER_COPY: 1})
                for name in ("adds", "opens")
            )
            unused = Signal(TAPS - 1, name=f"unused{first}", reset_less=True, attrs={REGISTER_COPY: 1})
            m.d.sync += [adds.eq(valid[-2]), opens.eq(taps.first)]
            m.d.sync += [unused[k].eq(self.kernel_w < TAPS - k) for k in range(TAPS - 1)]
            for channel in range(first, first + group):
                pixel = word.word_select(channel, 8).as_signed()
                factors = [kernel.word_select(channel, 8).as_signed() for kernel in weights]
                products = self._products(m, channel, pixel, factors, platform)
                m.d.comb += self.sums[channel].eq(self._sum(m, channel, products, adds, opens, unused))
        return m

    def _products(self, m: Module, channel: int, pixel: Value, weights: list[Value], platform: object) -> list[_Term]:
        """The products of a channel's kernel columns."""
        products: list[_Term] = []
        while (kx := len(products)) < TAPS:
            name = f"product{channel}_{kx}"
            if TAPS * channel + kx < self._lut_products:
                products.append((LutProduct.attach(m, name, pixel, _widened(weights[kx]), platform), None))
            elif self._paired and kx + 1 < TAPS:
                low, high, borrow = paired_products(m, name, pixel, (weights[kx], weights[kx + 1]))
                products += [(low, None), (high, borrow)]
            else:
                products.append((product(m, name, pixel, weights[kx]), None))
        return products

    def _weights(self, m: Module, kx: int) -> Signal:
        """The weights of a kernel column in distributed RAM, and those of the current kernel row."""
        memory = Memory(shape=unsigned(8 * self._word_bytes), depth=1 << KERNEL_BITS, init=[])
        m.submodules[f"weights{kx}"] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        # A copy for each memory.
        row = Signal(KERNEL_BITS, name=f"row{kx}", reset_less=True, attrs={REGISTER_COPY: 1})
        with m.If(self.valid):
            m.d.sync += row.eq(Mux(self.tap.first, 0, row + 1))
        # One address for both ports: a LUT of the 7 series then stores two bits instead of one and a half.
        address = Signal(KERNEL_BITS, name=f"address{kx}")
        m.d.comb += [
            address.eq(Mux(self.write.weights[kx], self.write.row, row)),
            write.en.eq(self.write.weights[kx]),
            write.addr.eq(address),
            write.data.eq(self.write.word),
            read.addr.eq(address),
        ]
        weights = Signal(8 * self._word_bytes, name=f"kernel_column{kx}", reset_less=True)
        m.d.sync += weights.eq(read.data)
        return weights

    def _sum(
        self, m: Module, channel: int, products: list[_Term], adds: Signal, opens: Signal, unused: Signal
    ) -> Value:
        """The sums of one channel; the last of them is the window's."""
        before: Value = Value.cast(0)
        for kx, (term, carry) in enumerate(products):
            total = Signal(signed(sum_bits(kx + 1)), name=f"sum{channel}_{kx}", reset_less=True)
            with m.If(adds):
                m.d.sync += total.eq(sum_with_carry(Mux(opens, before, total), term, carry))
            if kx < TAPS - 1:
                with m.If(unused[kx]):
                    m.d.sync += total.eq(0)
            before = total
        return before
