"""The watchdog: a running program that does nothing for long stops with an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from intloom.hw.control.dispatch import FAULT_LAYOUT
from intloom.hw.control.faults import FaultPort
from intloom.hw.spec.isa import COUNT_BITS, QUEUED_UNITS, Unit
from intloom.hw.spec.regs import Cause

LIMIT_BITS = 32
CANDIDATES = 2 * len(QUEUED_UNITS) + 1
"""For each unit what it took last and what stands before it; then what dispatch holds."""
SUSPECT_LAYOUT = data.StructLayout({"valid": 1, "index": COUNT_BITS})
"""An instruction that is not finished, if `valid`."""


class Watchdog(wiring.Component):
    """Counts cycles without life; after `limit` it raises a fault that names the oldest unfinished instruction.

    The fault comes `LATENCY` cycles after the first cycle without life that is one too many.

    It looks for that one by itself, at a candidate a cycle: instructions stand still long before anyone asks. A limit
    of less than `2 * CANDIDATES` may name another one.

    Members
    -------
    running
        A program runs; low, nothing is counted.
    alive
        An instruction finished or a bus beat passed in this cycle.
    limit
        Cycles; 0 means never.
    suspects
        For each unit what it is at, and what it will take next.
    dispatch_index
        The instruction that dispatch holds, blamed when no unit has any.
    """

    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "running": In(1),
                "alive": In(1),
                "limit": In(LIMIT_BITS),
                "suspects": In(data.ArrayLayout(SUSPECT_LAYOUT, CANDIDATES - 1)),
                "dispatch_index": In(COUNT_BITS),
                "port": Out(FaultPort()),
            }
        )

    @staticmethod
    def model(limit: int, life: Iterable[bool]) -> int | None:
        """The cycle in which the fault comes, if ever; `life` tells of each cycle whether nothing is to be counted."""
        silent = 0
        for cycle, alive in enumerate(life):
            silent = 0 if alive else silent + 1
            if limit and silent > limit:
                return cycle + Watchdog.LATENCY
        return None

    @staticmethod
    def culprit(suspects: Sequence[tuple[int, bool]], dispatch_index: int) -> tuple[int, Unit]:
        """Number and unit of the instruction to blame; a suspect is its number and whether it exists."""
        found = [(index, QUEUED_UNITS[place // 2]) for place, (index, exists) in enumerate(suspects) if exists]
        return min([*found, (dispatch_index, Unit.CONTROL)])

    def elaborate(self, platform: object) -> Module:
        """Count down the silence that is left; find the culprit in the background."""
        m = Module()
        left = Signal(signed(LIMIT_BITS + 1), reset_less=True)
        quiet, set_limit = Signal(), Signal()
        m.d.sync += [quiet.eq(self.running & ~self.alive), set_limit.eq(self.limit != 0)]
        m.d.sync += left.eq(Mux(quiet, left - 1, self.limit))
        oldest = self._oldest(m)
        with m.If(set_limit & (left < 0) & ~self.port.valid):
            m.d.sync += [self.port.valid.eq(1), self.port.fault.eq(oldest)]
        return m

    def _oldest(self, m: Module) -> data.View[data.StructLayout]:
        """A round over all candidates, dispatch's first, which is always there; the best of the last round."""
        turn = Signal(range(CANDIDATES))
        seen, begins = Signal(SUSPECT_LAYOUT, reset_less=True), Signal()
        seen_unit = Signal(range(len(Unit)))
        best, oldest = Signal(FAULT_LAYOUT, reset_less=True), Signal(FAULT_LAYOUT, reset_less=True)
        m.d.sync += [turn.eq(turn + 1), begins.eq(turn == 0)]
        with m.If(turn == CANDIDATES - 1):
            m.d.sync += turn.eq(0)
        with m.Switch(turn):
            with m.Case(0):
                m.d.sync += [seen.valid.eq(1), seen.index.eq(self.dispatch_index), seen_unit.eq(Unit.CONTROL)]
            for number in range(CANDIDATES - 1):
                with m.Case(number + 1):
                    m.d.sync += [seen.eq(self.suspects[number]), seen_unit.eq(QUEUED_UNITS[number // 2])]
        m.d.comb += [best.cause.eq(Cause.WATCHDOG), oldest.cause.eq(Cause.WATCHDOG)]
        with m.If(begins):
            m.d.sync += [oldest.index.eq(best.index), oldest.unit.eq(best.unit)]
        with m.If(begins | (seen.valid & (seen.index < best.index))):
            m.d.sync += [best.index.eq(seen.index), best.unit.eq(seen_unit)]
        return oldest
