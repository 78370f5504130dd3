"""The vector unit. Its reference model is the instruction simulator in `sim/isa_sim`."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.ports import ReadPort, UnitPort, WritePort
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import PASSES
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.operand_fetcher import OperandFetcher
from intloom.hw.vector.pool import Pool
from intloom.hw.vector.raster_setup import RasterSetup
from intloom.hw.vector.raster_walker import PIXEL_LAYOUT, RasterWalker
from intloom.hw.vector.result_writer import ResultWriter
from intloom.hw.vector.sequencer import Sequencer
from intloom.hw.vector.slicer import Slicer
from intloom.hw.vector.softmax import Softmax
from intloom.hw.vector.window_walker import WindowWalker

_OTHER_CYCLES = Slicer.LATENCY + Pool.LATENCY + Datapath.LATENCY + CreditFifo.TURNAROUND
"""Cycles from a credit taken for a result until it can be taken again, without a Softmax."""


def results_in_flight(params: HardwareParams) -> int:
    """Depth of the result FIFO that sustains one slice, or group of a Softmax, a cycle."""
    results = [-(-_OTHER_CYCLES // params.vector_slices)]
    if params.vector_softmax:
        groups = params.word_bytes // params.softmax_lanes
        results.append(-(-(_OTHER_CYCLES + Softmax.latency(params)) // groups))
    return max(2, 1 << ceil_log2(max(results)))


class VectorUnit(wiring.Component):
    """Runs vector instructions one after the other at one slice of a word a cycle.

    Words flow from two prefetch FIFOs through a pipeline that never stalls into a result FIFO. Each word takes a result
    credit before it issues, so refused requests on any port only reduce throughput.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    unit
        Instructions and events; see `UnitPort`.
    a, b
        Read ports of the operands.
    out
        Write port of the results.

    Handshake
    ---------
    As `UnitPort`, `ReadPort` and `WritePort` state. A request holds until its grant.

    Timing
    ------
    One slice a cycle, `vector_slices` cycles per word, while all ports grant. Instructions do not overlap: the next one
    is taken after the last write of the previous one.

    Requirements
    ------------
    Read data comes `READ_LATENCY` cycles after the grant.

    Reset and faults
    ----------------
    Soft reset drops the instruction and all words in flight. A fault (`BAD_FIELD`, `SCRATCH_RANGE`) or a halt stops new
    requests; a request that waits for its grant remains.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        port = ReadPort(params.word_bytes)
        super().__init__(
            {"unit": In(UnitPort()), "a": Out(port), "b": Out(port), "out": Out(WritePort(params.word_bytes))}
        )

    def elaborate(self, platform: object) -> Module:
        """Sequencer, operand fetch, issue, datapath, write."""
        m = Module()
        params = self._params
        self._pass = Signal(range(PASSES))
        m.submodules.sequencer = sequencer = Sequencer(params)
        m.submodules.slicer = slicer = Slicer(params)
        m.submodules.setup = setup = RasterSetup()
        m.submodules.pool = pool = Pool(params)
        m.submodules.datapath = datapath = Datapath(params)
        m.submodules.writer = writer = ResultWriter(params.word_bytes, results_in_flight(params))
        wiring.connect(m, wiring.flipped(self.unit), sequencer.unit)
        wiring.connect(m, wiring.flipped(self.out), writer.port)
        m.d.comb += [setup.operation.eq(sequencer.operation), datapath.operation.eq(sequencer.operation)]
        fetch_a = self._fetch_a(m, sequencer, setup)
        fetch_b = self._fetch_b(m, sequencer, setup)
        self._issue(m, sequencer, fetch_a, fetch_b, slicer, writer.credit_available)
        self._compute(m, slicer, sequencer, setup, pool, datapath)
        self._load_table(m, slicer, sequencer, datapath, writer.active)
        if params.vector_softmax:
            self._softmax(m, slicer, sequencer, pool, datapath)
        self._write(m, slicer, sequencer, setup, datapath, writer)
        m.d.comb += [
            sequencer.step.eq(slicer.words_valid),
            sequencer.write.eq(self.out.valid & self.out.ready),
            sequencer.idle.eq(fetch_a.idle & fetch_b.idle & writer.idle),
            sequencer.range_fault.eq(
                Cat(port.valid & port.fault for port in (self.a, self.b, self.out)).any(),
            ),
        ]
        return m

    def _fetch_a(self, m: Module, sequencer: Sequencer, setup: RasterSetup) -> OperandFetcher:
        """Operand A: a raster of windows; a skid buffer cuts the path between the two walkers' steps."""
        m.submodules.raster_a = raster = RasterWalker()
        m.submodules.rastered = rastered = SkidBuffer(PIXEL_LAYOUT)
        m.submodules.window = window = WindowWalker()
        m.submodules.fetch_a = fetch = OperandFetcher(self._params.word_bytes)
        wiring.connect(m, raster.o, rastered.i)
        wiring.connect(m, rastered.o, window.i)
        wiring.connect(m, window.o, fetch.i)
        wiring.connect(m, fetch.port, wiring.flipped(self.a))
        m.d.comb += [
            raster.config.eq(setup.a),
            raster.start.eq(sequencer.start),
            window.config.eq(setup.window),
            fetch.fill.eq(sequencer.operation.fill),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _fetch_b(self, m: Module, sequencer: Sequencer, setup: RasterSetup) -> OperandFetcher:
        """Operand B: a raster of words, all inside the tensor."""
        m.submodules.raster_b = raster = RasterWalker()
        m.submodules.fetch_b = fetch = OperandFetcher(self._params.word_bytes)
        wiring.connect(m, fetch.port, wiring.flipped(self.b))
        m.d.comb += [
            raster.config.eq(setup.b),
            raster.start.eq(sequencer.start & sequencer.operation.uses_b),
            fetch.i.valid.eq(raster.o.valid),
            fetch.i.payload.addr.eq(raster.o.payload.addr),
            # Operand B has no padding: VADD and VMUL read whole tensors.
            fetch.i.payload.inside.eq(1),
            raster.o.ready.eq(fetch.i.ready),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _issue(
        self,
        m: Module,
        sequencer: Sequencer,
        fetch_a: OperandFetcher,
        fetch_b: OperandFetcher,
        slicer: Slicer,
        credit_available: Signal,
    ) -> None:
        """A word issues when both operands that the operation uses are valid and the result FIFO has a credit."""
        # Stable long before the first word: a local copy cuts the route from the operation register.
        uses_b = Signal()
        operation = sequencer.operation
        m.d.sync += [
            uses_b.eq(operation.uses_b),
            slicer.bytewise.eq(operation.load_table | operation.softmax),
            slicer.grouped.eq(operation.softmax),
        ]
        m.d.comb += [
            slicer.words_valid.eq(fetch_a.o.valid & (fetch_b.o.valid | ~uses_b) & credit_available),
            slicer.a.eq(fetch_a.o.payload.word),
            slicer.b.eq(fetch_b.o.payload.word),
            slicer.tap.eq(fetch_a.o.payload.tap),
            fetch_a.o.ready.eq(slicer.step),
            fetch_b.o.ready.eq(slicer.step & uses_b),
        ]

    def _compute(
        self, m: Module, slicer: Slicer, sequencer: Sequencer, setup: RasterSetup, pool: Pool, datapath: Datapath
    ) -> None:
        # As late as operand A, which passes the pool.
        b = Signal.like(slicer.slice_b, reset_less=True)
        with m.If(slicer.valid):
            m.d.sync += b.eq(slicer.slice_b)
        m.d.comb += [
            pool.valid.eq(slicer.valid),
            pool.index.eq(slicer.index),
            pool.part.eq(slicer.slice_a),
            pool.tap.eq(slicer.slice_tap),
            pool.slide.eq(setup.slide),
            pool.link.eq(setup.link),
            datapath.valid.eq(pool.result_valid),
            datapath.a.eq(pool.maximum),
            datapath.b.eq(b),
            datapath.total.eq(pool.total),
        ]

    def _load_table(self, m: Module, slicer: Slicer, sequencer: Sequencer, datapath: Datapath, writing: Signal) -> None:
        """Table bytes bypass the datapath; the operation finishes with the last of them."""
        loading, exponentials = sequencer.operation.load_table, sequencer.operation.exponentials
        written, loaded = Signal(), Signal()
        m.d.comb += [
            written.eq(slicer.byte_valid & loading),
            datapath.table_en.eq(written & ~exponentials),
            datapath.table_byte.eq(slicer.byte),
            sequencer.finished.eq(loaded | (~loading & ~writing)),
        ]
        m.d.sync += loaded.eq(written & datapath.table_index.all())
        with m.If(written):
            m.d.sync += datapath.table_index.eq(datapath.table_index + 1)

    def _softmax(self, m: Module, slicer: Slicer, sequencer: Sequencer, pool: Pool, datapath: Datapath) -> None:
        """Groups of bytes go through the Softmax in place of the pool; its slices then pass the datapath unchanged."""
        m.submodules.softmax = softmax = Softmax(self._params)
        operation = sequencer.operation
        # The pass of the group at the slicer's output.
        m.d.sync += softmax.number.eq(self._pass)
        with m.If(slicer.step & operation.softmax & slicer.tap.last):
            m.d.sync += self._pass.eq(Mux(self._pass == PASSES - 1, 0, self._pass + 1))
        m.d.comb += [
            softmax.write_en.eq(slicer.byte_valid & operation.exponentials),
            softmax.write_part.eq(operation.part),
            softmax.write_index.eq(datapath.table_index),
            softmax.write_byte.eq(slicer.byte),
            *(getattr(softmax, name).eq(operation[name]) for name in ("last_bytes", "less", "zp_out")),
            softmax.valid.eq(slicer.byte_valid & operation.softmax),
            softmax.group.eq(slicer.group),
            softmax.position.eq(slicer.byte_position),
            softmax.tap.eq(slicer.slice_tap),
        ]
        with m.If(softmax.result_valid):
            m.d.comb += [datapath.valid.eq(1), datapath.a.eq(softmax.result)]

    def _write(
        self,
        m: Module,
        slicer: Slicer,
        sequencer: Sequencer,
        setup: RasterSetup,
        datapath: Datapath,
        writer: ResultWriter,
    ) -> None:
        operation = sequencer.operation
        loading = operation.load_table
        end = operation.first_byte + operation.byte_count
        # A register for 2 comparisons per byte; the mask is stable long before the first write.
        m.d.sync += writer.mask.eq(Cat((operation.first_byte <= i) & (end > i) for i in range(self._params.word_bytes)))
        m.d.comb += [
            writer.config.eq(setup.out),
            writer.start.eq(sequencer.start & ~loading),
            writer.halt.eq(sequencer.stop),
            # Only the last word of a window has a result, and every word of a Softmax's last pass.
            writer.take_credit.eq(
                slicer.step & ~loading & Mux(operation.softmax, self._pass == PASSES - 1, slicer.tap.last)
            ),
            writer.push.eq(datapath.result_valid),
            writer.word.eq(datapath.result),
        ]
