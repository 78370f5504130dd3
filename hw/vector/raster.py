"""Walks words block by block, line by line, pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind

COUNT_BITS = COORDINATE_BITS + 1
"""A line may be longer than a tensor's: the positions under a sliding window."""
POSITION_BITS = SCRATCH_BITS
"""Every coordinate that the fields can give fits with its sign."""
REPEAT_BITS = BY_KIND[Kind.VCOPY].field("up_h").width
STRIDE_BITS = BY_KIND[Kind.VMAX].field("stride_h").width
WARM_BITS = 3

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
        "warm": WARM_BITS,
    }
)
"""First word; steps in words from block to block, line to line, pixel to pixel; how many there are of each; how often
each line and pixel comes before the next step; the coordinates of the first pixel and their steps; and how many pixels
at the start of each line only fill a sliding window."""

PIXEL_LAYOUT = data.StructLayout(
    {
        "addr": SCRATCH_BITS,
        "line_at": signed(POSITION_BITS),
        "pixel_at": signed(POSITION_BITS),
        "first": unsigned(1),
        "warm": unsigned(1),
    }
)
"""A word's address, its coordinates, whether it is the first of its line, and whether it fills the sliding window."""


class RasterWalker(wiring.Component):
    """Gives the words of a job in order, one a cycle.

    Members
    -------
    config
        What to walk; must hold from `start` until the last word is taken.
    start
        Begin; the first word is on offer `LATENCY` cycles later.
    o
        The words.
    active
        There are words to come.
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
        self._blocks = DownCounter(RASTER_LAYOUT["blocks"].width, "blocks")
        self._lines = DownCounter(COUNT_BITS, "lines")
        self._pixels = DownCounter(COUNT_BITS, "pixels")
        self._line_repeats = DownCounter(REPEAT_BITS, "line_repeats")
        self._pixel_repeats = DownCounter(REPEAT_BITS, "pixel_repeats")
        self._word = Signal(PIXEL_LAYOUT, reset_less=True)
        self._plane_addr = Signal(SCRATCH_BITS, reset_less=True)
        self._line_addr = Signal(SCRATCH_BITS, reset_less=True)
        self._cold = Signal(WARM_BITS)

    @staticmethod
    def model(config: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """The words that `o` gives."""
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
                        "warm": int(pixel >= c["warm"]),
                    }

    def elaborate(self, platform: object) -> Module:
        """Three nested loops: the innermost that is not at its end steps, those within it begin anew."""
        m = Module()
        word, config = self._word, self.config
        m.d.comb += [self.o.valid.eq(self.active), self.o.payload.eq(word), word.warm.eq(self._cold == 0)]
        with m.If(self.active & self.o.ready):
            with m.If(~self._pixels.last):
                self._next_pixel(m)
            with m.Elif(~self._lines.last):
                self._next_line(m)
            with m.Elif(~self._blocks.last):
                self._blocks.step(m)
                self._begin_block(m, self._plane_addr + config.plane)
            with m.Else():
                m.d.sync += self.active.eq(0)
        with m.If(self.start):
            m.d.sync += self.active.eq(1)
            self._blocks.load(m, config.blocks)
            self._begin_block(m, config.base)
        return m

    def _begin_block(self, m: Module, addr: Value) -> None:
        m.d.sync += [self._plane_addr.eq(addr), self._word.line_at.eq(self.config.line_at)]
        self._lines.load(m, self.config.lines)
        self._line_repeats.load(m, self.config.line_repeat)
        self._begin_line(m, addr)

    def _begin_line(self, m: Module, addr: Value) -> None:
        m.d.sync += [
            self._line_addr.eq(addr),
            self._cold.eq(self.config.warm),
            self._word.addr.eq(addr),
            self._word.pixel_at.eq(self.config.pixel_at),
            self._word.first.eq(1),
        ]
        self._pixels.load(m, self.config.pixels)
        self._pixel_repeats.load(m, self.config.pixel_repeat)

    def _next_line(self, m: Module) -> None:
        self._lines.step(m)
        with m.If(~self._line_repeats.last):
            self._line_repeats.step(m)
            self._begin_line(m, self._line_addr)
        with m.Else():
            m.d.sync += self._word.line_at.eq(self._word.line_at + self.config.line_stride)
            self._line_repeats.load(m, self.config.line_repeat)
            self._begin_line(m, self._line_addr + self.config.line)

    def _next_pixel(self, m: Module) -> None:
        self._pixels.step(m)
        m.d.sync += self._word.first.eq(0)
        with m.If(self._cold != 0):
            m.d.sync += self._cold.eq(self._cold - 1)
        with m.If(~self._pixel_repeats.last):
            self._pixel_repeats.step(m)
        with m.Else():
            self._pixel_repeats.load(m, self.config.pixel_repeat)
            m.d.sync += [
                self._word.addr.eq(self._word.addr + self.config.step),
                self._word.pixel_at.eq(self._word.pixel_at + self.config.pixel_stride),
            ]
