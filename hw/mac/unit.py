"""The MAC unit: executes CONV instructions, several in flight.

Its reference model is `intloom.sim.isa_sim.conv`; tests/support/slow_machine.py is a plainer one, byte by byte.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.bus.skid_buffer import SkidBuffer
from intloom.hw.clock_gate import add_gated
from intloom.hw.credit_fifo import CreditFifo
from intloom.hw.mac.array.accumulators import Accumulators
from intloom.hw.mac.array.mac_array import MacArray
from intloom.hw.mac.array.pixel_fetcher import PixelFetcher
from intloom.hw.mac.epilogue.epilogue import Epilogue
from intloom.hw.mac.issue.decoder import InstructionDecoder
from intloom.hw.mac.issue.loop_setup import LoopSetup
from intloom.hw.mac.issue.sequencer import Sequencer
from intloom.hw.mac.output.readout import AccumulatorReadout
from intloom.hw.mac.output.result_writer import ResultWriter
from intloom.hw.mac.weights.constant_sets import ConstantSets
from intloom.hw.mac.weights.constants_loader import ConstantKind, ConstantsLoader
from intloom.hw.mac.weights.fetcher import CONSTANTS_REQUEST, WeightFetcher
from intloom.hw.mac.weights.zero_point_correction import ZeroPointCorrection
from intloom.hw.mac.weights.zero_points import ZeroPoints
from intloom.hw.pipeline import pipeline_stages
from intloom.hw.ports import CAUSE_BITS, ReadPort, UnitPort, WeightReadPort, WritePort
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall

RESULTS_DEPTH = 32
"""Depth of the result FIFO: it covers the epilogue's latency and credit turnaround."""
_CHANNELS_IN_USE = Epilogue.LOOKUP_STAGE
_FREE_SETS = ("channels_free", "table_free", "residual_free")


