"""The watchdog: a running program that does nothing for long stops with an error."""

from __future__ import annotations

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.isa import COUNT_BITS, QUEUED_UNITS, Unit
from hw.spec.regs import Cause

from .dispatch import FAULT_LAYOUT
from .faults import FaultPort

LIMIT_BITS = 32
SUSPECT_LAYOUT = data.StructLayout({"valid": 1, "index": COUNT_BITS})
"""The oldest instruction that a unit has not finished, if there is one."""


class Watchdog(wiring.Component):
    """Counts cycles without life; at `limit` it raises a fault that names the oldest unfinished instruction.

    Members
    -------
    running
        A program runs; low, nothing is counted.
    alive
        An instruction finished or a bus beat passed in this cycle.
    limit
        Cycles; 0 means never.
    suspects
        What each unit is at.
    dispatch_index
        The instruction that dispatch holds, blamed when no unit has any.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "running": In(1),
                "alive": In(1),
                "limit": In(LIMIT_BITS),
                "suspects": In(data.ArrayLayout(SUSPECT_LAYOUT, len(QUEUED_UNITS))),
                "dispatch_index": In(COUNT_BITS),
                "port": Out(FaultPort()),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Count down the silence; find the culprit in the background."""
        m = Module()
        silence = Signal(LIMIT_BITS)
        with m.If(self.alive | ~self.running):
            m.d.sync += silence.eq(0)
        with m.Else():
            m.d.sync += silence.eq(silence + 1)
        expired = Signal()
        m.d.sync += expired.eq(self.running & ~self.alive & (self.limit != 0) & (silence >= self.limit))
        oldest = self._oldest(m)
        with m.If(expired & ~self.port.valid):
            m.d.sync += [self.port.valid.eq(1), self.port.fault.eq(oldest)]
        return m

    def _oldest(self, m: Module) -> Value:
        """A tree of minima with a register a level: the instructions stand still long before anyone asks."""
        level: list[tuple[Value, Value, Value]] = []
        for unit in QUEUED_UNITS:
            suspect = self.suspects[unit]
            level.append((suspect.valid, suspect.index, Value.cast(unit)))
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=True)
            level = [self._older(m, a, b) for a, b in pairs]
        valid, index, unit = level[0]
        blamed = Signal(FAULT_LAYOUT)
        m.d.comb += blamed.cause.eq(Cause.WATCHDOG)
        with m.If(valid & (index < self.dispatch_index)):
            m.d.comb += [blamed.index.eq(index), blamed.unit.eq(unit)]
        with m.Else():
            m.d.comb += [blamed.index.eq(self.dispatch_index), blamed.unit.eq(Unit.CONTROL)]
        return blamed

    def _older(
        self, m: Module, a: tuple[Value, Value, Value], b: tuple[Value, Value, Value]
    ) -> tuple[Value, Value, Value]:
        valid, index, unit = Signal(), Signal(COUNT_BITS), Signal(range(len(Unit)))
        m.d.sync += valid.eq(a[0] | b[0])
        with m.If(a[0] & (~b[0] | (a[1] < b[1]))):
            m.d.sync += [index.eq(a[1]), unit.eq(a[2])]
        with m.Else():
            m.d.sync += [index.eq(b[1]), unit.eq(b[2])]
        return valid, index, unit
