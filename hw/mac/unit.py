"""The MAC unit: everything a CONV instruction does, several instructions overlapping.

Its model is `intloom.sim.isa_sim.conv`; its tests have a plainer one, pixel by pixel, in tests/hw/mac/reference.py.
"""

from __future__ import annotations

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.mac.accumulator import Accumulators
from intloom.hw.mac.array import MacArray
from intloom.hw.mac.constants import ConstantsLoader, Piece
from intloom.hw.mac.drain import Drain
from intloom.hw.mac.epilogue import Epilogue
from intloom.hw.mac.feed import InputFeed
from intloom.hw.mac.intake import Intake
from intloom.hw.mac.prepare import Preparer
from intloom.hw.mac.sequencer import Sequencer
from intloom.hw.mac.weights import CONSTANTS_REQUEST, WeightFetcher
from intloom.hw.mac.writer import Writer
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import CAUSE_BITS, ReadPort, UnitPort, WeightReadPort, WritePort
from intloom.hw.spec.isa import COUNT_BITS
from intloom.hw.spec.params import TABLE_BYTES, HardwareParams
from intloom.hw.spec.regs import Cause, Stall

RESULTS_DEPTH = 32
"""Results that may wait for the write port: a few more than the epilogue is cycles long, so that it never runs dry."""
_CHANNELS_HELD = Epilogue.LOOKUP_STAGE