class MacUnit(wiring.Component):
    """Executes CONV instructions in order and overlaps them.

    Weight prefetch, pixel issue, accumulator readout and result write each work on their own descriptor, so that they
    may be in different instructions. Weights, accumulators, channel parameters and tables are double buffered.

    Members
    -------
    unit:
        To control; see `UnitPort`.
    act0, act1:
        Read ports of the input; always granted.
    residual:
        Read port of the residual operand.
    weights:
        Read port of the weight memory.
    results:
        Write port.

    Handshake
    ---------
    As `UnitPort`, `ReadPort` and `WritePort` state. A request on `residual` or `results` holds until its grant.

    Timing
    ------
    One pixel of a tile a cycle while weights and accumulator banks are available; `lanes` results a cycle.
    `hw.spec.timing` states the latencies from instruction to first product (`MAC_START`) and from last product to last
    result (`MAC_END`).

    Requirements
    ------------
    `act0` and `act1` are granted in every cycle. Read data comes `READ_LATENCY`, weights `WEIGHT_LATENCY` cycles after
    the request.

    Reset and faults
    ----------------
    Soft reset drops all instructions in flight. The first fault (`BAD_FIELD`, `SCRATCH_RANGE`) is sticky with its cause
    and instruction index. No tile or item issues from 2 cycles after a fault or halt on; a tile in progress completes.
    A pending residual read or write remains, and `unit.idle` rises when it is granted.
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
                "results": Out(WritePort(word)),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Components, then the paths between them."""
        m = Module()
        params = self._params
        m.submodules.decoder = self._decoder = InstructionDecoder(params)
        m.submodules.fetcher = self._fetcher = WeightFetcher(params)
        m.submodules.zero_points = self._zero_points = ZeroPoints(params)
        self._correction = ZeroPointCorrection(params) if params.weight_sums else None
        m.submodules.loader = self._loader = ConstantsLoader(params)
        self._loop_setup = LoopSetup(params)
        m.submodules.sequencer = self._sequencer = Sequencer(params)
        m.submodules.pixel_fetcher = self._pixel_fetcher = PixelFetcher(params)
        m.submodules.array = self._array = MacArray(params)
        m.submodules.accumulators = self._accumulators = Accumulators(params)
        m.submodules.readout = self._readout = AccumulatorReadout(params)
        self._epilogue = Epilogue(params)
        m.submodules.writer = self._writer = ResultWriter(params)
        # Two register stages: halt fans out over the whole unit, and a stop 2 cycles later is within HALT_LATENCY.
        run, run_late = Signal(), Signal()
        m.d.sync += [run.eq(~self.unit.halt & ~self.unit.fault), run_late.eq(run)]
        self._connect_issue(m, run)
        self._connect_weights(m, run_late)
        self._connect_pixels(m, run)
        self._connect_accumulators(m)
        self._connect_constants(m)
        self._connect_results(m, run, run_late)
        self._report(m, run_late)
        gated: list[tuple[str, wiring.Component, Value]] = [
            ("epilogue", self._epilogue, self._epilogue_wake()),
            ("loop_setup", self._loop_setup, self._loop_setup_wake()),
        ]
        if self._correction is not None:
            wake = self._connect_correction(m, self._correction)
            gated.append(("correction", self._correction, wake))
        for name, component, wake in gated:
            add_gated(m, name, component, wake if params.clock_gating else None, platform)
        return m

    def _connect_correction(self, m: Module, correction: ZeroPointCorrection) -> Value:
        """It works for instructions that subtract the input's zero point: the value says when."""
        m.d.comb += [
            correction.to_sum.eq(self._fetcher.to_sum),
            correction.weights.eq(self._zero_points.weights),
            correction.read.eq(self._readout.corrected),
            correction.read_set.eq(self._readout.correction_set),
            correction.group.eq(self._readout.group),
            self._epilogue.corrections.eq(correction.corrections),
        ]
        return correction.to_sum.valid | correction.read

    def _loop_setup_wake(self) -> Value:
        """A descriptor is offered, and its plan is not finished, or it is taken."""
        descriptors, plans = self._loop_setup.descriptors, self._loop_setup.plans
        return descriptors.valid & (~plans.valid | plans.ready)

    def _epilogue_wake(self) -> Value:
        """An item or a constant arrives; all pipelines of the epilogue are shorter than `ClockEnable.SETTLE`."""
        epilogue = self._epilogue
        arriving = (epilogue.valid, epilogue.residual_arrived, epilogue.activate)
        return Cat(*arriving, epilogue.write.kind != ConstantKind.NONE).any()

    def _connect_issue(self, m: Module, run: Signal) -> None:
        decoder = self._decoder
        m.d.comb += [
            decoder.valid.eq(self.unit.valid),
            decoder.instruction.eq(self.unit.instruction),
            decoder.index.eq(self.unit.index),
            decoder.run.eq(run),
            self.unit.ready.eq(decoder.ready),
        ]
        wiring.connect(m, decoder.weight, self._fetcher.descriptors)
        wiring.connect(m, decoder.pixel, self._loop_setup.descriptors)
        wiring.connect(m, self._loop_setup.plans, self._sequencer.plans)
        wiring.connect(m, decoder.readout, self._readout.descriptors)
        wiring.connect(m, decoder.write, self._writer.descriptors)

    def _connect_weights(self, m: Module, run: Signal) -> None:
        """The loader reads seldom and has priority, except over a tile's last word."""
        fetcher, loader, zero_points, array = self._fetcher, self._loader, self._zero_points, self._array
        m.submodules.requests = requests = SkidBuffer(CONSTANTS_REQUEST)
        wiring.connect(m, fetcher.constants, requests.i)
        wiring.connect(m, requests.o, loader.requests)
        m.d.comb += [
            # A register announces the read of a tile's last word, so it can no longer be withdrawn. Elsewhere the
            # loader's priority cannot starve the fetcher: after a block's constants the loader has nothing to read.
            loader.read_allowed.eq(run & ~fetcher.last_word),
            fetcher.read_allowed.eq(run & ~loader.read_valid),
            self.weights.valid.eq(fetcher.read_valid | loader.read_valid),
            self.weights.addr.eq(Mux(loader.read_valid, loader.read_address, fetcher.read_address)),
            loader.read_data.eq(self.weights.data),
            zero_points.word.eq(self.weights.data),
            zero_points.store.eq(fetcher.store_zero_points),
            zero_points.clear.eq(fetcher.clear_zero_points),
            zero_points.load_next.eq(fetcher.load_next),
            array.load.eq(zero_points.load),
            array.weights.eq(zero_points.weights),
            fetcher.taken.eq(self._sequencer.weights_taken),
            self._sequencer.weights_ready.eq(fetcher.ready),
        ]

    def _connect_pixels(self, m: Module, run: Signal) -> None:
        sequencer, pixel_fetcher, array = self._sequencer, self._pixel_fetcher, self._array
        wiring.connect(m, pixel_fetcher.act0, wiring.flipped(self.act0))
        wiring.connect(m, pixel_fetcher.act1, wiring.flipped(self.act1))
        m.d.comb += [
            sequencer.run.eq(run),
            pixel_fetcher.valid.eq(sequencer.pixel_valid),
            pixel_fetcher.pixel.eq(sequencer.pixel),
            pixel_fetcher.instruction.eq(sequencer.instruction),
            array.valid.eq(pixel_fetcher.word_valid),
            array.pixel.eq(pixel_fetcher.word),
            array.swap.eq(pixel_fetcher.swap),
        ]

    def _connect_accumulators(self, m: Module) -> None:
        """Delay pixel addresses and strip-ready events to meet their dot products at the accumulators."""
        sequencer, accumulators, readout = self._sequencer, self._accumulators, self._readout
        dots_after = PixelFetcher.LATENCY + MacArray.latency(self._params.rows)
        ahead = dots_after - Accumulators.ADDRESS_LEAD
        visible = dots_after + Accumulators.WRITE_LATENCY
        m.d.comb += [
            accumulators.valid.eq(_delayed(m, "sum_valid", sequencer.pixel_valid, ahead)),
            accumulators.first.eq(_delayed(m, "sum_first", sequencer.first_tile, ahead)),
            accumulators.continued.eq(_delayed(m, "sum_continued", sequencer.continued, ahead)),
            accumulators.address.eq(_delayed(m, "sum_address", sequencer.address, ahead)),
            accumulators.dots.eq(self._array.dots),
            readout.strip_ready.eq(_delayed(m, "strip_ready", sequencer.strip_ready, visible)),
            readout.strip_ends.eq(sequencer.strip_ready),
            readout.strip_length.eq(sequencer.strip_length),
            accumulators.readout_groups.eq(readout.groups),
            accumulators.readout_address.eq(readout.address),
            sequencer.bank_released.eq(_delayed(m, "bank_released", readout.bank_released, 1)),
        ]

    def _connect_constants(self, m: Module) -> None:
        """Distribute loaded constants, and track which sets are in use."""
        loader, readout, epilogue = self._loader, self._readout, self._epilogue
        m.submodules.constant_sets = sets = ConstantSets()
        # Cuts the route from the loader to the epilogue's memories. The loader starts no new set in the next cycle.
        write = Signal.like(loader.write)
        m.d.sync += write.eq(loader.write)
        loaded = _delayed(m, "channels_loaded", loader.done, 1)
        # Retirement depends on a grant late in the cycle, and it enables wide registers. The residual operand arrives
        # READ_LATENCY cycles later, so one stage costs nothing.
        activate = _delayed(m, "activate", readout.activate, 1)
        m.d.comb += [
            sets.write.eq(write),
            sets.channels_loaded.eq(loaded),
            sets.channels_released.eq(_delayed(m, "channels_released", readout.channels_released, _CHANNELS_IN_USE)),
            sets.table_switched.eq(_delayed(m, "table_switched", readout.table_switched, _CHANNELS_IN_USE)),
            sets.residual_activated.eq(activate),
            *(getattr(loader, name).eq(getattr(sets, name)) for name in _FREE_SETS),
            readout.channels_loaded.eq(loaded),
            epilogue.write.eq(write),
            epilogue.activate.eq(activate),
            epilogue.write_channel_set.eq(sets.channel_set),
            epilogue.write_table_set.eq(sets.table_set),
        ]

    def _connect_results(self, m: Module, run: Signal, run_late: Signal) -> None:
        """Items issue only while the result FIFO has credit for their results."""
        readout, epilogue, writer = self._readout, self._epilogue, self._writer
        m.submodules.results = results = CreditFifo(self._epilogue.results.shape(), RESULTS_DEPTH)
        # Two counts: results in the FIFO need credits, but only items inside the epilogue keep an instruction with
        # another latency waiting.
        outstanding, in_flight = Signal(range(RESULTS_DEPTH + 1)), Signal(range(RESULTS_DEPTH + 1))
        # Retirement depends on the residual grant late in the cycle: it is counted one cycle later, and the threshold
        # below leaves three credits for items not counted yet.
        retired = Signal()
        popped = results.o.valid & results.o.ready
        m.d.sync += [
            retired.eq(readout.item),
            outstanding.eq(outstanding + retired - popped),
            in_flight.eq(in_flight + retired - epilogue.result_valid),
        ]
        wiring.connect(m, readout.residual, wiring.flipped(self.residual))
        wiring.connect(m, results.o, writer.results)
        wiring.connect(m, writer.port, wiring.flipped(self.results))
        m.d.comb += [
            readout.run.eq(run),
            readout.credit_available.eq(outstanding < RESULTS_DEPTH - 3),
            readout.epilogue_idle.eq((in_flight == 0) & ~retired),
            epilogue.valid.eq(readout.item),
            epilogue.tag.eq(readout.tag),
            epilogue.group.eq(readout.group),
            epilogue.channel_set.eq(readout.channel_set),
            epilogue.sums.eq(self._accumulators.readout_sums),
            epilogue.shift.eq(readout.shift),
            epilogue.even.eq(readout.even),
            epilogue.residual_arrived.eq(readout.residual_arrived),
            epilogue.residual.eq(readout.residual_bytes),
            results.take_credit.eq(epilogue.result_valid),
            results.push.eq(epilogue.result_valid),
            results.word.eq(epilogue.results),
            writer.run.eq(run_late),
        ]

    def _report(self, m: Module, run: Signal) -> None:
        """Events and faults for control."""
        sequencer, unit = self._sequencer, self.unit
        # In the decoder, in the writer's walk, and in its last write.
        in_flight = Signal(range(4))
        # `ready` is late in the cycle: the instruction is counted one cycle later, and `~taken` covers the gap.
        taken = Signal()
        m.d.sync += [taken.eq(unit.valid & unit.ready), in_flight.eq(in_flight + taken - unit.done)]
        pending = self._writer.pending | self.residual.valid
        # An instruction is offered, but no earlier one has a tile left: it is decoded, its predecessor's loops are set
        # up, or the readout of an earlier instruction keeps the predecessor's descriptor waiting.
        between, readout_taken = Signal(), self._decoder.readout.valid
        m.d.comb += [
            between.eq(unit.valid & ~sequencer.active),
            unit.started.eq(sequencer.started),
            unit.done.eq(self._writer.done),
            unit.busy.eq(sequencer.pixel_valid),
            # In a halt instructions never finish: only requests that wait for their grant count.
            unit.idle.eq(Mux(run, (in_flight == 0) & ~taken, ~pending)),
            unit.stall[Stall.WEIGHTS].eq(sequencer.waits_weights | (between & ~readout_taken)),
            unit.stall[Stall.ACCUMULATORS].eq(sequencer.waits_bank | (between & readout_taken)),
        ]
        # The residual request leaves the item register through the address check: the fault is registered here.
        fault_index = _delayed(m, "residual_fault_index", self._readout.fault_index, 1)
        residual_fault = _delayed(m, "residual_fault", self.residual.valid & self.residual.fault, 1)
        faults = (
            (self._pixel_fetcher.fault, Cause.SCRATCH_RANGE, self._pixel_fetcher.fault_index),
            (residual_fault, Cause.SCRATCH_RANGE, fault_index),
            (self._writer.fault, Cause.SCRATCH_RANGE, self._writer.fault_index),
            (self._decoder.illegal, Cause.BAD_FIELD, self._decoder.illegal_index),
        )
        cause = Signal(CAUSE_BITS)
        # The last assignment wins among faults of one cycle; the decoder's, of the latest instruction, comes last.
        for strobe, reason, index in faults:
            with m.If(strobe & ~unit.fault):
                m.d.sync += [unit.fault.eq(1), cause.eq(reason), unit.fault_index.eq(index)]
        m.d.comb += unit.cause.eq(cause)


def _delayed(m: Module, name: str, value: Value, cycles: int) -> Value:
    """The value `cycles` cycles later; single bits are events and are reset."""
    return pipeline_stages(m, name, value, cycles, reset_less=len(value) > 1)
