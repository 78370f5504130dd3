"""Nested address counters over blocks, lines and pixels."""

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Mux, Signal, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind

COUNT_BITS = COORDINATE_BITS + 1
"""One bit more than a coordinate: under a sliding window a line is longer than the tensor's."""
POSITION_BITS = SCRATCH_BITS
"""Holds every coordinate that the fields can produce, with its sign."""
REPEAT_BITS = BY_KIND[Kind.VCOPY].field("up_h").width
STRIDE_BITS = BY_KIND[Kind.VMAX].field("stride_h").width
PREFILL_BITS = 3

RASTER_LAYOUT = data.StructLayout(
    {
        "base": SCRATCH_BITS,
        "plane": SCRATCH_BITS,
        "line": SCRATCH_BITS,
        "step": SCRATCH_BITS,
        "blocks": BY_KIND[Kind.VCOPY].field("blocks").width,
        "lines": COUNT_BITS,
        "pixels": COUNT_BITS,
        "line_repeat": REPEAT_BITS,
        "pixel_repeat": REPEAT_BITS,
        "line_at": signed(POSITION_BITS),
        "pixel_at": signed(POSITION_BITS),
        "line_stride": STRIDE_BITS,
        "pixel_stride": STRIDE_BITS,
        "prefill": PREFILL_BITS,
    }
)
"""First address; address steps between blocks, lines and pixels; their counts; repeats of each line and pixel
before the next step; coordinates of the first pixel and their steps; pixels at the start of each line that only fill a
sliding window."""

PIXEL_LAYOUT = data.StructLayout(
    {
        "addr": SCRATCH_BITS,
        "line_at": signed(POSITION_BITS),
        "pixel_at": signed(POSITION_BITS),
        "first": unsigned(1),
        "window_full": unsigned(1),
    }
)
"""A word's address and coordinates, whether it opens its line, and whether the sliding window is full."""


class RasterWalker(wiring.Component):
    """Walks the words of an operation in order.

    Members
    -------
    config
        The raster.
    start
        Begin; only while `active` is low.
    o
        The words.
    active
        Words remain.

    Handshake
    ---------
    `o` is a stream; `o.valid` equals `active` and never waits for `o.ready`.

    Timing
    ------
    One word a cycle. From `start` to the first word: `LATENCY` = 1 cycle. `active` falls in the cycle after the last
    word is taken.

    Requirements
    ------------
    `config` is stable from `start` until the last word is taken; all counts and repeats are at least 1.

    Reset and faults
    ----------------
    Soft reset ends the walk. There are no faults.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "config": In(RASTER_LAYOUT),
                "start": In(1),
                "o": Out(stream.Signature(PIXEL_LAYOUT)),
                "active": Out(1),
            }
        )

    @staticmethod
    def model(config: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The words on `o`, in order."""
        c = config
        for block in range(c["blocks"]):
            for line in range(c["lines"]):
                for pixel in range(c["pixels"]):
                    row, column = line // c["line_repeat"], pixel // c["pixel_repeat"]
                    addr = c["base"] + block * c["plane"] + row * c["line"] + column * c["step"]
                    yield {
                        "addr": addr % (1 << SCRATCH_BITS),
                        "line_at": c["line_at"] + row * c["line_stride"],
                        "pixel_at": c["pixel_at"] + column * c["pixel_stride"],
                        "first": int(pixel == 0),
                        "window_full": int(pixel >= c["prefill"]),
                    }

    def elaborate(self, platform: object) -> Module:
        """Three nested loops: the innermost unfinished loop steps and the loops inside it restart.

        One adder serves all loops: the address that it gives goes to every register whose loop begins.
        """
        m = Module()
        self._blocks = DownCounter(RASTER_LAYOUT["blocks"].width, "blocks")
        self._lines = DownCounter(COUNT_BITS, "lines")
        self._pixels = DownCounter(COUNT_BITS, "pixels")
        self._line_repeats = DownCounter(REPEAT_BITS, "line_repeats")
        self._pixel_repeats = DownCounter(REPEAT_BITS, "pixel_repeats")
        self._word = Signal(PIXEL_LAYOUT, reset_less=True)
        # One register per loop with the address at which its iteration began: no loop multiplies or subtracts.
        self._plane_addr = Signal(SCRATCH_BITS, reset_less=True)
        self._line_addr = Signal(SCRATCH_BITS, reset_less=True)
        self._prefill = Signal(PREFILL_BITS)
        self._next_addr = Signal(SCRATCH_BITS, name="next_addr")
        word, config = self._word, self.config
        ends, block_ends = self._pixels.last, self._lines.last
        origin = Mux(ends, Mux(block_ends, self._plane_addr, self._line_addr), word.addr)
        line = Mux(self._line_repeats.last, config.line, 0)
        distance = Mux(ends, Mux(block_ends, config.plane, line), config.step)
        m.d.comb += self._next_addr.eq(Mux(self.start, config.base, origin + distance))
        m.d.comb += [self.o.valid.eq(self.active), self.o.payload.eq(word), word.window_full.eq(self._prefill == 0)]
        with m.If(self.active & self.o.ready):
            with m.If(~self._pixels.last):
                self._next_pixel(m)
            with m.Elif(~self._lines.last):
                self._next_line(m)
            with m.Elif(~self._blocks.last):
                self._begin_block(m)
            with m.Else():
                m.d.sync += self.active.eq(0)
        with m.If(self.start):
            m.d.sync += self.active.eq(1)
            self._begin_block(m)
        self._count(m)
        return m

    def _count(self, m: Module) -> None:
        """Each counter is loaded under one condition: a carry chain of ECP5 contains one multiplexer."""
        counts = (
            (self._pixels, self.config.pixels),
            (self._lines, self.config.lines),
            (self._blocks, self.config.blocks),
        )
        steps = self.active & self.o.ready
        for counter, count in counts:
            ends = steps & counter.last
            # The blocks begin with a walk alone; after the last one nothing reads their count.
            with m.If(self.start | ends):
                counter.load(m, count)
            with m.Elif(steps):
                counter.step(m)
            steps = ends

    def _begin_block(self, m: Module) -> None:
        m.d.sync += [self._plane_addr.eq(self._next_addr), self._word.line_at.eq(self.config.line_at)]
        self._line_repeats.load(m, self.config.line_repeat)
        self._begin_line(m)

    def _begin_line(self, m: Module) -> None:
        m.d.sync += [
            self._line_addr.eq(self._next_addr),
            self._prefill.eq(self.config.prefill),
            self._word.addr.eq(self._next_addr),
            self._word.pixel_at.eq(self.config.pixel_at),
            self._word.first.eq(1),
        ]
        self._pixel_repeats.load(m, self.config.pixel_repeat)

    def _next_line(self, m: Module) -> None:
        with m.If(~self._line_repeats.last):
            self._line_repeats.step(m)
        with m.Else():
            m.d.sync += self._word.line_at.eq(self._word.line_at + self.config.line_stride)
            self._line_repeats.load(m, self.config.line_repeat)
        self._begin_line(m)

    def _next_pixel(self, m: Module) -> None:
        m.d.sync += self._word.first.eq(0)
        with m.If(self._prefill != 0):
            m.d.sync += self._prefill.eq(self._prefill - 1)
        with m.If(~self._pixel_repeats.last):
            self._pixel_repeats.step(m)
        with m.Else():
            self._pixel_repeats.load(m, self.config.pixel_repeat)
            m.d.sync += [
                self._word.addr.eq(self._next_addr),
                self._word.pixel_at.eq(self._word.pixel_at + self.config.pixel_stride),
            ]
