"""What a DMA unit reports of its work, against what the bench sees."""

from typing import Any

from intloom.hw.spec.regs import Stall

MOST_UNCOUNTED = 4
"""Cycles of an instruction that are neither busy nor a stall: the unit learns of it, or of its end."""


class Accounts:
    """Checks `started`, `busy`, `idle` and the stall in every cycle; `moved` is high when the unit moves a word.

    In a halt a unit may be idle before the last `done`, unless `idle_is_last`: a load unit then still writes words.
    """

    def __init__(self, port: Any, moved: Any, *, idle_is_last: bool = False) -> None:
        self.port, self.moved, self.idle_is_last = port, moved, idle_is_last
        self.taken = self.done = 0
        self.uncounted = 0
        self.rested = False

    async def check(self, ctx: Any) -> None:
        """Follow the unit."""
        port = self.port
        reports = (port.started, port.busy, port.stall, port.done, port.idle)
        signals = (port.valid & port.ready, self.moved, port.halt, port.fault, *reports)
        async for *_, taken, moved, halt, fault, started, busy, stall, done, idle in ctx.tick().sample(*signals):
            assert started == taken, "an instruction starts when it is taken"
            assert busy == moved, "a cycle is busy if a word moves"
            stalled = stall >> Stall.MEMORY & 1
            assert stall == stalled << Stall.MEMORY
            assert not (stalled and busy)
            in_flight = self.taken > self.done
            assert in_flight or not stalled, "only an instruction in flight waits"
            # `done` of this cycle is not counted yet: a unit is idle in the next cycle at the earliest.
            assert not (idle and in_flight) or halt or fault, "a unit with an instruction in flight is not idle"
            assert not (idle and done and self.idle_is_last), "`idle` follows `done`"
            assert not (fault and self.rested), "the fault of a unit that was idle"
            self.rested = bool(idle and not (taken or fault))
            self.uncounted += in_flight and not (busy or stalled or halt)
            self.taken += taken
            self.done += done
            assert self.uncounted <= MOST_UNCOUNTED * self.taken
