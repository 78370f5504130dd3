"""What a DMA unit reports of its work, against what the bench sees."""

from __future__ import annotations

from typing import Any

from intloom.hw.spec.regs import Stall

MOST_UNCOUNTED = 4
"""Cycles of an instruction that are neither busy nor a stall: the unit learns of it, or of its end."""


class Accounts:
    """Checks `started`, `busy` and the stall in every cycle; `moved` is high when the unit moves a word."""

    def __init__(self, port: Any, moved: Any) -> None:
        self.port, self.moved = port, moved
        self.taken = self.done = 0
        self.uncounted = 0

    async def check(self, ctx: Any) -> None:
        """Follow the unit."""
        port = self.port
        signals = (port.valid & port.ready, port.started, port.busy, self.moved, port.stall, port.done, port.halt)
        async for *_, taken, started, busy, moved, stall, done, halt in ctx.tick().sample(*signals):
            assert started == taken, "an instruction starts when it is taken"
            assert busy == moved, "a cycle is busy if a word moves"
            stalled = stall >> Stall.MEMORY & 1
            assert stall == stalled << Stall.MEMORY
            assert not (stalled and busy)
            in_flight = self.taken > self.done
            assert in_flight or not stalled, "only an instruction in flight waits"
            self.uncounted += in_flight and not (busy or stalled or halt)
            self.taken += taken
            self.done += done
            assert self.uncounted <= MOST_UNCOUNTED * self.taken
