"""Tells the words of a depthwise convolution's constants apart: weights, biases, scales."""

from collections.abc import Iterator

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from intloom.hw.down_counter import DownCounter
from intloom.hw.pipeline import output_register
from intloom.hw.spec.formats import CHANNEL_BYTES
from intloom.hw.spec.isa import BY_KIND, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.vector_depthwise import GROUPS, TAPS, constant_words

KERNEL_BITS = BY_KIND[Kind.VDEPTHWISE].field("kernel_h").width
COLUMN_BITS = BY_KIND[Kind.VDEPTHWISE].field("kernel_w").width
CHANNEL_WORDS_LOG2 = exact_log2(CHANNEL_BYTES)
"""Half of the words are biases, half scales: one for each group of channels."""


def constant_write(params: HardwareParams) -> data.StructLayout:
    """A word to store: weights of one kernel column, biases or scales; its kernel row or its group of channels."""
    return data.StructLayout(
        {
            "weights": unsigned(TAPS),
            "biases": unsigned(1),
            "scales": unsigned(1),
            "row": unsigned(KERNEL_BITS),
            "group": range(GROUPS),
            "word": unsigned(8 * params.word_bytes),
        }
    )


class DepthwiseConstants(wiring.Component):
    """Counts the words of the constants and says where to store each.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    start
        Pulse: no constants are loaded; the next word is the first one.
    kernel_h, kernel_w
        Kernel rows and columns.
    valid, word
        The next word.
    write
        The word and its destination; `weights` has a bit for each of `TAPS` columns, of which a kernel takes the last.
    weights_loaded, loaded
        All weights have come; all constants have come, or the last of them comes in this cycle.

    Handshake
    ---------
    No back-pressure: a word is taken in every cycle with `valid`.

    Timing
    ------
    One word a cycle. From a word to `write`: `LATENCY` = 1 cycle. `weights_loaded` rises in the cycle of the last write
    of weights, `loaded` with the last word.

    Requirements
    ------------
    `kernel_h` and `kernel_w` are stable from `start` until `weights_loaded`, and at least 1. Not `valid` with `start`;
    no more words than `constant_words(kernel_h, kernel_w)`.

    Reset and faults
    ----------------
    Soft reset clears `weights_loaded` and `loaded`, as `start` does. There are no faults.
    """

    LATENCY = 1

    def __init__(self, params: HardwareParams) -> None:
        super().__init__(
            {
                "start": In(1),
                "kernel_h": In(KERNEL_BITS),
                "kernel_w": In(COLUMN_BITS),
                "valid": In(1),
                "word": In(8 * params.word_bytes),
                "write": Out(constant_write(params)),
                "weights_loaded": Out(1),
                "loaded": Out(1),
            }
        )

    @staticmethod
    def model(kernel_h: int, kernel_w: int) -> Iterator[tuple[str, int, int]]:
        """For each word: its kind, its kernel row or group, and the column of weights."""
        for number in range(constant_words(kernel_h, kernel_w)):
            row, column = divmod(number, kernel_w)
            if row < kernel_h:
                yield "weights", row, TAPS - kernel_w + column
            else:
                kind, group = divmod(number - kernel_h * kernel_w, GROUPS)
                yield ("biases", "scales")[kind], group, 0

    def elaborate(self, platform: object) -> Module:
        """Counters over kernel columns, rows and groups."""
        m = Module()
        first, column = Signal(TAPS), Signal(TAPS, reset_less=True)
        row = Signal(KERNEL_BITS)
        rows = DownCounter(KERNEL_BITS, "rows")
        number = Signal(CHANNEL_WORDS_LOG2)
        loaded = Signal()
        write = output_register(m, self.write, "write_register")
        weights, channels = self.valid & ~self.weights_loaded, self.valid & self.weights_loaded
        enables = Signal(TAPS + 2)
        m.d.comb += [first[k].eq(self.kernel_w == TAPS - k) for k in range(TAPS)]
        m.d.comb += self.loaded.eq(loaded | (channels & number.all()))
        m.d.comb += Cat(self.write.weights, self.write.biases, self.write.scales).eq(enables)
        m.d.sync += [
            enables.eq(Cat(column & weights.replicate(TAPS), channels & ~number[-1], channels & number[-1])),
            write.row.eq(row),
            write.group.eq(number[:-1]),
            write.word.eq(self.word),
        ]
        with m.If(self.start):
            m.d.sync += [column.eq(first), row.eq(0), number.eq(0), self.weights_loaded.eq(0), loaded.eq(0)]
            rows.load(m, self.kernel_h)
        with m.Elif(channels):
            m.d.sync += [number.eq(number + 1), loaded.eq(self.loaded)]
        with m.Elif(weights):
            m.d.sync += column.eq(Mux(column[-1], first, column << 1))
            with m.If(column[-1]):
                m.d.sync += [row.eq(row + 1), self.weights_loaded.eq(rows.last)]
                with m.If(~rows.last):
                    rows.step(m)
        return m
