"""Walks the input words of a depthwise convolution, column by column under each output row."""

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Mux, Shape, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.decode import field_shape
from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind
from intloom.hw.spec.vector_depthwise import walk_columns
from intloom.hw.vector.window_walker import FETCH_LAYOUT

_SPEC = BY_KIND[Kind.VDEPTHWISE]
_FIELDS = (
    "a_base", "a_row_off", "a_ring", "a_row", "in_h", "in_w", "iy0", "ix0", "kernel_h", "kernel_w", "stride_h",
    "stride_w", "out_h", "out_w",
)  # fmt: skip

DEPTHWISE_LAYOUT = data.StructLayout({name: field_shape(_SPEC.field(name)) for name in _FIELDS})
"""The fields of VDEPTHWISE that say which words it reads."""

_POSITION = signed(COORDINATE_BITS + 3)
"""A row or column. One that needs more bits, up to five times the largest input, turns negative: outside as well."""
_AHEAD_BITS = max(Shape.cast(DEPTHWISE_LAYOUT.members[name]).width for name in ("kernel_w", "stride_w"))


class DepthwiseWalker(wiring.Component):
    """Walks the words under each output row: columns from left to right, each from top to bottom.

    The first word of a column has `tap.first`, the last word of a column that completes an output pixel `tap.last`.

    Members
    -------
    config
        The fields of the instruction.
    start
        Begin; only while no word remains.
    o
        The words.

    Handshake
    ---------
    `o` is a stream; `o.valid` does not depend on `o.ready`.

    Timing
    ------
    One word a cycle; an output row takes at least `GROUPS` = 4 cycles. From `start` to the first word: `LATENCY` = 2
    cycles, and `stride_h` - 1 more if an output row has one word.

    Requirements
    ------------
    `config` is stable from `SETUP` = 1 cycle before `start` until the last word is taken. All counts and strides are
    at least 1. In a ring, `a_row_off` is less than `a_ring`, and `a_row` at most `a_ring`.

    Reset and faults
    ----------------
    Soft reset ends the walk. There are no faults.
    """

    LATENCY = 2
    SETUP = 1

    def __init__(self) -> None:
        super().__init__({"config": In(DEPTHWISE_LAYOUT), "start": In(1), "o": Out(stream.Signature(FETCH_LAYOUT))})

    @staticmethod
    def model(config: Mapping[str, int]) -> Iterator[tuple[int, bool, bool, bool]]:
        """Address, inside, first and last of each word; the address of a word that is not inside is never used."""
        c, space = config, 1 << SCRATCH_BITS
        for y in range(c["out_h"]):
            for column in range(walk_columns(c)):
                completed = column - c["kernel_w"] + 1
                ends = completed >= 0 and completed % c["stride_w"] == 0
                for ky in range(c["kernel_h"]):
                    row = y * c["stride_h"] + ky
                    iy, ix = c["iy0"] + row, c["ix0"] + column
                    offset = (c["a_row_off"] + row * c["a_row"]) % (c["a_ring"] or space)
                    yield (
                        (c["a_base"] + offset + ix) % space,
                        0 <= iy < c["in_h"] and 0 <= ix < c["in_w"],
                        ky == 0,
                        ends and ky == c["kernel_h"] - 1,
                    )

    def elaborate(self, platform: object) -> Module:
        """Counters over rows, columns and kernel rows; one cycle later the address and the comparisons."""
        m = Module()
        config = self.config
        self._valid = Signal()
        # The next output row's offset is known; the word is its output row's last.
        self._below_valid, self._row_end = Signal(name="below_valid"), Signal(name="row_end")
        self._first = Signal(reset_less=True)
        self._kernel_rows = DownCounter(len(config.kernel_h), "kernel_rows")
        self._ahead = DownCounter(_AHEAD_BITS, "columns_ahead")
        self._pixels = DownCounter(len(config.out_w), "pixels")
        self._rows = DownCounter(len(config.out_h), "rows")
        # Negative, which never wraps, without a ring.
        self._minus_ring = Signal(SCRATCH_BITS + 1, reset_less=True)
        self._corner = Signal(SCRATCH_BITS, reset_less=True)
        # Offsets of the word, of the output row's first input row, and of that of the next output row.
        self._offset, self._top, self._below = (
            Signal(SCRATCH_BITS, name=name, reset_less=True) for name in ("offset", "top", "below")
        )
        self._column = Signal(SCRATCH_BITS, reset_less=True)
        self._iy, self._ix, self._iy_top = (
            Signal(_POSITION, name=name, reset_less=True) for name in ("iy", "ix", "iy_top")
        )
        m.d.sync += [
            self._minus_ring.eq(Mux(config.a_ring == 0, 1 << SCRATCH_BITS, config.a_row - config.a_ring)),
            self._corner.eq(config.a_base + config.ix0),
        ]
        step, begins = self._control(m)
        self._count(m, step, begins)
        self._locate(m, step, begins)
        self._find_next_row(m, begins)
        return m

    def _control(self, m: Module) -> tuple[Signal, Signal]:
        """Whether the word moves on to the output register, and whether an output row begins."""
        valid, free = Signal(), Signal()
        word = Signal(FETCH_LAYOUT, reset_less=True)
        step, begins = Signal(), Signal()
        m.d.comb += [
            self.o.valid.eq(valid),
            self.o.payload.eq(word),
            free.eq(~valid | self.o.ready),
            self._row_end.eq(self._kernel_rows.last & self._ahead.last & self._pixels.last),
            step.eq(self._valid & free & (self._below_valid | ~self._row_end)),
            begins.eq(self.start | (step & self._row_end & ~self._rows.last)),
        ]
        with m.If(self.start):
            m.d.sync += self._valid.eq(1)
        with m.Elif(step & self._row_end & self._rows.last):
            m.d.sync += self._valid.eq(0)
        with m.If(free):
            m.d.sync += [
                valid.eq(step),
                word.addr.eq(self._column + self._offset),
                # Unsigned comparisons: a negative coordinate is larger than any limit.
                word.inside.eq(
                    (self._iy.as_unsigned() < self.config.in_h) & (self._ix.as_unsigned() < self.config.in_w)
                ),
                word.tap.first.eq(self._first),
                word.tap.last.eq(self._kernel_rows.last & self._ahead.last),
            ]
        return step, begins

    def _count(self, m: Module, step: Signal, begins: Signal) -> None:
        """Kernel rows in a column, columns up to the next output pixel, output pixels in a row, output rows."""
        config = self.config
        with m.If(self.start | (step & self._kernel_rows.last)):
            self._kernel_rows.load(m, config.kernel_h)
            m.d.sync += self._first.eq(1)
        with m.Elif(step):
            self._kernel_rows.step(m)
            m.d.sync += self._first.eq(0)
        with m.If(begins):
            self._ahead.load(m, config.kernel_w)
            self._pixels.load(m, config.out_w)
        with m.Elif(step & self._kernel_rows.last):
            with m.If(self._ahead.last):
                self._ahead.load(m, config.stride_w)
                self._pixels.step(m)
            with m.Else():
                self._ahead.step(m)
        with m.If(self.start):
            self._rows.load(m, config.out_h)
        with m.Elif(begins):
            self._rows.step(m)

    def _locate(self, m: Module, step: Signal, begins: Signal) -> None:
        """Offset of the row, address of the column in row 0, and both coordinates."""
        config = self.config
        with m.If(begins):
            m.d.sync += [
                self._offset.eq(self._below),
                self._top.eq(self._below),
                self._column.eq(self._corner),
                self._ix.eq(config.ix0),
            ]
            row = Signal(_POSITION)
            m.d.comb += row.eq(self._iy_top + config.stride_h)
            with m.If(self._valid):
                m.d.sync += [self._iy.eq(row), self._iy_top.eq(row)]
            with m.Else():
                m.d.sync += [self._iy.eq(config.iy0), self._iy_top.eq(config.iy0)]
        with m.Elif(step & self._kernel_rows.last):
            m.d.sync += [
                self._offset.eq(self._top),
                self._iy.eq(self._iy_top),
                self._column.eq(self._column + 1),
                self._ix.eq(self._ix + 1),
            ]
        with m.Elif(step):
            m.d.sync += [
                self._offset.eq(self._one_row_on(self._offset)),
                self._iy.eq(self._iy + 1),
            ]

    def _one_row_on(self, offset: Signal) -> Value:
        """Both candidates are added in parallel; the sign of the one that has wrapped selects."""
        wrapped = (offset + self._minus_ring)[: SCRATCH_BITS + 1]
        return Mux(wrapped[-1], (offset + self.config.a_row)[:SCRATCH_BITS], wrapped[:-1])

    def _find_next_row(self, m: Module, begins: Signal) -> None:
        """`stride_h` additions, of which the first is made as the output row begins, while its words are walked."""
        config = self.config
        left = Signal.like(config.stride_h, reset_less=True)
        m.d.comb += self._below_valid.eq(left == 0)
        with m.If(~self._valid & ~self.start):
            m.d.sync += self._below.eq(config.a_row_off)
        with m.Elif(begins | ~self._below_valid):
            m.d.sync += self._below.eq(self._one_row_on(self._below))
        with m.If(begins):
            m.d.sync += left.eq(config.stride_h - 1)
        with m.Elif(~self._below_valid):
            m.d.sync += left.eq(left - 1)
