"""The fault latch keeps the first fault, and of several at once the first source's."""

from __future__ import annotations

import random
from typing import Any

from intloom.hw.control.faults import SOURCES, FaultLatch
from intloom.hw.spec.isa import COUNT_BITS
from tests.hw.streams import run


def test_the_first_fault_stays(rng: random.Random) -> None:
    """In every cycle each source may report one; what is kept is what the model says of the cycles so far."""
    for chance in (0.0, 0.05, 0.05, 0.3, 0.3, 1.0):
        latch = FaultLatch()
        seen: list[list[tuple[int, int, int] | None]] = []

        async def body(ctx: Any, latch: FaultLatch = latch, seen: Any = seen, chance: float = chance) -> None:
            for _ in range(12):
                faults = [(1 + source, source % 5, rng.getrandbits(COUNT_BITS)) for source in range(SOURCES)]
                seen.append([fault if rng.random() < chance else None for fault in faults])
                for source, (cause, unit, index) in enumerate(faults):
                    ctx.set(latch.sources[source].fault, {"cause": cause, "unit": unit, "index": index})
                    ctx.set(latch.sources[source].valid, seen[-1][source] is not None)
                await ctx.tick().repeat(FaultLatch.LATENCY)
                found = ctx.get(latch.latched.fault)
                kept = (found.cause, found.unit, found.index) if ctx.get(latch.latched.valid) else None
                assert kept == FaultLatch.model(seen)

        run(latch, body)
