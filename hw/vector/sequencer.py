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
    load_constants
        Pulse: the constants of a VDEPTHWISE are read, before `start`.
    joined
        An operation is set up while the one before it drains: `finished` and `write` belong to the latter.
    finished
        All words of the running operation are written.
    drains
        The running operation is a VDEPTHWISE that needs its fields no more: the next VDEPTHWISE may be taken.
    step, write
        A word is consumed, a result is written in this cycle.
    idle
        No request waits for its grant.
    read_fault, write_fault
        A request lies outside the scratchpad.

    Handshake
    ---------
    `unit.ready` is high while no operation runs, or one that drains if the instruction is a VDEPTHWISE, and the unit is
    not halted. `operation` changes in the cycle after an instruction is taken.

    Timing
    ------
    From an instruction taken to `start`: `LATENCY` = 4 cycles, and at least until the cycle after `unit.done` of the
    instruction before it. `load_constants` comes `CONSTANTS` = 2 cycles after a VDEPTHWISE is taken. `finished` is
    sampled from the cycle after `start`. `unit.done` is combinational in `finished`; the next instruction that is not
    joined is taken one cycle later at the earliest. From `unit.halt` to `stop`: 2 cycles.

    Requirements
    ------------
    `finished` is low from the cycle after `start` until the last write is visible. `drains` is low in that cycle.
    While `joined`, all reads are those of the next instruction.

    Reset and faults
    ----------------
    An illegal instruction faults with `BAD_FIELD` two cycles after it was taken and does not start. `range_fault` sets
    `SCRATCH_RANGE`; while `joined`, `read_fault` does so once the instruction before has ended. A fault is sticky until
    soft reset, stops new requests and suppresses `unit.done`. While halted, `unit.idle` rises once granted requests
    have left.
    """

    LATENCY = RasterSetup.LATENCY + 1
    CONSTANTS = 2

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "operation": Out(OPERATION_LAYOUT),
                "start": Out(1),
                "load_constants": Out(1),
                "joined": Out(1),
                "stop": Out(1),
                "finished": In(1),
                "drains": In(1),
                "step": In(1),
                "write": In(1),
                "idle": In(1),
                "read_fault": In(1),
                "write_fault": In(1),
            }
        )

    @staticmethod
    def model(instruction: Instruction, params: HardwareParams) -> dict[str, int] | None:
        """The operation of an instruction, or None if it is illegal."""
        return None if is_illegal(instruction, params) else operation_of(instruction, params)

    def elaborate(self, platform: object) -> Module:
        """Take, set up, start, wait for the end."""
        m = Module()
        # An instruction is taken and not started, another one started and not done, or one of both.
        self._waiting = Signal()
        self._running = Signal()
        self._busy = Signal()
        unit = self.unit
        decoded = Signal(OPERATION_LAYOUT)
        # No reset: `start` follows only after an instruction was taken.
        operation = Signal(OPERATION_LAYOUT, reset_less=True)
        illegal = Signal()
        decode_operation(m, self._params, unit.instruction, decoded, illegal)
        taken, bad, halted = Signal(), Signal(), Signal()
        joins, ready, late = Signal(), Signal(), Signal()
        setup_stages = Signal(RasterSetup.LATENCY)
        m.d.comb += [
            self.operation.eq(operation),
            unit.ready.eq(~self._waiting & (~self._running | joins) & ~halted),
            taken.eq(unit.valid & unit.ready),
            unit.started.eq(taken),
            unit.done.eq(self._running & self.finished & ~unit.fault),
            self._busy.eq(self._waiting | self._running),
            unit.idle.eq(~self._busy | (self.stop & self.idle)),
            self.joined.eq(self._waiting & self._running),
            self.load_constants.eq(setup_stages[self.CONSTANTS - 1] & operation.depthwise),
            ready.eq((setup_stages[-1] | late) & (~self._running | unit.done)),
        ]
        # Registered: the decoded kind does not reach `ready` in the cycle in which the instruction comes.
        m.d.sync += joins.eq(unit.valid & decoded.depthwise & ~self._waiting & operation.depthwise & self.drains)
        # Two registers: a halt fans out to all walkers, and a stop 2 cycles later is within HALT_LATENCY.
        m.d.sync += [halted.eq(unit.halt | unit.fault), self.stop.eq(halted)]
        # `bad` is registered: decoding the kind and comparing the factors takes most of a cycle.
        m.d.sync += [bad.eq(taken & illegal), setup_stages[0].eq(taken)]
        # A shift register as long as the setup takes, not a counter. An illegal instruction leaves it before it starts
        # anything.
        m.d.sync += [
            setup_stages[1:].eq(Cat(setup_stages[0] & ~bad, setup_stages[1:])),
            self.start.eq(ready),
            late.eq((setup_stages[-1] | late) & ~ready),
        ]
        with m.If(taken):
            m.d.sync += [self._waiting.eq(1), operation.eq(decoded)]
        with m.If(unit.done):
            m.d.sync += self._running.eq(0)
        with m.If(self.start):
            m.d.sync += [self._waiting.eq(0), self._running.eq(1)]
        self._watch_faults(m, taken, bad)
        self._count(m)
        return m

    def _watch_faults(self, m: Module, taken: Signal, bad: Signal) -> None:
        unit = self.unit
        index, read_fault, range_fault = Signal.like(unit.fault_index), Signal(), Signal()
        # A read that is joined belongs to the next instruction, whose index comes after the end of the one before.
        m.d.sync += read_fault.eq((read_fault | self.read_fault) & self.joined)
        m.d.comb += range_fault.eq(((read_fault | self.read_fault) & ~self.joined) | self.write_fault)
        with m.If(~unit.fault):
            with m.If(bad | range_fault):
                m.d.sync += unit.fault.eq(1)
            # Written whether there is a fault or not: `unit.fault` qualifies it.
            m.d.sync += unit.cause.eq(Cause.BAD_FIELD)
            with m.If(range_fault):
                m.d.sync += unit.cause.eq(Cause.SCRATCH_RANGE)
        with m.If(taken):
            m.d.sync += index.eq(unit.index)
        with m.If(~self._running):
            m.d.sync += unit.fault_index.eq(index)

    def _count(self, m: Module) -> None:
        """An operation that neither consumes nor writes a word is stalled by the scratchpad."""
        m.d.comb += [
            self.unit.busy.eq(self.step | self.write),
            self.unit.stall[Stall.MEMORY].eq(self._busy & ~self.unit.busy),
        ]
