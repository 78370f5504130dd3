"""Takes vector instructions one at a time, starts them and reports events."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.ports import UnitPort
from intloom.hw.spec.isa import Instruction
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall
from intloom.hw.vector.operation import OPERATION_LAYOUT, decode_operation, is_illegal, operation_of
from intloom.hw.vector.raster_setup import RasterSetup


class Sequencer(wiring.Component):
    """Runs one operation at a time: decode, set up the walkers, start, wait for the last write.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    unit
        Instructions and events.
    operation
        The decoded instruction.
    start
        Pulse: all walkers begin.
    stop
        No new scratchpad requests.
    finished
        All words of the operation are written.
    step, write
        A word is consumed, a result is written in this cycle.
    idle
        No request waits for its grant.
    range_fault
        A request lies outside the scratchpad.

    Handshake
    ---------
    `unit.ready` is high while no operation runs and the unit is not halted. `operation` changes in the cycle after an
    instruction is taken.

    Timing
    ------
    From an instruction taken to `start`: `LATENCY` = 4 cycles. `finished` is sampled from the cycle after `start`.
    `unit.done` is combinational in `finished`; the next instruction is taken one cycle later at the earliest. From
    `unit.halt` to `stop`: 2 cycles.

    Requirements
    ------------
    `finished` is low from the cycle after `start` until the last write is visible.

    Reset and faults
    ----------------
    An illegal instruction faults with `BAD_FIELD` two cycles after it was taken and does not start. `range_fault` sets
    `SCRATCH_RANGE`. A fault is sticky until soft reset, stops new requests and suppresses `unit.done`. While halted,
    `unit.idle` rises once granted requests have left.
    """

    LATENCY = RasterSetup.LATENCY + 1

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "operation": Out(OPERATION_LAYOUT),
                "start": Out(1),
                "stop": Out(1),
                "finished": In(1),
                "step": In(1),
                "write": In(1),
                "idle": In(1),
                "range_fault": In(1),
            }
        )

    @staticmethod
    def model(instruction: Instruction, params: HardwareParams) -> dict[str, int] | None:
        """The operation of an instruction, or None if it is illegal."""
        return None if is_illegal(instruction, params) else operation_of(instruction, params)

    def elaborate(self, platform: object) -> Module:
        """Take, set up, start, wait for the end."""
        m = Module()
        self._busy = Signal()
        self._running = Signal()
        unit = self.unit
        decoded = Signal(OPERATION_LAYOUT)
        # No reset: `start` follows only after an instruction was taken.
        operation = Signal(OPERATION_LAYOUT, reset_less=True)
        illegal = Signal()
        decode_operation(m, self._params, unit.instruction, decoded, illegal)
        taken, bad, halted = Signal(), Signal(), Signal()
        setup_stages = Signal(RasterSetup.LATENCY)
        m.d.comb += [
            self.operation.eq(operation),
            unit.ready.eq(~self._busy & ~halted),
            taken.eq(unit.valid & unit.ready),
            unit.started.eq(taken),
            unit.done.eq(self._running & self.finished & ~unit.fault),
            unit.idle.eq(~self._busy | (self.stop & self.idle)),
        ]
        # Two registers: a halt fans out to all walkers, and a stop 2 cycles later is within HALT_LATENCY.
        m.d.sync += [halted.eq(unit.halt | unit.fault), self.stop.eq(halted)]
        # `bad` is registered: decoding the kind and comparing the factors takes most of a cycle.
        m.d.sync += [bad.eq(taken & illegal), setup_stages[0].eq(taken)]
        # A shift register as long as the setup takes, not a counter. An illegal instruction leaves it before it starts
        # anything.
        m.d.sync += Cat(setup_stages[1:], self.start).eq(Cat(setup_stages[0] & ~bad, setup_stages[1:]))
        with m.If(self.start):
            m.d.sync += self._running.eq(1)
        with m.If(taken):
            m.d.sync += [self._busy.eq(1), operation.eq(decoded)]
        with m.If(unit.done):
            m.d.sync += [self._busy.eq(0), self._running.eq(0)]
        self._watch_faults(m, taken, bad)
        self._count(m)
        return m

    def _watch_faults(self, m: Module, taken: Signal, bad: Signal) -> None:
        unit = self.unit
        with m.If(~unit.fault):
            with m.If(bad | self.range_fault):
                m.d.sync += unit.fault.eq(1)
            # Written whether there is a fault or not: `unit.fault` qualifies it.
            m.d.sync += unit.cause.eq(Cause.BAD_FIELD)
            with m.If(self.range_fault):
                m.d.sync += unit.cause.eq(Cause.SCRATCH_RANGE)
        with m.If(taken):
            m.d.sync += unit.fault_index.eq(unit.index)

    def _count(self, m: Module) -> None:
        """An operation that neither consumes nor writes a word is stalled by the scratchpad."""
        m.d.comb += [
            self.unit.busy.eq(self.step | self.write),
            self.unit.stall[Stall.MEMORY].eq(self._busy & ~self.unit.busy),
        ]
