"""Dispatch: judges each instruction and puts it into its unit's queue, in program order."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.ports import CAUSE_BITS
from hw.spec.isa import COUNT_BITS, INSTRUCTION_BITS, INSTRUCTIONS, QUEUED_UNITS, Unit
from hw.spec.params import HardwareParams
from hw.spec.regs import Cause

from .legality import UNIT_BITS, VERDICT_LAYOUT, Legality
from .queue import COUNTS_LAYOUT, ENTRY_LAYOUT, WaitGate

FAULT_LAYOUT = data.StructLayout({"cause": CAUSE_BITS, "unit": UNIT_BITS, "index": COUNT_BITS})
"""What went wrong, where, and at which instruction."""


class Dispatch(wiring.Component):
    """Takes an instruction, judges it in `JUDGE_CYCLES`, then queues it, or acts on BEGIN and END.

    Parameters
    ----------
    params
        The accelerator's parameters.

    Members
    -------
    running
        A program runs; low, nothing is taken.
    instruction_error
        The instruction at hand was read with a bus error.
    exhausted
        There are no more instructions.
    quiet
        All queues and units are empty.
    ended
        END's waits hold and all is quiet.
    fault_valid, fault
        The program cannot go on; they stay until reset.
    """

    JUDGE_CYCLES = 1

    def __init__(self, params: HardwareParams) -> None:
        self._params = params
        super().__init__(
            {
                "running": In(1),
                "instruction": In(stream.Signature(INSTRUCTION_BITS)),
                "instruction_error": In(1),
                "exhausted": In(1),
                "counts": In(COUNTS_LAYOUT),
                "queues": Out(stream.Signature(ENTRY_LAYOUT)).array(len(QUEUED_UNITS)),
                "index": Out(COUNT_BITS),
                "quiet": In(1),
                "ended": Out(1),
                "fault_valid": Out(1),
                "fault": Out(FAULT_LAYOUT),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Judge in one cycle, act in those that follow."""
        m = Module()
        m.submodules.legality = legality = Legality(self._params)
        verdict = Signal(VERDICT_LAYOUT)
        judged = Signal()
        taken = Signal()
        m.d.comb += [legality.instruction.eq(self.instruction.payload), self.instruction.ready.eq(taken)]
        m.d.sync += judged.eq(self.instruction.valid & self.running & ~taken & ~self.fault_valid)
        with m.If(self.instruction.valid & ~judged):
            m.d.sync += verdict.eq(legality.verdict)
            with m.If((self.index == 0) & ~legality.verdict.begin):
                m.d.sync += [verdict.cause.eq(Cause.WRONG_PROGRAM), verdict.unit.eq(Unit.CONTROL)]
            with m.If(self.instruction_error):
                m.d.sync += [verdict.cause.eq(Cause.FETCH_ERROR), verdict.unit.eq(Unit.CONTROL)]
        good = judged & (verdict.cause == Cause.NONE)
        self._queue(m, verdict, good, taken)
        self._finish(m, good & verdict.end)
        self._watch_faults(m, verdict, judged)
        with m.If(taken):
            m.d.sync += self.index.eq(self.index + 1)
        return m

    def _queue(self, m: Module, verdict: data.View[data.StructLayout], good: Value, taken: Signal) -> None:
        for unit, queue in zip(QUEUED_UNITS, self.queues, strict=True):
            m.d.comb += [
                queue.payload.instruction.eq(self.instruction.payload),
                queue.payload.index.eq(self.index),
                queue.valid.eq(good & (verdict.unit == unit)),
            ]
            with m.If(queue.valid):
                m.d.comb += taken.eq(queue.ready)
        with m.If(good & verdict.begin):
            m.d.comb += taken.eq(1)

    def _finish(self, m: Module, at_end: Value) -> None:
        """END stays at hand until the program is over."""
        m.submodules.gate = gate = WaitGate()
        first = INSTRUCTIONS[0].offsets[f"wait_{QUEUED_UNITS[0].name.lower()}"]
        m.d.comb += [
            gate.counts.eq(self.counts),
            gate.waits.eq(self.instruction.payload[first : first + COUNT_BITS * len(QUEUED_UNITS)]),
            gate.fresh.eq(~at_end),
            self.ended.eq(at_end & gate.met & self.quiet),
        ]

    def _watch_faults(self, m: Module, verdict: data.View[data.StructLayout], judged: Signal) -> None:
        with m.If(~self.fault_valid):
            m.d.sync += self.fault.index.eq(self.index)
            with m.If(judged & (verdict.cause != Cause.NONE)):
                m.d.sync += [
                    self.fault_valid.eq(1),
                    self.fault.cause.eq(verdict.cause),
                    self.fault.unit.eq(verdict.unit),
                ]
            with m.Elif(self.running & self.exhausted):
                m.d.sync += [
                    self.fault_valid.eq(1),
                    self.fault.cause.eq(Cause.NO_END),
                    self.fault.unit.eq(Unit.CONTROL),
                ]
