"""Computes the walkers' configurations from an operation: origins, steps, counts, sliding windows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.spec.norm import CONSTANT_WORDS
from intloom.hw.spec.norm import PASSES as NORM_PASSES
from intloom.hw.spec.softmax import PASSES
from intloom.hw.spec.vector_depthwise import TAPS, constant_words
from intloom.hw.vector.operation import OPERATION_LAYOUT
from intloom.hw.vector.pool import SLIDE_TAPS
from intloom.hw.vector.raster_walker import RASTER_LAYOUT
from intloom.hw.vector.window_walker import WINDOW_LAYOUT


class RasterSetup(wiring.Component):
    """Derives the raster and window configurations of one operation.

    Softmax and normalization take a pixel's blocks as a window of one column, and write them pixel by pixel. A Softmax
    visits each pixel `PASSES` times, a normalization each line twice. A maximum over 2 to `SLIDE_TAPS` pixels along one
    axis, at stride 1, uses a sliding window: lines run along that axis and are longer by the overlap of neighboring
    windows. All other operations run row by row. Operand B of a depthwise convolution or of a normalization is one
    line, its constants; operand A of the former has a walker of its own.

    Members
    -------
    operation
        The decoded instruction.
    a, window, b, out
        Configurations of the walkers.
    slide, link
        For `Pool`.

    Handshake
    ---------
    None: all outputs are levels.

    Timing
    ------
    From `operation` stable to all outputs stable: `LATENCY` = 3 cycles.

    Requirements
    ------------
    `operation` is stable until the walkers have finished.

    Reset and faults
    ----------------
    Data registers are not reset, except for direction and overlap. There are no faults.
    """

    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "operation": In(OPERATION_LAYOUT),
                "a": Out(RASTER_LAYOUT),
                "window": Out(WINDOW_LAYOUT),
                "b": Out(RASTER_LAYOUT),
                "out": Out(RASTER_LAYOUT),
                "slide": Out(1),
                "link": Out(range(SLIDE_TAPS)),
            }
        )

    @staticmethod
    def model(operation: Mapping[str, int]) -> Iterator[tuple[int, list[tuple[int, bool]], int]]:
        """For each output word: its address, its window, and the address of its second operand.

        A window lists the address of each of its words and whether that word lies inside the input.
        """
        j, wrap = operation, 1 << SCRATCH_BITS
        if j["channels"]:
            yield from RasterSetup._channels_model(operation)
            return
        for block, y, x in product(range(j["blocks"]), range(j["out_h"]), range(j["out_w"])):
            out = j["out_base"] + block * j["out_plane"] + y * j["out_row"] + x * j["out_x"]
            b = j["b_base"] + block * j["b_plane"] + y * j["b_row"] + x
            plane = j["a_base"] + block * j["a_plane"]
            window = []
            if j["bounded"]:
                for ky, kx in product(range(j["kernel_h"]), range(j["kernel_w"])):
                    iy, ix = j["iy0"] + y * j["stride_h"] + ky, j["ix0"] + x * j["stride_w"] + kx
                    inside = 0 <= iy < j["in_h"] and 0 <= ix < j["in_w"]
                    window.append(((plane + iy * j["a_row"] + ix) % wrap, inside))
            else:
                at = plane + y // j["up_h"] * j["a_row"] + x // j["up_w"] * j["a_x"]
                window.append((at % wrap, True))
            yield out % wrap, window, b % wrap

    @staticmethod
    def _channels_model(operation: Mapping[str, int]) -> Iterator[tuple[int, list[tuple[int, bool]], int]]:
        """The window of a word is all words of its pixel."""
        j, wrap = operation, 1 << SCRATCH_BITS
        for y, x, block in product(range(j["out_h"]), range(j["out_w"]), range(j["blocks"])):
            out = j["out_base"] + block * j["out_plane"] + y * j["out_row"] + x * j["out_x"]
            at = j["a_base"] + y * j["a_row"] + x
            yield out % wrap, [((at + k * j["a_plane"]) % wrap, True) for k in range(j["blocks"])], 0

    def elaborate(self, platform: object) -> Module:
        """Products and direction in two stages, then the configurations."""
        m = Module()
        self._down = Signal()
        self._slide = Signal()
        self._overlap = Signal(range(SLIDE_TAPS))
        self._corner = Signal(SCRATCH_BITS, reset_less=True)
        self._origin = Signal(SCRATCH_BITS, reset_less=True)
        self._row_step = Signal(SCRATCH_BITS, reset_less=True)
        self._a = Signal(RASTER_LAYOUT, reset_less=True)
        self._out = Signal(RASTER_LAYOUT, reset_less=True)
        self._window = Signal(WINDOW_LAYOUT, reset_less=True)
        operation = self.operation
        along = self._slides(operation.kernel_w, operation.kernel_h, operation.stride_w)
        down = self._slides(operation.kernel_h, operation.kernel_w, operation.stride_h)
        m.d.sync += [
            self._down.eq(down),
            self._slide.eq(along | down),
            self._overlap.eq(Mux(along, operation.kernel_w - 1, Mux(down, operation.kernel_h - 1, 0))),
            # Added here, beside the product, so that the base needs only one more addition.
            self._corner.eq(operation.a_base + operation.ix0),
        ]
        self._multiply(m)
        m.d.comb += [self.slide.eq(self._slide), self.link.eq(self._overlap)]
        m.d.comb += [self.a.eq(self._a), self.window.eq(self._window), self.out.eq(self._out)]
        self._plan_a(m)
        self._plan_window(m)
        self._plan_b(m)
        self._plan_out(m)
        return m

    def _multiply(self, m: Module) -> None:
        """Factor and product registers feed nothing else, so that an FPGA multiplier absorbs them as its own."""
        operation = self.operation
        row = Signal.like(operation.a_row, name="row", reset_less=True)
        top = Signal.like(operation.iy0, name="top", reset_less=True)
        stride = Signal.like(operation.stride_h, name="stride", reset_less=True)
        m.d.sync += [
            row.eq(operation.a_row),
            top.eq(operation.iy0),
            stride.eq(operation.stride_h),
            self._origin.eq(top * row),
            self._row_step.eq(stride * row),
        ]

    def _slides(self, length: Value, breadth: Value, stride: Value) -> Value:
        operation = self.operation
        # Only stride 1: otherwise neighboring windows do not differ by one word. Not for averages: the chain holds
        # maxima, and there is one sum per lane.
        fits = (length >= 2) & (length <= SLIDE_TAPS) & (breadth == 1) & (stride == 1)
        return operation.bounded & ~operation.average & fits

    def _plan_a(self, m: Module) -> None:
        operation, a = self.operation, self._a
        rows = {
            "line": Mux(operation.channels, 1, self._row_step),
            "lines": Mux(operation.norm, NORM_PASSES, Mux(operation.softmax, operation.out_w, operation.out_h)),
            "line_at": operation.iy0,
            "line_stride": operation.stride_h,
        }
        columns = {
            "line": operation.stride_w,
            "lines": operation.out_w,
            "line_at": operation.ix0,
            "line_stride": operation.stride_w,
        }
        across = {
            "step": Mux(operation.bounded, operation.stride_w, operation.a_x),
            "pixel_at": operation.ix0,
            "pixel_stride": operation.stride_w,
        }
        downward = {"step": operation.a_row, "pixel_at": operation.iy0, "pixel_stride": operation.stride_h}
        m.d.sync += [
            a.base.eq(self._corner + self._origin),
            a.pixels.eq(
                Mux(operation.softmax, PASSES, Mux(self._down, operation.out_h, operation.out_w) + self._overlap)
            ),
        ]
        m.d.comb += [
            a.plane.eq(Mux(operation.channels, operation.a_row, operation.a_plane)),
            a.blocks.eq(Mux(operation.channels, operation.out_h, operation.blocks)),
            # Never the next line: the passes of one follow each other.
            a.line_repeat.eq(Mux(operation.norm, NORM_PASSES, operation.up_h)),
            # Never the next pixel: the passes of one follow each other.
            a.pixel_repeat.eq(Mux(operation.softmax, PASSES, operation.up_w)),
            a.prefill.eq(self._overlap),
        ]
        self._select_direction(m, a, rows | across, columns | downward)

    def _plan_window(self, m: Module) -> None:
        operation, window = self.operation, self._window
        m.d.comb += [
            window.line.eq(Mux(operation.channels, operation.a_plane, operation.a_row)),
            window.bounded.eq(operation.bounded),
            window.slide.eq(self._slide),
        ]
        m.d.comb += [
            window.lines.eq(Mux(self._slide, 1, operation.kernel_h)),
            window.pixels.eq(Mux(self._slide, 1, operation.kernel_w)),
        ]
        self._select_direction(
            m,
            window,
            {"line_limit": operation.in_h, "pixel_limit": operation.in_w},
            {"line_limit": operation.in_w, "pixel_limit": operation.in_h},
        )

    def _plan_b(self, m: Module) -> None:
        operation, b = self.operation, self.b
        constants = Signal(reset_less=True)
        words = Signal(range(CONSTANT_WORDS << len(operation.kernel_h)), reset_less=True)
        # Additions, not a product: Yosys would take a multiplier of the FPGA for it.
        weights = sum(
            (Mux(operation.kernel_w[k], operation.kernel_h << k, 0) for k in range(TAPS.bit_length())), start=Const(0)
        )
        m.d.sync += [
            constants.eq(operation.depthwise | operation.norm),
            words.eq(Mux(operation.norm, operation.blocks * CONSTANT_WORDS, weights + constant_words(0, 0))),
        ]
        m.d.comb += [
            b.base.eq(operation.b_base),
            b.plane.eq(operation.b_plane),
            b.line.eq(operation.b_row),
            b.step.eq(1),
            b.blocks.eq(Mux(constants, 1, operation.blocks)),
            b.lines.eq(Mux(constants, 1, operation.out_h)),
            b.pixels.eq(Mux(constants, words, operation.out_w)),
        ]
        self._visit_once(m, b)

    def _plan_out(self, m: Module) -> None:
        operation, out = self.operation, self._out
        m.d.comb += [
            out.base.eq(operation.out_base),
            out.plane.eq(Mux(operation.channels, operation.out_row, operation.out_plane)),
            out.blocks.eq(Mux(operation.channels, operation.out_h, operation.blocks)),
        ]
        self._visit_once(m, out)
        channels = operation.channels
        self._select_direction(
            m,
            out,
            {
                "line": Mux(channels, operation.out_x, operation.out_row),
                "lines": Mux(channels, operation.out_w, operation.out_h),
                "step": Mux(channels, operation.out_plane, operation.out_x),
                "pixels": Mux(channels, operation.blocks, operation.out_w),
            },
            {"line": operation.out_x, "lines": operation.out_w, "step": operation.out_row, "pixels": operation.out_h},
        )

    def _visit_once(self, m: Module, raster: data.View[data.StructLayout]) -> None:
        """Each word once; coordinates are unused."""
        m.d.comb += [raster.line_repeat.eq(1), raster.pixel_repeat.eq(1)]

    def _select_direction(
        self,
        m: Module,
        target: data.View[data.StructLayout],
        rowwise: dict[str, Value],
        columnwise: dict[str, Value],
    ) -> None:
        # Selected into registers: `_down` fans out to all these multiplexers, which stay out of the walkers' adders.
        m.d.sync += [target[name].eq(Mux(self._down, columnwise[name], value)) for name, value in rowwise.items()]
