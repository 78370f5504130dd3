"""From a job's fields to what the walkers need: origins, steps and counts, and whether windows slide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.spec.isa import SCRATCH_BITS
from intloom.hw.vector.job import JOB_LAYOUT
from intloom.hw.vector.pool import SLIDE_TAPS
from intloom.hw.vector.raster import RASTER_LAYOUT
from intloom.hw.vector.window import WINDOW_LAYOUT


class Planner(wiring.Component):
    """Plans a job; the plan is there `LATENCY` cycles after the job and holds as long as it.

    Maxima of 2 to `SLIDE_TAPS` pixels along one axis, at stride 1, slide: lines are walked along that axis, with as
    many pixels more as windows overlap. Everything else is walked row by row.

    Members
    -------
    job
        The job.
    a, window, b, out
        What to walk.
    slide, link
        For `Pool`.
    """

    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "job": In(JOB_LAYOUT),
                "a": Out(RASTER_LAYOUT),
                "window": Out(WINDOW_LAYOUT),
                "b": Out(RASTER_LAYOUT),
                "out": Out(RASTER_LAYOUT),
                "slide": Out(1),
                "link": Out(range(SLIDE_TAPS)),
            }
        )
        self._down = Signal()
        self._slide = Signal()
        self._overlap = Signal(range(SLIDE_TAPS))
        self._corner = Signal(SCRATCH_BITS, reset_less=True)
        self._origin = Signal(SCRATCH_BITS, reset_less=True)
        self._row_step = Signal(SCRATCH_BITS, reset_less=True)
        self._a = Signal(RASTER_LAYOUT, reset_less=True)
        self._out = Signal(RASTER_LAYOUT, reset_less=True)
        self._window = Signal(WINDOW_LAYOUT, reset_less=True)

    @staticmethod
    def model(job: Mapping[str, int]) -> Iterator[tuple[int, list[tuple[int, bool]], int]]:
        """What walkers must give under a job's plan: each output word's address, its window, and its second operand's.

        A window is the address of every word in it, and whether that lies inside the input.
        """
        j, wrap = job, 1 << SCRATCH_BITS
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

    def elaborate(self, platform: object) -> Module:
        """Products and the direction first, in two stages, then the plans."""
        m = Module()
        job = self.job
        along = self._slides(job.kernel_w, job.kernel_h, job.stride_w)
        down = self._slides(job.kernel_h, job.kernel_w, job.stride_h)
        m.d.sync += [
            self._down.eq(down),
            self._slide.eq(along | down),
            self._overlap.eq(Mux(along, job.kernel_w - 1, Mux(down, job.kernel_h - 1, 0))),
            self._corner.eq(job.a_base + job.ix0),
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
        """Multipliers have registers of their own on an FPGA: these end up in them, so that they serve nothing else."""
        job = self.job
        row = Signal.like(job.a_row, name="row", reset_less=True)
        top = Signal.like(job.iy0, name="top", reset_less=True)
        stride = Signal.like(job.stride_h, name="stride", reset_less=True)
        m.d.sync += [
            row.eq(job.a_row),
            top.eq(job.iy0),
            stride.eq(job.stride_h),
            self._origin.eq(top * row),
            self._row_step.eq(stride * row),
        ]

    def _slides(self, length: Value, breadth: Value, stride: Value) -> Value:
        job = self.job
        fits = (length >= 2) & (length <= SLIDE_TAPS) & (breadth == 1) & (stride == 1)
        return job.bounded & ~job.average & fits

    def _plan_a(self, m: Module) -> None:
        job, a = self.job, self._a
        rows = {"line": self._row_step, "lines": job.out_h, "line_at": job.iy0, "line_stride": job.stride_h}
        columns = {"line": job.stride_w, "lines": job.out_w, "line_at": job.ix0, "line_stride": job.stride_w}
        across = {"step": Mux(job.bounded, job.stride_w, job.a_x), "pixel_at": job.ix0, "pixel_stride": job.stride_w}
        downward = {"step": job.a_row, "pixel_at": job.iy0, "pixel_stride": job.stride_h}
        m.d.sync += [
            a.base.eq(self._corner + self._origin),
            a.pixels.eq(Mux(self._down, job.out_h, job.out_w) + self._overlap),
        ]
        m.d.comb += [
            a.plane.eq(job.a_plane),
            a.blocks.eq(job.blocks),
            a.line_repeat.eq(job.up_h),
            a.pixel_repeat.eq(job.up_w),
            a.warm.eq(self._overlap),
        ]
        self._choose(m, a, rows | across, columns | downward)

    def _plan_window(self, m: Module) -> None:
        job, window = self.job, self._window
        m.d.comb += [window.line.eq(job.a_row), window.bounded.eq(job.bounded), window.slide.eq(self._slide)]
        m.d.comb += [
            window.lines.eq(Mux(self._slide, 1, job.kernel_h)),
            window.pixels.eq(Mux(self._slide, 1, job.kernel_w)),
        ]
        self._choose(
            m,
            window,
            {"line_limit": job.in_h, "pixel_limit": job.in_w},
            {"line_limit": job.in_w, "pixel_limit": job.in_h},
        )

    def _plan_b(self, m: Module) -> None:
        job, b = self.job, self.b
        m.d.comb += [
            b.base.eq(job.b_base),
            b.plane.eq(job.b_plane),
            b.line.eq(job.b_row),
            b.step.eq(1),
            b.blocks.eq(job.blocks),
            b.lines.eq(job.out_h),
            b.pixels.eq(job.out_w),
        ]
        self._single(m, b)

    def _plan_out(self, m: Module) -> None:
        job, out = self.job, self._out
        m.d.comb += [out.base.eq(job.out_base), out.plane.eq(job.out_plane), out.blocks.eq(job.blocks)]
        self._single(m, out)
        self._choose(
            m,
            out,
            {"line": job.out_row, "lines": job.out_h, "step": job.out_x, "pixels": job.out_w},
            {"line": job.out_x, "lines": job.out_w, "step": job.out_row, "pixels": job.out_h},
        )

    def _single(self, m: Module, raster: data.View[data.StructLayout]) -> None:
        """Every word once, coordinates of no interest."""
        m.d.comb += [raster.line_repeat.eq(1), raster.pixel_repeat.eq(1)]

    def _choose(
        self,
        m: Module,
        target: data.View[data.StructLayout],
        rowwise: dict[str, Value],
        columnwise: dict[str, Value],
    ) -> None:
        m.d.sync += [target[name].eq(Mux(self._down, columnwise[name], value)) for name, value in rowwise.items()]
