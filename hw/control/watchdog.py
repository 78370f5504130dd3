"""The watchdog: stops a program that makes no progress with an error."""

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
"""Per unit: the last issued instruction and the next one in its queue; then the instruction in dispatch."""
CANDIDATE_LAYOUT = data.StructLayout({"valid": 1, "index": COUNT_BITS})
"""An unfinished instruction, if `valid`."""


class Watchdog(wiring.Component):
    """Counts consecutive cycles without progress and raises a fault when they exceed `limit`.

    The fault names the oldest instruction that could make progress: the smallest index among the candidates. A
    background scan looks for it, one candidate per cycle.

    Members
    -------
    running
        A program runs. While low, nothing is counted.
    progress
        An instruction finished or a bus beat transferred in this cycle.
    limit
        Allowed cycles without progress; 0 disables the watchdog.
    candidates
        Per unit: its last issued instruction, and the next one in its queue if it does not wait for another unit's
        issued one.
    dispatch_index
        The instruction in dispatch, reported if no unit has an unfinished one.
    port
        The fault.

    Handshake
    ---------
    None. `port.valid` stays high and `port.fault` stable until reset.

    Timing
    ------
    From cycle number `limit` + 1 without progress to `port.valid`: `LATENCY` = 3 cycles. A scan takes `CANDIDATES`
    cycles.

    Requirements
    ------------
    `limit` is at least `2 * CANDIDATES` cycles; with less the fault may name another unfinished instruction.

    Reset and faults
    ----------------
    Reset clears the fault and the count. It raises WATCHDOG.
    """

    LATENCY = 3

    def __init__(self) -> None:
        super().__init__(
            {
                "running": In(1),
                "progress": In(1),
                "limit": In(LIMIT_BITS),
                "candidates": In(data.ArrayLayout(CANDIDATE_LAYOUT, CANDIDATES - 1)),
                "dispatch_index": In(COUNT_BITS),
                "port": Out(FaultPort()),
            }
        )
        # Attributes, because a proof reads them. The sign of `left` tells that the limit is exceeded, without a 32-bit
        # comparison. No reset: `quiet` is low after reset, so the first cycle loads the limit.
        self.left = Signal(signed(LIMIT_BITS + 1), reset_less=True)
        self.quiet, self.set_limit = Signal(), Signal()

    @staticmethod
    def model(limit: int, progress: Iterable[bool]) -> int | None:
        """The cycle in which the fault rises, or None; `progress` has one flag per cycle."""
        idle_cycles = 0
        for cycle, made in enumerate(progress):
            idle_cycles = 0 if made else idle_cycles + 1
            if limit and idle_cycles > limit:
                return cycle + Watchdog.LATENCY
        return None

    @staticmethod
    def oldest(candidates: Sequence[tuple[int, bool]], dispatch_index: int) -> tuple[int, Unit]:
        """Index and unit of the instruction to report; a candidate is its index and whether it is valid."""
        found = [(index, QUEUED_UNITS[number // 2]) for number, (index, valid) in enumerate(candidates) if valid]
        return min([*found, (dispatch_index, Unit.CONTROL)])

    def elaborate(self, platform: object) -> Module:
        """Count down the cycles that are left; scan for the oldest instruction in the background."""
        m = Module()
        left, quiet, set_limit = self.left, self.quiet, self.set_limit
        m.d.sync += [quiet.eq(self.running & ~self.progress), set_limit.eq(self.limit != 0)]
        m.d.sync += left.eq(Mux(quiet, left - 1, self.limit))
        oldest = self._oldest(m)
        with m.If(set_limit & (left < 0) & ~self.port.valid):
            m.d.sync += [self.port.valid.eq(1), self.port.fault.eq(oldest)]
        return m

    def _oldest(self, m: Module) -> data.View[data.StructLayout]:
        """Scan the candidates, dispatch first, which is always valid; the result is the minimum of the last scan."""
        scan = Signal(range(CANDIDATES))
        seen, first = Signal(CANDIDATE_LAYOUT, reset_less=True), Signal()
        seen_unit = Signal(range(len(Unit)))
        best, oldest = Signal(FAULT_LAYOUT, reset_less=True), Signal(FAULT_LAYOUT, reset_less=True)
        m.d.sync += [scan.eq(scan + 1), first.eq(scan == 0)]
        with m.If(scan == CANDIDATES - 1):
            m.d.sync += scan.eq(0)
        with m.Switch(scan):
            with m.Case(0):
                m.d.sync += [seen.valid.eq(1), seen.index.eq(self.dispatch_index), seen_unit.eq(Unit.CONTROL)]
            for number in range(CANDIDATES - 1):
                with m.Case(number + 1):
                    m.d.sync += [seen.eq(self.candidates[number]), seen_unit.eq(QUEUED_UNITS[number // 2])]
        m.d.comb += [best.cause.eq(Cause.WATCHDOG), oldest.cause.eq(Cause.WATCHDOG)]
        with m.If(first):
            m.d.sync += [oldest.index.eq(best.index), oldest.unit.eq(best.unit)]
        with m.If(first | (seen.valid & (seen.index < best.index))):
            m.d.sync += [best.index.eq(seen.index), best.unit.eq(seen_unit)]
        return oldest
