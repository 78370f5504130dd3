"""Takes vector instructions one by one and reports on them."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.ports import UnitPort
from intloom.hw.spec.isa import Instruction, Kind
from intloom.hw.spec.params import HardwareParams
from intloom.hw.spec.regs import Cause, Stall
from intloom.hw.vector.job import JOB_LAYOUT, decode_job, job_of, kinds_of
from intloom.hw.vector.plan import Planner


class Sequencer(wiring.Component):
    """Starts a job once the one before it has been finished and planned.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    unit
        Instructions and events.
    job
        The job; holds from its start until the next instruction is taken.
    start
        All walkers begin, `LATENCY` cycles after the instruction was taken.
    stop
        Nothing may be asked of the scratchpad.
    finished
        All words of the job have been written; looked at from the cycle after `start`.
    step, write
        A word has been taken up, a result has been written in this cycle.
    quiet
        No request waits for its grant.
    range_fault
        A request lies outside the scratchpad.
    """

    LATENCY = Planner.LATENCY + 1

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "unit": In(UnitPort()),
                "job": Out(JOB_LAYOUT),
                "start": Out(1),
                "stop": Out(1),
                "finished": In(1),
                "step": In(1),
                "write": In(1),
                "quiet": In(1),
                "range_fault": In(1),
            }
        )
        self._busy = Signal()
        self._running = Signal()

    @staticmethod
    def model(instruction: Instruction, params: HardwareParams) -> dict[str, int] | None:
        """The job that an instruction is, or None where it is refused as a bad field."""
        factors_differ = instruction.kind in (Kind.VMUL, Kind.VAVG) and instruction["m1"] != instruction["m2"]
        if instruction.kind not in kinds_of(params) or factors_differ:
            return None
        return job_of(instruction, params)

    def elaborate(self, platform: object) -> Module:
        """Take, plan, start, wait for the end."""
        m = Module()
        unit = self.unit
        decoded = Signal(JOB_LAYOUT)
        job = Signal(JOB_LAYOUT, reset_less=True)
        illegal = Signal()
        decode_job(m, self._params, unit.instruction, decoded, illegal)
        taken, bad, halted = Signal(), Signal(), Signal()
        planned = Signal(Planner.LATENCY)
        m.d.comb += [
            self.job.eq(job),
            unit.ready.eq(~self._busy & ~halted),
            taken.eq(unit.valid & unit.ready),
            unit.started.eq(taken),
            unit.done.eq(self._running & self.finished & ~unit.fault),
            unit.idle.eq(~self._busy | (self.stop & self.quiet)),
        ]
        m.d.sync += [halted.eq(unit.halt | unit.fault), self.stop.eq(halted)]
        # Whether it is legal takes most of a cycle to see.
        m.d.sync += [bad.eq(taken & illegal), planned[0].eq(taken)]
        m.d.sync += Cat(planned[1:], self.start).eq(Cat(planned[0] & ~bad, planned[1:]))
        with m.If(self.start):
            m.d.sync += self._running.eq(1)
        with m.If(taken):
            m.d.sync += [self._busy.eq(1), job.eq(decoded)]
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
            m.d.sync += unit.cause.eq(Cause.BAD_FIELD)
            with m.If(self.range_fault):
                m.d.sync += unit.cause.eq(Cause.SCRATCH_RANGE)
        with m.If(taken):
            m.d.sync += unit.fault_index.eq(unit.index)

    def _count(self, m: Module) -> None:
        """A job that neither takes up nor writes a word waits for the scratchpad."""
        m.d.comb += [
            self.unit.busy.eq(self.step | self.write),
            self.unit.stall[Stall.MEMORY].eq(self._busy & ~self.unit.busy),
        ]
