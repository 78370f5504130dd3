"""The vector unit; what its instructions mean stands once more, in plain Python, in the instruction simulator."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import ReadPort, UnitPort, WritePort
from intloom.hw.spec.params import HardwareParams
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.fetch import OperandFetch
from intloom.hw.vector.plan import Planner
from intloom.hw.vector.pool import Pool
from intloom.hw.vector.raster import PIXEL_LAYOUT, RasterWalker
from intloom.hw.vector.sequencer import Sequencer
from intloom.hw.vector.slices import Slicer
from intloom.hw.vector.window import WindowWalker
from intloom.hw.vector.writer import ResultWriter

_RESULT_CYCLES = Slicer.LATENCY + Pool.LATENCY + Datapath.LATENCY + CreditFifo.TURNAROUND
"""From a place reserved for a result to the next that can take it."""


def results_under_way(params: HardwareParams) -> int:
    """Places for results, enough for a slice a cycle."""
    return max(2, 1 << ceil_log2(-(-_RESULT_CYCLES // params.vector_slices)))


class VectorUnit(wiring.Component):
    """Runs the vector instructions one after the other, each at a slice of an output word, or a window's word, a cycle.

    Words flow from two operand queues through a pipeline that never stops into a result queue, in which every word has
    reserved its place before it sets out. So refused requests on any port only slow it down.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    unit
        Instructions and events.
    a, b
        Operands.
    out
        Results.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        port = ReadPort(params.word_bytes)
        super().__init__(
            {"unit": In(UnitPort()), "a": Out(port), "b": Out(port), "out": Out(WritePort(params.word_bytes))}
        )

    def elaborate(self, platform: object) -> Module:
        """Sequence, plan, fetch, compute, write."""
        m = Module()
        params = self._params
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.slicer = slicer = Slicer(params)
        m.submodules.plan = plan = Planner()
        m.submodules.pool = pool = Pool(params)
        m.submodules.datapath = datapath = Datapath(params)
        m.submodules.writer = writer = ResultWriter(params.word_bytes, results_under_way(params))
        wiring.connect(m, wiring.flipped(self.unit), sequencer.unit)
        wiring.connect(m, wiring.flipped(self.out), writer.port)
        m.d.comb += [plan.job.eq(sequencer.job), datapath.job.eq(sequencer.job)]
        fetch_a = self._fetch_a(m, sequencer, plan)
        fetch_b = self._fetch_b(m, sequencer, plan)
        self._join(m, sequencer, fetch_a, fetch_b, slicer, writer.credit_available)
        self._compute(m, slicer, sequencer, plan, pool, datapath)
        self._load_table(m, slicer, sequencer, datapath, writer.active)
        self._write(m, slicer, sequencer, plan, datapath, writer)
        m.d.comb += [
            sequencer.step.eq(slicer.go),
            sequencer.write.eq(self.out.valid & self.out.ready),
            sequencer.quiet.eq(fetch_a.quiet & fetch_b.quiet & writer.quiet),
            sequencer.range_fault.eq(
                Cat(port.valid & port.fault for port in (self.a, self.b, self.out)).any(),
            ),
        ]
        return m

    def _fetch_a(self, m: Module, sequencer: Sequencer, plan: Planner) -> OperandFetch:
        """Operand A: a raster of windows; between them a buffer, so that neither's step waits for the other's."""
        m.submodules.raster_a = raster = RasterWalker()
        m.submodules.rastered = rastered = SkidBuffer(PIXEL_LAYOUT)
        m.submodules.window = window = WindowWalker()
        m.submodules.fetch_a = fetch = OperandFetch(self._params.word_bytes)
        wiring.connect(m, raster.o, rastered.i)
        wiring.connect(m, rastered.o, window.i)
        wiring.connect(m, window.o, fetch.i)
        wiring.connect(m, fetch.port, wiring.flipped(self.a))
        m.d.comb += [
            raster.config.eq(plan.a),
            raster.start.eq(sequencer.start),
            window.config.eq(plan.window),
            fetch.fill.eq(sequencer.job.fill),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _fetch_b(self, m: Module, sequencer: Sequencer, plan: Planner) -> OperandFetch:
        """Operand B: a raster of words, all of them inside."""
        m.submodules.raster_b = raster = RasterWalker()
        m.submodules.fetch_b = fetch = OperandFetch(self._params.word_bytes)
        wiring.connect(m, fetch.port, wiring.flipped(self.b))
        m.d.comb += [
            raster.config.eq(plan.b),
            raster.start.eq(sequencer.start & sequencer.job.uses_b),
            fetch.i.valid.eq(raster.o.valid),
            fetch.i.payload.addr.eq(raster.o.payload.addr),
            fetch.i.payload.inside.eq(1),
            raster.o.ready.eq(fetch.i.ready),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _join(
        self,
        m: Module,
        sequencer: Sequencer,
        fetch_a: OperandFetch,
        fetch_b: OperandFetch,
        slicer: Slicer,
        room: Signal,
    ) -> None:
        """Work on a word of each operand that the job has, once the result has a place to go."""
        # Told long before the first word, and near.
        uses_b = Signal()
        m.d.sync += [uses_b.eq(sequencer.job.uses_b), slicer.bytewise.eq(sequencer.job.load_table)]
        m.d.comb += [
            slicer.go.eq(fetch_a.o.valid & (fetch_b.o.valid | ~uses_b) & room),
            slicer.a.eq(fetch_a.o.payload.word),
            slicer.b.eq(fetch_b.o.payload.word),
            slicer.tap.eq(fetch_a.o.payload.tap),
            fetch_a.o.ready.eq(slicer.step),
            fetch_b.o.ready.eq(slicer.step & uses_b),
        ]

    def _compute(
        self, m: Module, slicer: Slicer, sequencer: Sequencer, plan: Planner, pool: Pool, datapath: Datapath
    ) -> None:
        b = Signal.like(slicer.slice_b, reset_less=True)
        with m.If(slicer.valid):
            m.d.sync += b.eq(slicer.slice_b)
        m.d.comb += [
            pool.valid.eq(slicer.valid),
            pool.index.eq(slicer.index),
            pool.part.eq(slicer.slice_a),
            pool.tap.eq(slicer.slice_tap),
            pool.slide.eq(plan.slide),
            pool.link.eq(plan.link),
            datapath.valid.eq(pool.result_valid),
            datapath.a.eq(pool.maximum),
            datapath.b.eq(b),
            datapath.total.eq(pool.total),
        ]

    def _load_table(self, m: Module, slicer: Slicer, sequencer: Sequencer, datapath: Datapath, writing: Signal) -> None:
        """The table's bytes go past the datapath; the job is over with the last of them."""
        loading = sequencer.job.load_table
        loaded = Signal()
        m.d.comb += [
            datapath.table_en.eq(slicer.byte_valid),
            datapath.table_byte.eq(slicer.byte),
            sequencer.finished.eq(loaded | (~loading & ~writing)),
        ]
        m.d.sync += loaded.eq(datapath.table_en & datapath.table_index.all())
        with m.If(datapath.table_en):
            m.d.sync += datapath.table_index.eq(datapath.table_index + 1)

    def _write(
        self,
        m: Module,
        slicer: Slicer,
        sequencer: Sequencer,
        plan: Planner,
        datapath: Datapath,
        writer: ResultWriter,
    ) -> None:
        job = sequencer.job
        loading = job.load_table
        end = job.first_byte + job.byte_count
        m.d.sync += writer.mask.eq(Cat((job.first_byte <= i) & (end > i) for i in range(self._params.word_bytes)))
        m.d.comb += [
            writer.config.eq(plan.out),
            writer.start.eq(sequencer.start & ~loading),
            writer.halt.eq(sequencer.stop),
            writer.take_credit.eq(slicer.step & ~loading & slicer.tap.last),
            writer.push.eq(datapath.result_valid),
            writer.word.eq(datapath.result),
        ]
