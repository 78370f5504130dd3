"""The vector unit. Its reference model is the instruction simulator in `sim/isa_sim`."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.down_counter import DownCounter
from intloom.hw.ports import ReadPort, UnitPort, WritePort
from intloom.hw.spec.norm import LINE_BITS
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.softmax import PASSES, QUEUE_GROUPS
from intloom.hw.spec.vector_depthwise import GROUPS
from intloom.hw.vector.datapath import Datapath
from intloom.hw.vector.depthwise_columns import DepthwiseColumns
from intloom.hw.vector.depthwise_constants import DepthwiseConstants
from intloom.hw.vector.depthwise_epilogue import DepthwiseEpilogue
from intloom.hw.vector.depthwise_walker import DepthwiseWalker
from intloom.hw.vector.norm import Norm
from intloom.hw.vector.operand_fetcher import OperandFetcher
from intloom.hw.vector.pool import Pool
from intloom.hw.vector.raster_setup import RasterSetup
from intloom.hw.vector.raster_walker import PIXEL_LAYOUT, RasterWalker
from intloom.hw.vector.result_writer import ResultWriter
from intloom.hw.vector.sequencer import Sequencer
from intloom.hw.vector.slicer import Slicer
from intloom.hw.vector.softmax import Softmax
from intloom.hw.vector.window_walker import FETCH_LAYOUT, WindowWalker
from intloom.hw.yosys_attributes import REGISTER_COPY

_OTHER_CYCLES = Slicer.LATENCY + Pool.LATENCY + Datapath.LATENCY + CreditFifo.TURNAROUND
"""Cycles from a credit taken for a result until it can be taken again, without a Softmax."""
_DEPTHWISE_CYCLES = (
    DepthwiseColumns.LATENCY + DepthwiseEpilogue.LATENCY + Datapath.BYTES_LATENCY + CreditFifo.TURNAROUND
)
"""The same for a result of a depthwise convolution."""
_DRAIN = 1 << ceil_log2(DepthwiseColumns.LATENCY + DepthwiseEpilogue.ZERO_POINT_STAGE - 2)
"""Cycles without an input word after which no further one comes, and the operation may change 3 cycles later."""


def results_in_flight(params: HardwareParams) -> int:
    """Depth of the result FIFO that sustains one slice, group of a Softmax, or group of a depthwise result a cycle."""
    results = [-(-_OTHER_CYCLES // params.vector_slices)]
    if params.vector_softmax:
        groups = params.word_bytes // params.softmax_lanes
        # The queue holds the groups of as many cycles, and the dividers take twice as many for them.
        cycles = Slicer.LATENCY + Softmax.latency(params) + Datapath.BYTES_LATENCY + CreditFifo.TURNAROUND
        results.append(-(-(cycles + QUEUE_GROUPS // 2) // groups))
    if params.vector_norm:
        results.append(-(-(_OTHER_CYCLES + Norm.LATENCY) // (params.word_bytes // params.softmax_lanes)))
    if params.vector_depthwise:
        results.append(-(-_DEPTHWISE_CYCLES // GROUPS))
    return max(2, 1 << ceil_log2(max(results)))


class VectorUnit(wiring.Component):
    """Runs vector instructions one after the other at one slice of a word a cycle, depthwise convolutions at one word.

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
    One slice a cycle, `vector_slices` cycles per word, while all ports grant. VDEPTHWISE: one word a cycle, and at
    least `GROUPS` cycles from result to result. The next instruction is taken after the last write of the previous one.
    Only a VDEPTHWISE after a VDEPTHWISE is taken earlier, once the latter has at most two words to write: its constants
    are read meanwhile, its input after the last write. Constants that those two words contain are read after them.

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
        # The second pass of a normalization; whether its next pixel, or the next group of a Softmax, must wait.
        self._applies, self._waits = Signal(), Signal()
        # A word of constants is taken; a depthwise convolution takes an input word, or one that completes a result.
        self._taken, self._issued, self._completes = Signal(), Signal(), Signal()
        m.submodules.sequencer = sequencer = self._sequencer = Sequencer(params)
        m.submodules.slicer = slicer = self._slicer = Slicer(params)
        m.submodules.setup = setup = self._setup = RasterSetup()
        m.submodules.pool = self._pool = Pool(params)
        m.submodules.datapath = datapath = self._datapath = Datapath(params)
        m.submodules.writer = writer = self._writer = ResultWriter(params.word_bytes, results_in_flight(params))
        wiring.connect(m, wiring.flipped(self.unit), sequencer.unit)
        wiring.connect(m, wiring.flipped(self.out), writer.port)
        m.d.comb += [setup.operation.eq(sequencer.operation), datapath.operation.eq(sequencer.operation)]
        fetch_a = self._fetch_a(m)
        fetch_b = self._fetch_b(m)
        self._issue(m, fetch_a, fetch_b)
        self._compute(m)
        self._load_table(m)
        if params.vector_softmax:
            self._softmax(m)
        if params.vector_norm:
            self._normalize(m, fetch_b)
        if params.vector_depthwise:
            self._convolve(m, fetch_a, fetch_b)
        self._write(m)
        m.d.comb += [
            sequencer.step.eq(slicer.words_valid | self._taken | self._issued),
            sequencer.write.eq(self.out.valid & self.out.ready),
            sequencer.idle.eq(fetch_a.idle & fetch_b.idle & writer.idle),
            sequencer.read_fault.eq((self.a.valid & self.a.fault) | (self.b.valid & self.b.fault)),
            sequencer.write_fault.eq(self.out.valid & self.out.fault),
        ]
        return m

    def _fetch_a(self, m: Module) -> OperandFetcher:
        """Operand A: a raster of windows; a skid buffer cuts the path between the two walkers' steps."""
        sequencer, setup = self._sequencer, self._setup
        m.submodules.raster_a = raster = RasterWalker()
        m.submodules.rastered = rastered = SkidBuffer(PIXEL_LAYOUT)
        m.submodules.window = window = WindowWalker()
        m.submodules.fetch_a = fetch = OperandFetcher(self._params.word_bytes)
        wiring.connect(m, raster.o, rastered.i)
        wiring.connect(m, rastered.o, window.i)
        if self._params.vector_depthwise:
            self._select_walker(m, window, fetch)
        else:
            wiring.connect(m, window.o, fetch.i)
        wiring.connect(m, fetch.port, wiring.flipped(self.a))
        m.d.comb += [
            raster.config.eq(setup.a),
            raster.start.eq(sequencer.start & ~sequencer.operation.depthwise),
            window.config.eq(setup.window),
            fetch.fill.eq(sequencer.operation.fill),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _select_walker(self, m: Module, window: WindowWalker, fetch: OperandFetcher) -> None:
        """Words of windows, or those under a depthwise convolution; only one walker has any.

        A skid buffer keeps a halt and the credits out of the depthwise walker's steps.
        """
        sequencer = self._sequencer
        m.submodules.walker = walker = DepthwiseWalker()
        m.submodules.walked = walked = SkidBuffer(FETCH_LAYOUT)
        depthwise = self._depthwise(m, "walked")
        wiring.connect(m, walker.o, walked.i)
        m.d.comb += [
            *(walker.config[name].eq(sequencer.operation[name]) for name in walker.config.shape().members),
            walker.start.eq(sequencer.start & sequencer.operation.depthwise),
            fetch.i.valid.eq(window.o.valid | walked.o.valid),
            Value.cast(fetch.i.payload).eq(Mux(depthwise, walked.o.payload, window.o.payload)),
            window.o.ready.eq(fetch.i.ready),
            walked.o.ready.eq(fetch.i.ready),
        ]

    def _depthwise(self, m: Module, name: str) -> Value:
        """Whether the operation is a depthwise convolution: a copy of the register for one of its readers."""
        if not self._params.vector_depthwise:
            return Const(0)
        copy = Signal(name=f"depthwise_{name}", reset_less=True, attrs={REGISTER_COPY: 1})
        m.d.sync += copy.eq(self._sequencer.operation.depthwise)
        return copy

    def _fetch_b(self, m: Module) -> OperandFetcher:
        """Operand B: a raster of words, all inside the tensor; or the constants of a depthwise convolution."""
        sequencer = self._sequencer
        m.submodules.raster_b = raster = RasterWalker()
        m.submodules.fetch_b = fetch = OperandFetcher(self._params.word_bytes)
        wiring.connect(m, fetch.port, wiring.flipped(self.b))
        # A word that the previous instruction may not have written yet.
        hazard = Signal()
        if self._params.vector_depthwise:
            m.d.comb += hazard.eq(self._writer.hazard & sequencer.joined)
        m.d.comb += [
            raster.config.eq(self._setup.b),
            raster.start.eq(
                sequencer.load_constants | (sequencer.start & (sequencer.operation.uses_b | sequencer.operation.norm))
            ),
            fetch.i.valid.eq(raster.o.valid & ~hazard),
            fetch.i.payload.addr.eq(raster.o.payload.addr),
            self._writer.addr.eq(raster.o.payload.addr),
            # Operand B has no padding: VADD and VMUL read whole tensors.
            fetch.i.payload.inside.eq(1),
            raster.o.ready.eq(fetch.i.ready & ~hazard),
            fetch.halt.eq(sequencer.stop),
        ]
        return fetch

    def _issue(self, m: Module, fetch_a: OperandFetcher, fetch_b: OperandFetcher) -> None:
        """A word issues when both operands that the operation uses are valid and the result FIFO has a credit."""
        # Stable long before the first word: local copies cut the route from the operation register.
        uses_b, constants, depthwise = Signal(), Signal(), self._depthwise(m, "issued")
        operation, slicer = self._sequencer.operation, self._slicer
        credit_available = self._writer.credit_available
        m.d.sync += [
            uses_b.eq(operation.uses_b),
            constants.eq(self._reads_constants()),
            slicer.bytewise.eq(operation.load_table | operation.channels),
            slicer.grouped.eq(operation.channels),
        ]
        m.d.comb += [
            slicer.words_valid.eq(
                fetch_a.o.valid & (fetch_b.o.valid | ~uses_b) & ~depthwise & credit_available & ~self._waits
            ),
            self._taken.eq(fetch_b.o.valid & constants),
            slicer.a.eq(fetch_a.o.payload.word),
            slicer.b.eq(fetch_b.o.payload.word),
            slicer.tap.eq(fetch_a.o.payload.tap),
            fetch_a.o.ready.eq(slicer.step | self._issued),
            fetch_b.o.ready.eq((slicer.step & uses_b) | constants),
        ]

    def _compute(self, m: Module) -> None:
        slicer, setup, pool, datapath = self._slicer, self._setup, self._pool, self._datapath
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

    def _load_table(self, m: Module) -> None:
        """Table bytes bypass the datapath; the operation finishes with the last of them."""
        sequencer, slicer, datapath = self._sequencer, self._slicer, self._datapath
        loading, exponentials = sequencer.operation.load_table, sequencer.operation.exponentials
        written, loaded = Signal(), Signal()
        m.d.comb += [
            written.eq(slicer.byte_valid & loading),
            datapath.table_en.eq(written & ~exponentials),
            datapath.table_byte.eq(slicer.byte),
            sequencer.finished.eq(loaded | (~loading & ~self._writer.active)),
        ]
        m.d.sync += loaded.eq(written & datapath.table_index.all())
        with m.If(written):
            m.d.sync += datapath.table_index.eq(datapath.table_index + 1)

    def _softmax(self, m: Module) -> None:
        """Groups of bytes go through the Softmax in place of the pool; its slices pass only table and assembly."""
        m.submodules.softmax = softmax = Softmax(self._params)
        operation, slicer, datapath = self._sequencer.operation, self._slicer, self._datapath
        divides = Signal()
        m.d.comb += [
            divides.eq(operation.softmax & (self._pass == PASSES - 1)),
            softmax.taken.eq(slicer.words_valid & divides),
        ]
        with m.If(divides & ~softmax.ready):
            m.d.comb += self._waits.eq(1)
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
            datapath.bytes_valid.eq(softmax.result_valid),
            datapath.bytes.eq(softmax.result),
        ]

    def _reads_constants(self) -> Value:
        """Whether operand B is constants, which are taken as they come."""
        operation = self._sequencer.operation
        return operation.depthwise | operation.norm

    def _normalize(self, m: Module, fetch_b: OperandFetcher) -> None:
        """Groups of bytes go through the normalization in place of the pool; its slices pass the datapath unchanged."""
        m.submodules.norm = norm = Norm(self._params)
        sequencer, slicer, datapath = self._sequencer, self._slicer, self._datapath
        operation = sequencer.operation
        normalizes = Signal()
        m.d.sync += [normalizes.eq(operation.norm), norm.applies.eq(self._applies)]
        pixels = DownCounter(LINE_BITS, "line_pixels")
        stepped = Signal()
        with m.If(sequencer.start):
            pixels.load(m, operation.out_w)
            m.d.sync += self._applies.eq(0)
        with m.Elif(stepped & pixels.last):
            pixels.load(m, operation.out_w)
            m.d.sync += self._applies.eq(~self._applies)
        with m.Elif(stepped):
            pixels.step(m)
        m.d.comb += [
            stepped.eq(slicer.step & normalizes & slicer.tap.last),
            norm.taken.eq(stepped & self._applies),
            norm.start.eq(sequencer.start),
            norm.constants_valid.eq(fetch_b.o.valid & normalizes),
            norm.constants.eq(fetch_b.o.payload.word),
            *(getattr(norm, name).eq(operation[name]) for name in ("blocks", "last_bytes", "center", "epsilon")),
            norm.zp_in.eq(operation.fill),
            norm.valid.eq(slicer.byte_valid & normalizes),
            norm.group.eq(slicer.group),
            norm.position.eq(slicer.byte_position),
            norm.tap.eq(slicer.slice_tap),
        ]
        with m.If(normalizes & self._applies & slicer.tap.first & ~norm.ready):
            m.d.comb += self._waits.eq(1)
        with m.If(norm.result_valid):
            m.d.comb += [datapath.valid.eq(1), datapath.a.eq(norm.result)]

    def _convolve(self, m: Module, fetch_a: OperandFetcher, fetch_b: OperandFetcher) -> None:
        """Input words issue as soon as the weights are loaded; those that complete a result need more.

        Behind the issue nothing stalls: such a word needs the biases and scales, a credit, and `GROUPS` cycles since
        the last one.
        """
        m.submodules.constants = constants = DepthwiseConstants(self._params)
        m.submodules.columns = columns = DepthwiseColumns(self._params)
        m.submodules.epilogue = epilogue = DepthwiseEpilogue(self._params)
        sequencer, datapath = self._sequencer, self._datapath
        credit_available = self._writer.credit_available
        word, tap = fetch_a.o.payload.word, fetch_a.o.payload.tap
        completed = Signal(GROUPS - 2)
        may_complete = Signal()
        # Taken at `start`: results of the operation before may drain until then.
        table = Signal(reset_less=True)
        with m.If(sequencer.start):
            m.d.sync += table.eq(sequencer.operation.table)
        m.d.comb += datapath.operation.table.eq(table)
        m.d.sync += [
            completed.eq(Cat(self._completes, completed)),
            # Computed a cycle ahead.
            may_complete.eq(constants.loaded & ~self._completes & (completed == 0)),
        ]
        m.d.comb += [
            self._issued.eq(
                fetch_a.o.valid & constants.weights_loaded & (~tap.last | (may_complete & credit_available))
            ),
            self._completes.eq(self._issued & tap.last),
            # Also cleared for other operations: their words must not issue here.
            constants.start.eq(sequencer.load_constants | (sequencer.start & ~sequencer.operation.depthwise)),
            constants.kernel_h.eq(sequencer.operation.kernel_h),
            constants.kernel_w.eq(sequencer.operation.kernel_w),
            columns.kernel_w.eq(sequencer.operation.kernel_w),
            constants.valid.eq(fetch_b.o.valid & self._depthwise(m, "taken")),
            constants.word.eq(fetch_b.o.payload.word),
            columns.write.eq(constants.write),
            columns.valid.eq(self._issued),
            columns.word.eq(word),
            columns.tap.eq(tap),
            epilogue.write.eq(constants.write),
            epilogue.zp_out.eq(sequencer.operation.zp_out),
            epilogue.valid.eq(columns.sums_valid),
            epilogue.sums.eq(columns.sums),
        ]
        with m.If(epilogue.result_valid):
            m.d.comb += [datapath.bytes_valid.eq(1), datapath.bytes.eq(epilogue.result)]
        self._drain(m, fetch_a)

    def _drain(self, m: Module, fetch_a: OperandFetcher) -> None:
        """The next VDEPTHWISE may be taken `_DRAIN` cycles after the last input word, with two addresses left to write.

        The fields that the last sums need are no longer used then; its constants come after the last biases and scales
        have been read.
        """
        sequencer, writer = self._sequencer, self._writer
        cycles = Signal(range(_DRAIN + 1))
        m.d.comb += sequencer.drains.eq(cycles[-1] & writer.addressed)
        with m.If(sequencer.start | fetch_a.i.valid | ~fetch_a.idle | fetch_a.o.valid):
            m.d.sync += cycles.eq(0)
        with m.Elif(~cycles[-1]):
            m.d.sync += cycles.eq(cycles + 1)

    def _write(self, m: Module) -> None:
        sequencer, slicer, datapath, writer = self._sequencer, self._slicer, self._datapath, self._writer
        operation = sequencer.operation
        loading = operation.load_table
        last_pass = Mux(operation.softmax, self._pass == PASSES - 1, self._applies)
        end = operation.first_byte + operation.byte_count
        # A register for 2 comparisons per byte; the mask is stable long before the first write.
        m.d.sync += writer.mask.eq(Cat((operation.first_byte <= i) & (end > i) for i in range(self._params.word_bytes)))
        m.d.comb += [
            writer.config.eq(self._setup.out),
            writer.start.eq(sequencer.start & ~loading),
            writer.halt.eq(sequencer.stop),
            # Only the last word of a window has a result, and every word of the last pass over channels.
            writer.take_credit.eq(
                (slicer.step & ~loading & Mux(operation.channels, last_pass, slicer.tap.last)) | self._completes
            ),
            writer.push.eq(datapath.result_valid),
            writer.word.eq(datapath.result),
        ]