class MacUnit(wiring.Component):
    """Takes CONV instructions early and overlaps them: weights of the next, pixels of this, results of the last one.

    Members
    -------
    unit:
        To control; see `UnitPort`.
    act0, act1:
        Input words; these two must never be refused.
    residual:
        Residual operand.
    weights:
        Weight memory.
    drain:
        Results.
    """

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        word = params.word_bytes
        super().__init__(
            {
                "unit": In(UnitPort()),
                "act0": Out(ReadPort(word)),
                "act1": Out(ReadPort(word)),
                "residual": Out(ReadPort(word)),
                "weights": Out(WeightReadPort(word)),
                "drain": Out(WritePort(word)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Parts, then the paths between them."""
        m = Module()
        params = self._params
        m.submodules.intake = self._intake = Intake(params)
        m.submodules.fetcher = self._fetcher = WeightFetcher(params)
        m.submodules.loader = self._loader = ConstantsLoader(params)
        m.submodules.preparer = self._preparer = Preparer(params)
        m.submodules.sequencer = self._sequencer = Sequencer(params)
        m.submodules.feed = self._feed = InputFeed(params)
        m.submodules.array = self._array = MacArray(params)
        m.submodules.accumulators = self._accumulators = Accumulators(params)
        m.submodules.drain_reader = self._drain = Drain(params)
        m.submodules.epilogue = self._epilogue = Epilogue(params)
        m.submodules.writer = self._writer = Writer(params)
        # In registers: it goes to every corner of the unit, and to stop a cycle or two later is soon enough.
        run, run_late = Signal(), Signal()
        m.d.sync += [run.eq(~self.unit.halt & ~self.unit.fault), run_late.eq(run)]
        self._connect_jobs(m, run)
        self._connect_weights(m, run_late)
        self._connect_pixels(m, run)
        self._connect_sums(m)
        self._connect_constants(m)
        self._connect_results(m, run, run_late)
        self._report(m, run_late)
        return m

    def _connect_jobs(self, m: Module, run: Signal) -> None:
        intake = self._intake
        m.d.comb += [
            intake.valid.eq(self.unit.valid),
            intake.instruction.eq(self.unit.instruction),
            intake.index.eq(self.unit.index),
            intake.run.eq(run),
            self.unit.ready.eq(intake.ready),
        ]
        wiring.connect(m, intake.fetch, self._fetcher.jobs)
        wiring.connect(m, intake.pixel, self._preparer.jobs)
        wiring.connect(m, self._preparer.plans, self._sequencer.plans)
        wiring.connect(m, intake.drain, self._drain.jobs)
        wiring.connect(m, intake.write, self._writer.jobs)

    def _connect_weights(self, m: Module, run: Signal) -> None:
        """The loader asks seldom and goes first; the fetcher knows in the same cycle."""
        fetcher, loader, array = self._fetcher, self._loader, self._array
        m.submodules.requests = requests = SkidBuffer(CONSTANTS_REQUEST)
        wiring.connect(m, fetcher.constants, requests.i)
        wiring.connect(m, requests.o, loader.requests)
        m.d.comb += [
            loader.read_allowed.eq(run & ~fetcher.last_word),
            fetcher.read_allowed.eq(run & ~loader.read_valid),
            self.weights.valid.eq(fetcher.read_valid | loader.read_valid),
            self.weights.addr.eq(Mux(loader.read_valid, loader.read_address, fetcher.read_address)),
            loader.read_data.eq(self.weights.data),
            array.load.eq(fetcher.load),
            array.load_word.eq(self.weights.data),
            fetcher.taken.eq(self._sequencer.weights_taken),
            self._sequencer.weights_ready.eq(fetcher.ready),
        ]

    def _connect_pixels(self, m: Module, run: Signal) -> None:
        sequencer, feed, array = self._sequencer, self._feed, self._array
        wiring.connect(m, feed.act0, wiring.flipped(self.act0))
        wiring.connect(m, feed.act1, wiring.flipped(self.act1))
        m.d.comb += [
            sequencer.run.eq(run),
            feed.valid.eq(sequencer.pixel_valid),
            feed.pixel.eq(sequencer.pixel),
            array.valid.eq(feed.word_valid),
            array.pixel.eq(feed.word),
            array.swap.eq(feed.swap),
        ]

    def _connect_sums(self, m: Module) -> None:
        """Bring pixel numbers, and the news of a finished strip, to the accumulators with their dot products."""
        sequencer, sums, drain = self._sequencer, self._accumulators, self._drain
        dots_after = InputFeed.LATENCY + MacArray.latency(self._params.rows)
        ahead = dots_after - Accumulators.AHEAD
        visible = dots_after + Accumulators.VISIBLE
        m.d.comb += [
            sums.valid.eq(_delayed(m, "sum_valid", sequencer.pixel_valid, ahead)),
            sums.first.eq(_delayed(m, "sum_first", sequencer.first_tile, ahead)),
            sums.address.eq(_delayed(m, "sum_address", sequencer.address, ahead)),
            sums.dots.eq(self._array.dots),
            drain.strip_ready.eq(_delayed(m, "strip_ready", sequencer.strip_ready, visible)),
            drain.strip_length.eq(_delayed(m, "strip_length", sequencer.strip_length, visible)),
            sums.drain_groups.eq(drain.groups),
            sums.drain_address.eq(drain.address),
            sequencer.bank_released.eq(_delayed(m, "bank_released", drain.bank_released, 1)),
        ]

    def _connect_constants(self, m: Module) -> None:
        """Count what is loaded against what is still needed, so that the loader never overwrites anything in use."""
        loader, drain, epilogue = self._loader, self._drain, self._epilogue
        # From here constants go to memories all over the epilogue. The loader begins nothing new in the next cycle.
        write = Signal.like(loader.write)
        m.d.sync += write.eq(loader.write)
        done = _delayed(m, "channels_loaded", loader.done, 1)
        held = Signal(range(3))
        tables = Signal(3)
        residual_stored = Signal()
        # The drain changes sets when it begins an instruction with a table of its own, so the first goes into set 1.
        table_set = Signal(init=1)
        table_loaded = (write.piece == Piece.TABLE) & (write.index == TABLE_BYTES - 1)
        released = _delayed(m, "channels_released", drain.channels_released, _CHANNELS_HELD)
        switched = _delayed(m, "table_switched", drain.table_switched, _CHANNELS_HELD)
        # The first item goes out late in its cycle, and what it activates is wide; its residual comes later still.
        activate = _delayed(m, "activate", drain.activate, 1)
        m.d.sync += [held.eq(held + done - released), tables.eq(tables + table_loaded - switched)]
        with m.If(activate):
            m.d.sync += residual_stored.eq(0)
        with m.If((write.piece == Piece.RESIDUAL) & (write.index == 3)):
            m.d.sync += residual_stored.eq(1)
        with m.If(done):
            m.d.sync += epilogue.write_channel_set.eq(~epilogue.write_channel_set)
        with m.If(table_loaded):
            m.d.sync += table_set.eq(~table_set)
        m.d.comb += [
            loader.channels_free.eq(held != 2),
            loader.table_free.eq(tables.as_signed() <= 0),
            loader.residual_free.eq(~residual_stored),
            drain.channels_loaded.eq(done),
            epilogue.write.eq(write),
            epilogue.activate.eq(activate),
            epilogue.write_table_set.eq(table_set),
        ]

    def _connect_results(self, m: Module, run: Signal, run_late: Signal) -> None:
        """Items go out only when the queue behind the epilogue will have room for their results."""
        drain, epilogue, writer = self._drain, self._epilogue, self._writer
        m.submodules.results = results = CreditFifo(self._epilogue.results.shape(), RESULTS_DEPTH)
        owed, under_way = Signal(range(RESULTS_DEPTH + 1)), Signal(range(RESULTS_DEPTH + 1))
        # That an item goes out is known late in its cycle; there is time to count it in the next.
        gone = Signal()
        popped = results.o.valid & results.o.ready
        m.d.sync += [
            gone.eq(drain.item),
            owed.eq(owed + gone - popped),
            under_way.eq(under_way + gone - epilogue.result_valid),
        ]
        wiring.connect(m, drain.residual, wiring.flipped(self.residual))
        wiring.connect(m, results.o, writer.results)
        wiring.connect(m, writer.drain, wiring.flipped(self.drain))
        m.d.comb += [
            drain.run.eq(run),
            drain.room.eq(owed < RESULTS_DEPTH - 3),
            drain.empty.eq((under_way == 0) & ~gone),
            epilogue.valid.eq(drain.item),
            epilogue.tag.eq(drain.tag),
            epilogue.group.eq(drain.group),
            epilogue.channel_set.eq(drain.channel_set),
            epilogue.sums.eq(self._accumulators.drain_sums),
            epilogue.shift.eq(drain.shift),
            epilogue.even.eq(drain.even),
            epilogue.residual_arrived.eq(drain.residual_arrived),
            epilogue.residual.eq(drain.residual_bytes),
            results.take_credit.eq(epilogue.result_valid),
            results.push.eq(epilogue.result_valid),
            results.word.eq(epilogue.results),
            writer.run.eq(run_late),
        ]

    def _report(self, m: Module, run: Signal) -> None:
        """What control sees."""
        sequencer, unit = self._sequencer, self.unit
        under_way = Signal(COUNT_BITS)
        # That an instruction was taken is known late in its cycle; there is time to count it in the next.
        taken = Signal()
        m.d.sync += [taken.eq(unit.valid & unit.ready), under_way.eq(under_way + taken - unit.done)]
        pending = self._writer.pending | self.residual.valid
        m.d.comb += [
            unit.started.eq(sequencer.started),
            unit.done.eq(self._writer.done),
            unit.busy.eq(sequencer.pixel_valid),
            unit.idle.eq(Mux(run, (under_way == 0) & ~taken, ~pending)),
            unit.stall[Stall.WEIGHTS].eq(sequencer.waits_weights),
            unit.stall[Stall.DRAIN].eq(sequencer.waits_bank),
        ]
        # The drain's request, and so its fault, takes most of a cycle.
        fault_index = _delayed(m, "residual_fault_index", self._drain.fault_index, 1)
        residual_fault = _delayed(m, "residual_fault", self.residual.valid & self.residual.fault, 1)
        faults = (
            (self._feed.fault, Cause.SCRATCH_RANGE, self._feed.fault_index),
            (residual_fault, Cause.SCRATCH_RANGE, fault_index),
            (self._writer.fault, Cause.SCRATCH_RANGE, self._writer.fault_index),
            (self._intake.bad, Cause.BAD_FIELD, self._intake.bad_index),
        )
        cause = Signal(CAUSE_BITS)
        for strobe, reason, index in faults:
            with m.If(strobe & ~unit.fault):
                m.d.sync += [unit.fault.eq(1), cause.eq(reason), unit.fault_index.eq(index)]
        m.d.comb += unit.cause.eq(cause)


def _delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    """The value, so many cycles later; single bits are events, and reset."""
    return pipeline_stages(m, name, value, cycles, reset_less=len(value) > 1)
