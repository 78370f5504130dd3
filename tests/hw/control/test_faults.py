"""The fault latch keeps the first fault, and of several at once the first source's."""

import random
from typing import Any

import pytest

from intloom.hw.control.dispatch import FAULT_LAYOUT
from intloom.hw.control.faults import SOURCES, FaultLatch
from intloom.hw.spec.isa import COUNT_BITS
from tests.hw.streams import made, run


def test_the_first_fault_stays(rng: random.Random) -> None:
    """In every cycle each source may report one; what is kept is what the model says of the cycles so far."""
    for chance in (0.0, 0.05, 0.05, 0.3, 0.3, 1.0):
        latch = made(FaultLatch)
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


@pytest.mark.parametrize("source", range(SOURCES))
def test_every_bit_of_a_source_is_latched(source: int, rng: random.Random) -> None:
    """Alone and with all sources of lower priority: a description, and the one with all bits inverted."""
    width = FAULT_LAYOUT.size
    for value in (first := rng.getrandbits(width), first ^ (1 << width) - 1):
        for last in {source + 1, SOURCES}:
            latch = made(FaultLatch)

            async def body(ctx: Any, latch: FaultLatch = latch, value: int = value, last: int = last) -> None:
                for number in range(SOURCES):
                    described = FAULT_LAYOUT.from_bits(value if number == source else rng.getrandbits(width))
                    ctx.set(latch.sources[number].fault, described)
                    ctx.set(latch.sources[number].valid, source <= number < last)
                for _ in range(3):
                    await ctx.tick().repeat(FaultLatch.LATENCY)
                    assert ctx.get(latch.latched.valid)
                    assert ctx.get(latch.latched.fault).as_bits() == value
                    for number in range(SOURCES):
                        ctx.set(latch.sources[number].valid, 1)
                        ctx.set(latch.sources[number].fault, FAULT_LAYOUT.from_bits(rng.getrandbits(width)))

            run(latch, body)
