"""Expands each pixel of a raster into the words of its window."""

from collections.abc import Iterator, Mapping

from amaranth.hdl import Module, Signal, Value, signed, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.down_counter import DownCounter
from intloom.hw.spec.isa import BY_KIND, COORDINATE_BITS, SCRATCH_BITS, Kind
from intloom.hw.vector.raster_walker import PIXEL_LAYOUT, POSITION_BITS

KERNEL_BITS = BY_KIND[Kind.VMAX].field("kernel_h").width

WINDOW_LAYOUT = data.StructLayout(
    {
        "lines": KERNEL_BITS,
        "pixels": KERNEL_BITS,
        "line": SCRATCH_BITS,
        "slide": unsigned(1),
        "bounded": unsigned(1),
        "line_limit": COORDINATE_BITS,
        "pixel_limit": COORDINATE_BITS,
    }
)
"""Lines and pixels of a window; address step between its lines; whether one-word windows slide along lines; and, if
`bounded`, the input's lines and pixels."""

TAP_LAYOUT = data.StructLayout({"first": unsigned(1), "last": unsigned(1)})
"""A word's position in its window: it opens the window, it completes it."""

FETCH_LAYOUT = data.StructLayout({"addr": SCRATCH_BITS, "inside": unsigned(1), "tap": TAP_LAYOUT})
"""A word to read; if not `inside`, a position outside the input that is filled and not read."""


class WindowWalker(wiring.Component):
    """Walks the words of each pixel's window, line by line.

    With sliding windows each pixel is one word: the first word of a line opens a window, and every word with
    `window_full` completes one.

    Members
    -------
    config
        The window.
    i
        Pixels: upper left words of windows.
    o
        The words of their windows.

    Handshake
    ---------
    `i` and `o` are streams. A pixel is taken with the last word of the previous window, so `i.ready` depends on
    `o.ready`.

    Timing
    ------
    One word a cycle. From a pixel taken to its first word: `LATENCY` = 1 cycle.

    Requirements
    ------------
    `config` is stable while words remain; lines and pixels are at least 1.

    Reset and faults
    ----------------
    Soft reset drops the current window. There are no faults.
    """

    LATENCY = 1

    def __init__(self) -> None:
        super().__init__(
            {
                "config": In(WINDOW_LAYOUT),
                "i": In(stream.Signature(PIXEL_LAYOUT)),
                "o": Out(stream.Signature(FETCH_LAYOUT)),
            }
        )

    @staticmethod
    def model(config: Mapping[str, int], pixel: Mapping[str, int]) -> Iterator[tuple[int, bool, bool, bool]]:
        """The words of a pixel's window: address, inside, first, last."""
        c = config
        for line in range(c["lines"]):
            for column in range(c["pixels"]):
                at = (pixel["line_at"] + line, pixel["pixel_at"] + column)
                inside = 0 <= at[0] < c["line_limit"] and 0 <= at[1] < c["pixel_limit"]
                opens = line == column == 0
                closes = line == c["lines"] - 1 and column == c["pixels"] - 1
                yield (
                    (pixel["addr"] + line * c["line"] + column) % (1 << SCRATCH_BITS),
                    bool(inside or not c["bounded"]),
                    bool(opens and (pixel["first"] or not c["slide"])),
                    bool(closes and pixel["window_full"]),
                )

    def elaborate(self, platform: object) -> Module:
        """Two nested loops; the next pixel is taken with the window's last word."""
        m = Module()
        self._pixel = Signal(PIXEL_LAYOUT, reset_less=True)
        self._addr = Signal(SCRATCH_BITS, reset_less=True)
        self._line_addr = Signal(SCRATCH_BITS, reset_less=True)
        self._line_at = Signal(signed(POSITION_BITS), reset_less=True)
        self._pixel_at = Signal(signed(POSITION_BITS), reset_less=True)
        self._lines = DownCounter(KERNEL_BITS, "lines")
        self._pixels = DownCounter(KERNEL_BITS, "pixels")
        self._first = Signal()
        valid = Signal()
        last = Signal()
        m.d.comb += [
            last.eq(self._lines.last & self._pixels.last),
            self.o.valid.eq(valid),
            self.o.payload.addr.eq(self._addr),
            self.o.payload.inside.eq(self._inside()),
            self.o.payload.tap.first.eq(self._first & (self._pixel.first | ~self.config.slide)),
            self.o.payload.tap.last.eq(last & self._pixel.window_full),
            self.i.ready.eq(~valid | (self.o.ready & last)),
        ]
        # Loaded whether valid or not: `valid` qualifies the registers, and `i.valid` is no clock enable.
        with m.If(self.i.ready):
            m.d.sync += valid.eq(self.i.valid)
            self._open(m)
        with m.Elif(self.o.ready):
            self._step(m)
        return m

    def _inside(self) -> Value:
        """Unsigned comparisons: a negative coordinate is larger than any limit."""
        # One comparison per axis instead of two.
        line_ok = self._line_at.as_unsigned() < self.config.line_limit
        pixel_ok = self._pixel_at.as_unsigned() < self.config.pixel_limit
        return ~self.config.bounded | (line_ok & pixel_ok)

    def _open(self, m: Module) -> None:
        pixel = self.i.payload
        m.d.sync += [
            self._pixel.eq(pixel),
            self._addr.eq(pixel.addr),
            self._line_addr.eq(pixel.addr),
            self._line_at.eq(pixel.line_at),
            self._pixel_at.eq(pixel.pixel_at),
            self._first.eq(1),
        ]
        self._lines.load(m, self.config.lines)
        self._pixels.load(m, self.config.pixels)

    def _step(self, m: Module) -> None:
        m.d.sync += self._first.eq(0)
        with m.If(~self._pixels.last):
            self._pixels.step(m)
            m.d.sync += [
                self._addr.eq(self._addr + 1),
                self._pixel_at.eq(self._pixel_at + 1),
            ]
        with m.Else():
            self._pixels.load(m, self.config.pixels)
            self._lines.step(m)
            m.d.sync += [
                self._addr.eq(self._line_addr + self.config.line),
                self._line_addr.eq(self._line_addr + self.config.line),
                self._pixel_at.eq(self._pixel.pixel_at),
                self._line_at.eq(self._line_at + 1),
            ]
